"""drivers: the sources of events, one file each (Linux's `struct pmu`)."""
