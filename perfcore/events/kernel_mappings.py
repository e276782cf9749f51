"""KernelMappings: the addresses at which the kernel has mapped buffers for units that write into memory. As vmap().

The modelled kernel's memory has no addresses; those that units are told of are made up here, above all of user space.
"""

from __future__ import annotations

PAGE_SIZE = 4096
VMALLOC_START = 0xFFFF_8000_8000_0000  # arm64's, with 48 bits; behind each mapping stays a page that nobody has


class KernelMappings:
    """Of one kernel."""

    def __init__(self) -> None:
        self._mapped: dict[int, memoryview] = {}  # by their first address, ascending

    def map(self, memory: memoryview) -> int:
        """Returns where it is now: at the first place with room."""
        base = VMALLOC_START
        for start, there in self._mapped.items():
            if base + len(memory) + PAGE_SIZE <= start:
                break
            base = start + len(there) + PAGE_SIZE
        self._mapped[base] = memory
        self._mapped = dict(sorted(self._mapped.items()))
        return base

    def unmap(self, base: int) -> None:
        del self._mapped[base]

    def room(self, address: int, wanted: int) -> int:
        """How many bytes from there on there are, of so many that are wanted: as far as one mapping goes."""
        there = self._at(address)
        return 0 if there is None else min(len(there), wanted)

    def write(self, address: int, data: bytes | bytearray) -> None:
        """Where there is room."""
        there = self._at(address)
        assert there is not None, "there is room"
        there[: len(data)] = data

    def _at(self, address: int) -> memoryview | None:
        for start, memory in self._mapped.items():
            if start <= address < start + len(memory):
                return memory[address - start :]
        return None
