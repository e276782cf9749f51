"""What a unit reaches by a guest's addresses: as far as pages are mapped, and may be written, and lie in RAM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from emulator._native import PhysicalMemory
from emulator.cpu import Level, WalkFault
from emulator.linux.mm.mapping import PAGE_SIZE, PROT_READ, PROT_WRITE
from perfemu.board_memory import KernelMemory, Ram

FRAMES = 16
TOP = (1 << 64) - PAGE_SIZE
WRITABLE = PROT_READ | PROT_WRITE
# Page -> frame and protection: three side by side in RAM, one elsewhere, one that is read-only, one beyond RAM, and the
# last one of all before the first.
PAGES = {
    0x10: (3, WRITABLE), 0x11: (4, WRITABLE), 0x12: (5, WRITABLE), 0x13: (9, WRITABLE), 0x14: (10, PROT_READ),
    0x20: (FRAMES - 1, WRITABLE), 0x21: (FRAMES, WRITABLE), TOP // PAGE_SIZE: (7, WRITABLE), 0: (8, WRITABLE),
}  # fmt: skip


class Tables:
    def walk(self, address: int, level: Level) -> tuple[tuple[int, int] | None, WalkFault]:
        assert level == Level.KERNEL
        page = PAGES.get(address // PAGE_SIZE)
        return page, WalkFault.NONE if page else WalkFault.TRANSLATION


def made() -> tuple[PhysicalMemory, KernelMemory]:
    memory = PhysicalMemory(FRAMES * PAGE_SIZE)
    memory.allocate(FRAMES)
    return memory, KernelMemory(memory, cast(Any, SimpleNamespace(guest_tables=Tables())))


def test_where_it_is() -> None:
    _, found = made()
    assert found.physical(0x11008) == 4 * PAGE_SIZE + 8
    assert found.physical(0x14FFF) == 10 * PAGE_SIZE + 0xFFF  # whatever may be done there
    assert found.physical(0x15000) is None


def test_room_and_writing() -> None:
    memory, found = made()
    assert found.room(0x12FF0, 0x20) == 0x20
    assert found.room(0x10010, 0x10000) == 4 * PAGE_SIZE - 0x10
    assert found.room(0x14000, 1) == found.room(0x15000, 1) == 0
    found.write(0x12FFE, b"abcd")
    assert bytes(memory.view(5)[-2:]) == b"ab"
    assert bytes(memory.view(9)[:2]) == b"cd"
    found.write(0x13FFE, b"efgh")  # the page behind is not to be written any more
    assert bytes(memory.view(9)[-2:]) == b"ef"
    assert bytes(memory.view(10)[:2]) == bytes(2)


def test_what_lies_side_by_side() -> None:
    memory, found = made()
    there = found.find(0x10FFC, PAGE_SIZE + 8)
    assert there is not None
    there[:] = bytes([7]) * len(there)
    assert [sum(memory.view(frame)) // 7 for frame in (3, 4, 5)] == [4, PAGE_SIZE, 4]
    assert found.find(TOP + 8, PAGE_SIZE) is not None  # it comes round
    assert found.find(0x12FFC, 8) is None  # elsewhere
    assert found.find(0x13FFC, 8) is None  # not to be written
    assert found.find(0x15000, 1) is None
    assert found.find(0x20FFC, 4) is not None
    assert found.find(0x20FFC, 8) is None  # beyond RAM
    assert found.find(0x10000, 1 << 60) is None


def test_ram_by_physical_addresses() -> None:
    memory, _ = made()
    ram = Ram(memory)
    there = ram.find(3 * PAGE_SIZE - 2, 4)
    assert there is not None
    there[:] = b"abcd"
    assert bytes(memory.view(3)[:2]) == b"cd"
    assert ram.find(FRAMES * PAGE_SIZE - 4, 4) is not None
    assert ram.find(FRAMES * PAGE_SIZE - 4, 5) is None
    assert ram.find(1 << 60, 1) is None
    assert ram.find(0, 1 << 60) is None
