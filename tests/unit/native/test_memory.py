"""RAM in frames, and page tables over it."""

from __future__ import annotations

import pytest

from emulator._native import PAGE_SIZE, AddressSpace, PhysicalMemory

READ, WRITE, EXECUTE = 1, 2, 4
PAGE = 0x7F00_0000_0000


def test_frames_come_zeroed_also_the_second_time() -> None:
    memory = PhysicalMemory(16 * PAGE_SIZE)
    first = memory.allocate()
    memory.view(first)[:4] = b"used"
    memory.release(first)
    again = memory.allocate()
    assert again == first
    assert bytes(memory.view(again)) == bytes(PAGE_SIZE)


def test_neighbours_that_were_freed_make_room_for_a_run() -> None:
    memory = PhysicalMemory(8 * PAGE_SIZE)
    frames = [memory.allocate() for _ in range(8)]
    with pytest.raises(MemoryError):
        memory.allocate()
    for frame in (frames[5], frames[3], frames[4]):  # in any order
        memory.release(frame)
    assert memory.used_bytes == 5 * PAGE_SIZE
    with pytest.raises(MemoryError):
        memory.allocate(4)
    assert memory.allocate(3) == frames[3]
    assert memory.used_bytes == memory.size_bytes


def test_a_frame_lives_as_long_as_something_refers_to_it() -> None:
    memory = PhysicalMemory(16 * PAGE_SIZE)
    space = AddressSpace(memory)
    frame = memory.allocate()
    space.map(PAGE, frame, 1, READ | WRITE)
    memory.release(frame)
    assert memory.references(frame) == 1
    child = space.fork()
    assert memory.references(frame) == 2
    assert space.lookup(PAGE) == child.lookup(PAGE) == (frame, READ)  # copy on write is the kernel's to undo
    assert space.unmap(PAGE, 1) == 1
    del child
    assert memory.used_bytes == 0
    with pytest.raises(RuntimeError, match="already free"):
        memory.release(frame)


def test_reads_and_writes_end_where_a_page_is_missing() -> None:
    memory = PhysicalMemory(16 * PAGE_SIZE)
    space = AddressSpace(memory)
    space.map(PAGE, memory.allocate(2), 2, READ)
    end = PAGE + 2 * PAGE_SIZE
    assert space.write(end - 3, b"abcdef") == 3
    assert space.read(end - 3, 3) == b"abc"
    assert space.read(end - 3, 4) == end
    assert space.read_string(end - 3, 100) == end
    assert space.write(end - 1, b"\0") == 1
    assert space.read_string(end - 3, 100) == b"ab"
    assert space.read_string(end - 3, 1) == b"a"


def test_pages_are_found_unmapped_and_protected_across_holes() -> None:
    memory = PhysicalMemory(16 * PAGE_SIZE)
    space = AddressSpace(memory)
    far = PAGE + (1 << 40)
    for address in (PAGE, PAGE + 5 * PAGE_SIZE, far):
        space.map(address, memory.allocate(), 1, READ)
    everything = 1 << 35  # pages
    assert space.present(PAGE, everything) == [PAGE, PAGE + 5 * PAGE_SIZE, far]
    assert (space.present_pages(), space.fork().present_pages()) == (3, 3)
    space.protect(PAGE, everything, READ | EXECUTE)
    assert [space.lookup(address)[1] for address in space.present(PAGE, everything)] == [READ | EXECUTE] * 3  # type: ignore[index]
    assert space.unmap(PAGE, 6) == 2
    assert space.present(PAGE, everything) == [far]
    space.map(far, memory.allocate(), 1, READ)  # in place of the one that is there
    assert space.present_pages() == 1


@pytest.mark.parametrize("address", [PAGE + 1, 1 << 48, (1 << 48) - PAGE_SIZE])
def test_mappings_lie_on_pages_within_48_bits(address: int) -> None:
    memory = PhysicalMemory(16 * PAGE_SIZE)
    with pytest.raises((ValueError, IndexError)):
        AddressSpace(memory).map(address, memory.allocate(2), 2, READ)


@pytest.mark.parametrize("size", [0, PAGE_SIZE + 1])
def test_ram_is_whole_frames(size: int) -> None:
    with pytest.raises(ValueError, match="whole number"):
        PhysicalMemory(size)


def test_what_is_reserved_leaves_that_much_fewer_frames() -> None:
    memory = PhysicalMemory(8 * PAGE_SIZE)
    frame = memory.allocate(2)
    assert memory.reserve(5 * PAGE_SIZE + 1)
    with pytest.raises(MemoryError):
        memory.allocate()
    assert not memory.reserve(PAGE_SIZE)
    assert memory.reserve(-1)
    memory.allocate()
    assert not memory.reserve(1)
    memory.release(frame, 2)
    assert memory.reserve(2 * PAGE_SIZE)
    assert memory.reserve(-7 * PAGE_SIZE)
    with pytest.raises(Exception, match="more memory is given back than was reserved"):
        memory.reserve(-1)
    memory.allocate(5)
