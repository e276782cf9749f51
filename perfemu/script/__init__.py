"""What perf script shows: fields of samples, tracepoints and side-band records as text."""
