"""Metrics as vendors publish them for perf: formulae over events, computed by `perfemu stat -M`."""
