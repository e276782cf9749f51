"""events: perf_event_open and everything behind it: events, contexts, ring buffers, sideband records, drivers."""
