"""Page tables take frames, which come back with the last page that they show."""

from __future__ import annotations

import pytest

from emulator._native import AddressSpace, PhysicalMemory

FRAME, PAGES_OF_TABLE = 4096, 512
FAR = PAGES_OF_TABLE * FRAME  # between pages that have no table in common


def room(memory: PhysicalMemory) -> int:
    """Frames that are left."""
    first = count = 0
    frames = []
    while True:
        try:
            first = memory.allocate()
        except MemoryError:
            break
        frames.append(first)
        count += 1
    for frame in frames:
        memory.release(frame)
    return count


def test_each_table_takes_a_frame_until_its_last_page_goes() -> None:
    memory = PhysicalMemory(64 * FRAME)
    space = AddressSpace(memory)
    frame = memory.allocate()
    assert room(memory) == 63
    for number in range(10):
        space.map(number * FAR, frame, 1, 1)
        space.map(number * FAR + FRAME, frame, 1, 1)
    assert room(memory) == 63 - 10 - 1  # ten tables, and the one of tables
    for number in range(10):
        space.unmap(number * FAR, 1)
    assert room(memory) == 63 - 10 - 1
    assert space.unmap(0, 20 * PAGES_OF_TABLE) == 10
    assert room(memory) == 63 - 1
    assert [space.lookup(number * FAR) for number in range(10)] == [None] * 10


def test_pages_that_share_a_frame_come_to_an_end() -> None:
    memory = PhysicalMemory(64 * FRAME)
    space = AddressSpace(memory)
    frame = memory.allocate()

    def map_for_ever() -> None:
        for number in range(1000):
            space.map(number * FAR, frame, 1, 1)

    with pytest.raises(MemoryError):
        map_for_ever()
    assert memory.references(frame) == 1 + 62
    space.unmap(0, 1000 * PAGES_OF_TABLE)
    assert memory.references(frame) == 1


def test_a_fork_that_finds_no_room_leaves_the_parent_as_it_was() -> None:
    memory = PhysicalMemory(64 * FRAME)
    space = AddressSpace(memory)
    frame = memory.allocate()
    for number in range(40):
        space.map(number * FAR, frame, 1, 1)
    with pytest.raises(MemoryError):
        space.fork()
    assert memory.references(frame) == 1 + 40
    space.unmap(20 * FAR, 20 * PAGES_OF_TABLE)
    child = space.fork()
    assert memory.references(frame) == 1 + 20 + 20
    assert child.lookup(19 * FAR) == (frame, 1)
    del child
    assert memory.references(frame) == 1 + 20
