"""ptrace(2): a task stops for another one, which reads and changes its registers, memory and signals."""
