"""events: perf's event strings, and the perf_event_attrs that stat and record open for them."""
