"""The perf tool: command line and Python API."""
