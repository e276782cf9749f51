"""Functions as people read them: disassembly and source, and where events were."""
