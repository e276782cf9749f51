"""Probes: events at instructions of programs, defined while the machine runs. As kernel/trace/trace_uprobe.c."""
