"""perfcore: Linux's perf_event subsystem: its ABI, its events and its file format. Knows no command line."""
