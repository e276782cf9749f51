"""KernelMemory: the addresses that BPF programs use: maps' elements, stacks, contexts, each in a region of its own.

They look like a kernel's, and are the same in every run. A program has been verified before it accesses any; what it
asks helpers to read by an address of its own (probe_read_kernel) may be anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from emulator._native import PhysicalMemory
from emulator.linux.errors import EFAULT, ENOMEM, LinuxError
from emulator.linux.mm.mapping import PAGE_SIZE

_BASE = 0xFFFF_C900_0000_0000  # vmalloc's, on x86-64
_REGION_BITS = 32
_OFFSET = (1 << _REGION_BITS) - 1
_MOST_REGIONS = 1 << 14


@dataclass(eq=False)
class Region:
    """Bytes at an address."""

    address: int
    data: memoryview = field(repr=False)
    first: int = -1  # of its frames in the machine's RAM; -1: it has none

    @property
    def size(self) -> int:
        return len(self.data)

    def address_of(self, offset: int) -> int:
        return self.address + offset


class KernelMemory:
    """All regions."""

    def __init__(self, ram: PhysicalMemory) -> None:
        self._ram = ram
        self.views: dict[int, memoryview] = {}  # by the upper half of their addresses
        self._free: list[int] = []

    def add(self, data: memoryview, first: int = -1) -> Region:
        """Give `data` an address."""
        if not self._free and len(self.views) >= _MOST_REGIONS:
            raise LinuxError(ENOMEM, f"{_MOST_REGIONS} regions of BPF memory are all in use")
        number = self._free.pop() if self._free else len(self.views)
        address = _BASE + (number << _REGION_BITS)
        self.views[address >> _REGION_BITS] = data
        return Region(address, data, first)

    def allocate(self, pages: int) -> Region:
        """Zeroed, in the machine's RAM, so that processes can map it. ENOMEM."""
        first = self._frames(pages)
        try:
            return self.add(self._ram.view(first, pages), first)
        except LinuxError:
            self._ram.release(first, pages)
            raise

    def charge(self, size: int) -> Callable[[], None]:
        """So many bytes that the host needs for a guest count as the machine's RAM; until what is returned is called.
        ENOMEM."""
        pages = -(-size // PAGE_SIZE)
        return partial(self._ram.release, self._frames(pages), pages)

    def _frames(self, pages: int) -> int:
        try:
            return self._ram.allocate(pages)
        except (MemoryError, TypeError):  # more frames than there are, or than a frame's number has bits
            raise LinuxError(ENOMEM, f"{pages} pages: {self._ram.used_bytes} bytes of RAM are in use") from None

    def free(self, region: Region) -> None:
        self.remove(region)
        if region.first >= 0:
            self._ram.release(region.first, region.size // PAGE_SIZE)

    def remove(self, region: Region) -> None:
        """It has no address any more."""
        upper = region.address >> _REGION_BITS
        del self.views[upper]
        self._free.append(upper - (_BASE >> _REGION_BITS))

    def view(self, address: int, size: int) -> memoryview:
        """EFAULT where there is nothing."""
        data = self.views.get(address >> _REGION_BITS)
        offset = address & _OFFSET
        if data is None or offset + size > len(data):
            raise LinuxError(EFAULT, f"{size} bytes at {address:#x} are no memory that BPF programs have")
        return data[offset : offset + size]

    def read(self, address: int, size: int) -> bytes:
        return bytes(self.view(address, size))

    def write(self, address: int, data: bytes) -> None:
        self.view(address, len(data))[:] = data
