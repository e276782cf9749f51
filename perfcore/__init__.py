"""Linux's perf_event subsystem, and the perf.data format."""
