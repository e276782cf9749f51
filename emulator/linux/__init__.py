"""Enough Linux to run real programs in user mode: tasks, memory, files, signals, time, syscalls."""
