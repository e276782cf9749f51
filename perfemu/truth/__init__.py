"""truth: what a sampled profile says, held against the exact counts of the same run."""
