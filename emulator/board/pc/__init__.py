"""pc: a board with x86-64 CPUs, as PCs are: local APICs, I/O APIC, and what is at ports."""
