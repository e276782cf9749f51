"""profile: what a perf.data file says about a program: samples by place and call path, and tables of them."""
