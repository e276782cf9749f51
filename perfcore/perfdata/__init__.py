"""perfdata: the perf.data file format, as tools/perf/Documentation/perf.data-file-format.txt describes it."""
