"""UnitMemory: what a unit reaches by physical addresses: buffers and tables that its driver has allocated."""

from __future__ import annotations

from bisect import bisect_right

PAGE_SIZE = 4096
BEYOND_RAM = 1 << 40  # where no RAM of a guest is


class UnitMemory:
    """Of one driver."""

    def __init__(self) -> None:
        self._free = BEYOND_RAM
        self._starts: list[int] = []
        self._blocks: dict[int, memoryview] = {}

    def allocate(self, size: int) -> tuple[int, memoryview]:
        """So many bytes, whole pages, that are zero: their address, and they."""
        memory = memoryview(bytearray(-(-size // PAGE_SIZE) * PAGE_SIZE))
        return self.map(memory), memory

    def map(self, memory: memoryview) -> int:
        """The address of memory that is there: a multiple of its size, if that is a power of two."""
        span = max(PAGE_SIZE, 1 << (len(memory) - 1).bit_length())
        address = -(-self._free // span) * span
        self._free = address + span
        self._starts.append(address)
        self._blocks[address] = memory
        return address

    def unmap(self, address: int) -> None:
        self._starts.remove(address)
        del self._blocks[address]

    def find(self, address: int, size: int) -> memoryview | None:
        """So many bytes from there on; None where there are not as many."""
        index = bisect_right(self._starts, address)
        if not index:
            return None
        start = self._starts[index - 1]
        found = self._blocks[start][address - start : address - start + size]
        return found if len(found) == size else None
