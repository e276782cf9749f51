"""undefined: what an instruction is that a guest dies of, and to which extension of its ISA it belongs."""
