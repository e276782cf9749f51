"""Memory of processes: mappings, and the pages behind them."""
