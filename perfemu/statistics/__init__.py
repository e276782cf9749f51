"""statistics: what stat counted, the metrics that follow from it, and the ways to print both."""
