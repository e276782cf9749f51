"""html: a profile, or two, as one page for a browser: flame graph, table of functions, source."""
