"""seccomp(2): which system calls a task may still make."""
