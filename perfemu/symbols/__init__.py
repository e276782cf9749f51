"""symbols: addresses to names and source lines, by ELF and DWARF, with perf's choices among names."""
