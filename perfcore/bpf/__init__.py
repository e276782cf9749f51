"""bpf(2): maps, programs that are verified before they run, and what they may call."""
