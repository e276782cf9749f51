"""UnitMemory: what a unit reaches by addresses: buffers and tables that its driver has allocated.

The modelled kernel's memory has no addresses. Those that units are told of are made up here.
"""

from __future__ import annotations

from bisect import bisect_right

PAGE_SIZE = 4096
BEYOND_RAM = 1 << 40  # physical: where no RAM of a guest is
VMALLOC_START = 0xFFFF_8000_8000_0000  # virtual: where arm64's kernel maps buffers, with 48 bits


class UnitMemory:
    """Of one driver, at addresses from `first` on."""

    def __init__(self, first: int = BEYOND_RAM) -> None:
        self._free = first
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
        found = self._from(address, size)
        return found if len(found) == size else None

    def room(self, address: int, wanted: int) -> int:
        """How many bytes from there on there are, of so many that are wanted."""
        return len(self._from(address, wanted))

    def write(self, address: int, data: bytes | bytearray) -> None:
        """Where there is room."""
        self._from(address, len(data))[:] = data

    def _from(self, address: int, size: int) -> memoryview:
        """... of one allocation: so many, or fewer."""
        index = bisect_right(self._starts, address)
        if not index:
            return memoryview(b"")
        start = self._starts[index - 1]
        return self._blocks[start][address - start : address - start + size]
