"""What a Linux kernel that is executed keeps of its tasks, read from outside: only ever read, and never trusted."""
