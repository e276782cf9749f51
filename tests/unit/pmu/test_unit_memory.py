"""What a unit finds at the addresses that its driver has given out: as far as one allocation goes, and no further."""

from __future__ import annotations

import pytest

from pmu.unit_memory import BEYOND_RAM, PAGE_SIZE, VMALLOC_START, UnitMemory


@pytest.mark.parametrize("first", [BEYOND_RAM, VMALLOC_START])
def test_as_far_as_an_allocation_goes(first: int) -> None:
    memory = UnitMemory(first)
    buffers = [memoryview(bytearray(size * PAGE_SIZE)) for size in (1, 4, 3, 1)]
    bases = [memory.map(buffer) for buffer in buffers]
    assert bases[0] == first
    assert [base % (4 * PAGE_SIZE) for base in bases[1:3]] == [0, 0]  # of a power of two or less than one
    for base, buffer in zip(bases, buffers, strict=True):
        size = len(buffer)
        assert memory.find(base, size) == buffer
        assert memory.find(base, size + 1) is None
        assert [memory.room(base + 8, each) for each in (16, size - 8, size)] == [16, size - 8, size - 8]
        memory.write(base + 8, b"written")
        assert bytes(buffer[8:15]) == b"written"
        assert memory.room(base + size - 1, 2) == 1


def test_where_there_is_nothing() -> None:
    memory = UnitMemory()
    base, _ = memory.allocate(1)
    behind, _ = memory.allocate(PAGE_SIZE)
    assert behind == base + PAGE_SIZE  # beside each other, and yet not one
    assert memory.room(base, 2 * PAGE_SIZE) == PAGE_SIZE
    memory.unmap(base)
    for address in (0, base - 1, base, behind + PAGE_SIZE):
        assert memory.find(address, 1) is None
        assert memory.room(address, 1) == 0
    assert memory.room(behind, 1) == 1
