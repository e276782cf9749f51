"""What the units of a board's CPUs reach in its RAM by the addresses that a guest gives them."""

from __future__ import annotations

from emulator._native import PhysicalMemory
from emulator.cpu import Cpu, Level, WalkFault
from emulator.linux.mm.mapping import PAGE_SIZE, PROT_WRITE

ALL_BITS = (1 << 64) - 1


class Ram:
    """At physical addresses, from 0 on."""

    def __init__(self, memory: PhysicalMemory) -> None:
        self._memory = memory

    def find(self, address: int, size: int) -> memoryview | None:
        """None beyond it."""
        if size > self._memory.size_bytes or address > self._memory.size_bytes - size:
            return None
        first, offset = divmod(address, PAGE_SIZE)
        return self._memory.view(first, -(-(offset + size) // PAGE_SIZE))[offset : offset + size]


class KernelMemory:
    """At virtual addresses of a CPU's kernel, as its page tables have them now."""

    def __init__(self, memory: PhysicalMemory, cpu: Cpu) -> None:
        self._memory, self._cpu = memory, cpu

    def physical(self, address: int) -> int | None:
        """None where nothing is mapped."""
        page = self._page(address)
        return None if page is None else page[0] * PAGE_SIZE + address % PAGE_SIZE

    def room(self, address: int, wanted: int) -> int:
        """How many bytes from there on can be written, of so many that are wanted."""
        room = 0
        while room < wanted and self._frame(address + room) is not None:
            room += PAGE_SIZE - (address + room) % PAGE_SIZE
        return min(room, wanted)

    def write(self, address: int, data: bytes | bytearray) -> None:
        """Where there is room. What has been unmapped since then is written nowhere."""
        done = 0
        while done < len(data):
            offset = (address + done) % PAGE_SIZE
            piece = data[done : done + PAGE_SIZE - offset]
            frame = self._frame(address + done)
            if frame is not None:
                self._memory.write(frame, offset, bytes(piece))
            done += len(piece)

    def find(self, address: int, size: int) -> memoryview | None:
        """None where not all of it can be written, nor where its pages are not side by side in RAM: as Linux allocates
        what must be, they are."""
        offset = address % PAGE_SIZE
        pages = -(-(offset + size) // PAGE_SIZE)
        first = self._frame(address)
        if first is None or first + pages > self._memory.size_bytes // PAGE_SIZE:
            return None
        if any(self._frame(address - offset + n * PAGE_SIZE) != first + n for n in range(1, pages)):
            return None
        return self._memory.view(first, pages)[offset : offset + size]

    def _frame(self, address: int) -> int | None:
        """Of RAM, where that can be written."""
        page = self._page(address)
        return page[0] if page is not None and page[1] & PROT_WRITE else None

    def _page(self, address: int) -> tuple[int, int] | None:
        tables = self._cpu.guest_tables
        assert tables is not None, "its kernel executes"
        page, fault, *_ = tables.walk(address & ALL_BITS, Level.KERNEL)
        return page if fault == WalkFault.NONE else None
