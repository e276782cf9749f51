"""Maps, a kind a class: where BPF programs and processes meet."""
