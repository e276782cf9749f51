"""perfemu trace: system calls and signals as lines of text."""
