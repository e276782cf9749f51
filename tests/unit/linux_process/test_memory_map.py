"""MemoryMap: which page a fault brings in, who shares it, and what counts as a minor or major fault."""

from __future__ import annotations

import pytest

from emulator._native import PhysicalMemory
from emulator.linux.arch import architecture
from emulator.linux.errors import EACCES, EEXIST, EFAULT, EINVAL, ENOMEM, LinuxError
from emulator.linux.mm.mapping import (
    EXECUTE,
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_FIXED_NOREPLACE,
    MAP_GROWSDOWN,
    MAP_PRIVATE,
    MAP_SHARED,
    PAGE_SIZE,
    PROT_EXEC,
    PROT_NONE,
    PROT_READ,
    PROT_WRITE,
    READ,
    WRITE,
    MappedFile,
    Mapping,
)
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.mm.page_cache import READAHEAD_PAGES, PageCache
from emulator.linux.signals.signal import BUS_ADRERR, SEGV_ACCERR, SEGV_MAPERR, SIGBUS, SIGSEGV

ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS
RW = PROT_READ | PROT_WRITE
AT = 0x10_0000


class Content:
    """A file of which the test sees every read and write."""

    def __init__(self, data: bytes, inode: int = 1) -> None:
        self.identity = MappedFile(f"/file{inode}", 8, 1, inode)
        self.data = bytearray(data)
        self.reads: list[tuple[int, int]] = []

    def size(self) -> int:
        return len(self.data)

    def read_at(self, offset: int, size: int) -> bytes:
        self.reads.append((offset, size))
        return bytes(self.data[offset : offset + size])

    def write_at(self, offset: int, data: bytes) -> int:
        self.data[offset : offset + len(data)] = data
        return len(data)


class Holder:
    may_be_split = True

    def __init__(self) -> None:
        self.references = 0

    def mapped(self) -> None:
        self.references += 1

    def unmapped(self) -> None:
        self.references -= 1


@pytest.fixture
def memory() -> PhysicalMemory:
    return PhysicalMemory(16 << 20)


@pytest.fixture
def mm(memory: PhysicalMemory) -> MemoryMap:
    return MemoryMap(memory, architecture("x86_64").layout, PageCache(memory), memory.allocate())


def faults(mm: MemoryMap) -> list[bool]:
    """Of each page that comes from now on: whether that was a major fault."""
    came: list[bool] = []
    mm.on_page = came.append
    return came


def fixed(mm: MemoryMap, length: int, protection: int = RW, flags: int = ANONYMOUS, **other: object) -> int:
    return mm.map(AT, length, protection, flags | MAP_FIXED, **other)  # type: ignore[arg-type]


def test_a_read_maps_the_zero_page_and_a_write_a_frame_of_its_own(mm: MemoryMap, memory: PhysicalMemory) -> None:
    came = faults(mm)
    fixed(mm, 2 * PAGE_SIZE)
    used = memory.used_bytes
    assert mm.fault(AT + 8, READ) is None
    assert memory.used_bytes == used
    assert mm.fault(AT + 8, WRITE) is None
    assert memory.used_bytes == used + PAGE_SIZE
    assert mm.space.lookup(AT) is not None
    assert mm.space.lookup(AT + PAGE_SIZE) is None
    assert came == [False, False]


def test_faults_that_end_in_signals(mm: MemoryMap) -> None:
    came = faults(mm)
    fixed(mm, PAGE_SIZE, PROT_READ)
    assert mm.fault(AT, WRITE) == (SIGSEGV, SEGV_ACCERR)
    assert mm.fault(AT, EXECUTE) == (SIGSEGV, SEGV_ACCERR)
    assert mm.fault(AT + PAGE_SIZE, READ) == (SIGSEGV, SEGV_MAPERR)
    mm.protect(AT, PAGE_SIZE, PROT_NONE)
    assert mm.fault(AT, READ) == (SIGSEGV, SEGV_ACCERR)
    assert came == []


def test_a_page_that_can_be_executed_can_be_read(mm: MemoryMap) -> None:
    fixed(mm, PAGE_SIZE, PROT_EXEC)
    assert mm.fault(AT, READ) is None


def test_file_pages_come_by_read_ahead_and_around(mm: MemoryMap) -> None:
    came = faults(mm)
    # 40 pages: the first touch reads 32 of them (128 KiB) and maps the 16 of its own 64 KiB block; the mapping begins
    # at a multiple of 64 KiB.
    content = Content(bytes(range(40)) * PAGE_SIZE)
    fixed(mm, 40 * PAGE_SIZE, PROT_READ, MAP_PRIVATE, content=content)
    assert mm.fault(AT + 3 * PAGE_SIZE, READ) is None
    assert content.reads == [(0, READAHEAD_PAGES * PAGE_SIZE)]
    assert mm.space.present(AT, 40) == [AT + page * PAGE_SIZE for page in range(16)]
    assert came == [True]
    assert mm.fault(AT + 20 * PAGE_SIZE, READ) is None  # read already: minor
    assert came == [True, False]
    assert mm.fault(AT + 35 * PAGE_SIZE, READ) is None
    assert came == [True, False, True]
    assert len(mm.space.present(AT, 40)) == 40


def test_a_second_process_shares_the_frames_of_a_file(mm: MemoryMap, memory: PhysicalMemory) -> None:
    content = Content(b"x" * PAGE_SIZE)
    fixed(mm, PAGE_SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE, content=content)
    mm.fault(AT, EXECUTE)
    other = MemoryMap(memory, mm.layout, mm._page_cache, mm._pages._zero_frame)
    fixed(other, PAGE_SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE, content=content)
    came = faults(other)
    other.fault(AT, EXECUTE)
    assert mm.space.lookup(AT) == other.space.lookup(AT)
    assert came == [False]


def test_a_private_write_copies_the_file_page(mm: MemoryMap) -> None:
    content = Content(b"file" * 1024)
    fixed(mm, PAGE_SIZE, RW, MAP_PRIVATE, content=content)
    mm.write(AT, b"mine")
    assert mm.read(AT, 8) == b"minefile"
    mm.clear()
    assert content.data[:4] == b"file"


def test_a_shared_write_reaches_the_file_at_msync_and_at_the_end(mm: MemoryMap) -> None:
    content = Content(b"file" * 1000)  # 4000 bytes: the page's last 96 are not the file's
    fixed(mm, PAGE_SIZE, RW, MAP_SHARED, content=content)
    assert mm.read(AT, 4) == b"file"
    mm.write(AT, b"ours")
    assert content.data[:4] == b"file"
    list(mm.syncing(AT, PAGE_SIZE))
    assert content.data[:4] == b"ours"
    mm.write(AT + 3998, b"abcd")
    mm.clear()
    assert bytes(content.data[3996:]) == b"fiab"


def test_a_clean_shared_page_is_written_back_by_nobody(mm: MemoryMap) -> None:
    content = Content(b"file" * 1024)
    fixed(mm, PAGE_SIZE, RW, MAP_SHARED, content=content)
    mm.read(AT, 4)
    content.data[0] = 0
    mm.clear()
    assert content.data[0] == 0


def test_beyond_the_end_of_the_file_is_sigbus(mm: MemoryMap) -> None:
    fixed(mm, 3 * PAGE_SIZE, PROT_READ, MAP_PRIVATE, content=Content(b"x" * (PAGE_SIZE + 1)))
    assert mm.fault(AT + PAGE_SIZE, READ) is None
    assert mm.fault(AT + 2 * PAGE_SIZE, READ) == (SIGBUS, BUS_ADRERR)


def test_mprotect_keeps_shared_frames_read_only(mm: MemoryMap) -> None:
    content = Content(b"file" * 1024)
    fixed(mm, PAGE_SIZE, PROT_READ, MAP_PRIVATE, content=content)
    mm.read(AT, 1)
    mm.protect(AT, PAGE_SIZE, RW)
    entry = mm.space.lookup(AT)
    assert entry is not None
    assert entry[1] == READ
    mm.write(AT, b"mine")
    assert bytes(mm._page_cache.read(content, 0, 4)) == b"file"


def test_mprotect_of_a_shared_file_that_is_not_open_for_writing(mm: MemoryMap) -> None:
    fixed(mm, PAGE_SIZE, PROT_READ, MAP_SHARED, content=Content(b"x"), may_write=False)
    with pytest.raises(LinuxError) as error:
        mm.protect(AT, PAGE_SIZE, RW)
    assert error.value.code == EACCES


def test_mprotect_splits_and_joins(mm: MemoryMap) -> None:
    fixed(mm, 4 * PAGE_SIZE)
    mm.protect(AT + PAGE_SIZE, PAGE_SIZE, PROT_READ)
    assert [m.protection for m in mm.mappings] == [RW, PROT_READ, RW]
    mm.protect(AT + PAGE_SIZE, PAGE_SIZE, RW)
    assert [m.length for m in mm.mappings] == [4 * PAGE_SIZE]


def test_the_kernel_faults_pages_in_and_says_efault(mm: MemoryMap) -> None:
    came = faults(mm)
    fixed(mm, 2 * PAGE_SIZE)
    mm.write(AT + PAGE_SIZE - 2, b"abcd")
    assert mm.read(AT + PAGE_SIZE - 2, 4) == b"abcd"
    assert came == [False, False]
    assert mm.read_string(AT + PAGE_SIZE - 2, 100) == b"abcd"
    for forbidden in (
        lambda: mm.read(AT + 2 * PAGE_SIZE - 1, 2),
        lambda: mm.write(AT - 1, b"xy"),
        lambda: mm.read((1 << 64) - 4096, 8),
        lambda: mm.write((1 << 64) - 8, bytes(16)),
        lambda: mm.read_string(1 << 63, 10),
        lambda: mm.read_u64((1 << 64) - 8),
    ):
        with pytest.raises(LinuxError) as error:
            forbidden()
        assert error.value.code == EFAULT


def test_a_failed_write_has_written_as_far_as_it_could(mm: MemoryMap) -> None:
    fixed(mm, PAGE_SIZE)
    with pytest.raises(LinuxError):
        mm.write(AT + PAGE_SIZE - 2, b"abcd")
    assert mm.read(AT + PAGE_SIZE - 2, 2) == b"ab"
    assert mm.copy_out(AT + PAGE_SIZE - 3, b"efgh") == 3
    assert mm.read(AT + PAGE_SIZE - 3, 3) == b"efg"
    assert mm.copy_out(AT + PAGE_SIZE, b"i") == mm.copy_out(mm.layout.task_size - 1, b"jk") == 0


def test_the_stack_grows_to_its_limit_and_keeps_its_distance(mm: MemoryMap) -> None:
    top = mm.layout.stack_top
    mm.map(top - PAGE_SIZE, PAGE_SIZE, RW, ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, name="[stack]")
    assert mm.fault(top - (1 << 20), WRITE) is None
    stack = mm.find(top - 1)
    assert stack is not None
    assert stack.length == 1 << 20
    assert mm.fault(top - mm.stack_limit - 1, WRITE) == (SIGSEGV, SEGV_MAPERR)
    assert mm.fault(top - mm.stack_limit, WRITE) is None
    mm.clear()
    mm.map(top - PAGE_SIZE, PAGE_SIZE, RW, ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, name="[stack]")
    mm.map(top - (3 << 20), PAGE_SIZE, RW, ANONYMOUS | MAP_FIXED)
    assert mm.fault(top - (3 << 20) + (1 << 20), WRITE) == (SIGSEGV, SEGV_MAPERR)  # less than 256 pages apart


def test_brk(mm: MemoryMap) -> None:
    mm.brk_start = mm.brk_end = 0x20_0000
    assert mm.set_brk(0) == 0x20_0000
    assert mm.set_brk(0x20_1234) == 0x20_1234
    heap = mm.find(0x20_1FFF)
    assert heap is not None
    assert (heap.start, heap.end, heap.name) == (0x20_0000, 0x20_2000, "[heap]")
    mm.map(0x20_4000, PAGE_SIZE, RW, ANONYMOUS | MAP_FIXED)
    assert mm.set_brk(0x20_5000) == 0x20_1234  # something is in the way
    mm.write(0x20_1800, b"x")
    assert mm.set_brk(0x20_0800) == 0x20_0800
    assert mm.set_brk(0x20_2000) == 0x20_2000
    assert mm.read(0x20_1800, 1) == b"\0"


def test_mremap_moves_pages_without_copying(mm: MemoryMap, memory: PhysicalMemory) -> None:
    fixed(mm, 2 * PAGE_SIZE)
    mm.write(AT, b"a")
    frame = mm.space.lookup(AT)
    used = memory.used_bytes
    mapping = mm.find(AT)
    assert mapping is not None
    mm.move(mapping, AT, 2 * PAGE_SIZE, 0x80_0000, 4 * PAGE_SIZE, keep_old=False)
    assert mm.space.lookup(0x80_0000) == frame
    assert mm.find(AT) is None
    assert memory.used_bytes == used


def test_discard_brings_zeroes(mm: MemoryMap) -> None:
    fixed(mm, 2 * PAGE_SIZE)
    mm.write(AT, b"a")
    mm.discard(AT, PAGE_SIZE)
    assert mm.read(AT, 1) == b"\0"


def test_everything_is_given_back(mm: MemoryMap, memory: PhysicalMemory) -> None:
    used = memory.used_bytes
    fixed(mm, 64 * PAGE_SIZE)
    mm.write(AT, b"x" * 64 * PAGE_SIZE)
    shared = mm.map(0, 8 * PAGE_SIZE, RW, MAP_SHARED | MAP_ANONYMOUS)
    mm.write(shared, b"y" * 8 * PAGE_SIZE)
    mm.clear()
    assert memory.used_bytes == used
    assert len(mm.mappings) == 0


def test_a_device_shows_its_frames_and_is_held_while_it_is_mapped(mm: MemoryMap, memory: PhysicalMemory) -> None:
    frame = memory.allocate(3)
    holder = Holder()
    start = mm.map_device(
        0, 3 * PAGE_SIZE, RW, MAP_SHARED, frame, MappedFile("anon_inode:[perf_event]", 0, 15, 1), 0, holder
    )
    memory.view(frame + 1)[:4] = b"ring"
    assert mm.read(start + PAGE_SIZE, 4) == b"ring"
    assert holder.references == 1
    mm.unmap(start + PAGE_SIZE, PAGE_SIZE)
    assert holder.references == 1
    mm.unmap(start, 3 * PAGE_SIZE)
    assert holder.references == 0
    assert [memory.references(frame + page) for page in range(3)] == [1, 1, 1]  # the device's own


@pytest.mark.parametrize(
    ("address", "length", "flags", "code"),
    [
        (AT + 1, PAGE_SIZE, MAP_FIXED, EINVAL),
        (AT, PAGE_SIZE, MAP_FIXED_NOREPLACE, EEXIST),
        (0, 1 << 47, 0, ENOMEM),
        (0x7FFF_FFFF_E000, 2 * PAGE_SIZE, MAP_FIXED, ENOMEM),
        (0, 32 << 20, 0, ENOMEM),  # more than the machine's 16 MiB
    ],
)
def test_mappings_that_cannot_be(mm: MemoryMap, address: int, length: int, flags: int, code: int) -> None:
    fixed(mm, PAGE_SIZE)
    with pytest.raises(LinuxError) as error:
        mm.map(address, length, RW, ANONYMOUS | flags)
    assert error.value.code == code


def test_a_reservation_may_be_larger_than_the_machine(mm: MemoryMap) -> None:
    assert mm.map(0, 1 << 40, PROT_NONE, ANONYMOUS) > 0


def test_listeners_hear_mappings_and_faults(mm: MemoryMap) -> None:
    mapped: list[Mapping] = []
    faults: list[tuple[int, bool, bool]] = []
    mm.on_map = mapped.append
    mm.on_fault = lambda address, major, user: faults.append((address, major, user))
    fixed(mm, PAGE_SIZE, PROT_READ, MAP_PRIVATE, content=Content(b"x"))
    mm.read(AT + 7, 1)
    mm.protect(AT, PAGE_SIZE, PROT_READ | PROT_EXEC)
    assert [m.protection for m in mapped] == [PROT_READ, PROT_READ | PROT_EXEC]
    assert faults == [(AT + 7, True, False)]  # read() is the kernel's


def test_file_pages_that_nobody_maps_make_room(mm: MemoryMap) -> None:
    """48 MiB of files pass through 16 MiB of memory, with 4 MiB of the program's own that stay."""
    own = mm.map(0, 4 << 20, RW, ANONYMOUS)
    for page in range(own, own + (4 << 20), PAGE_SIZE):
        mm.write(page, page.to_bytes(8, "little"))
    data = bytes(range(256)) * 16  # a page
    for inode in range(1, 7):
        content = Content(data * 2048, inode)
        address = mm.map(0, 8 << 20, PROT_READ, MAP_SHARED, content)
        assert all(mm.read(page, 256) == data[:256] for page in range(address, address + (8 << 20), PAGE_SIZE))
        mm.unmap(address, 8 << 20)
    assert all(mm.read_u64(page) == page for page in range(own, own + (4 << 20), PAGE_SIZE))


def test_dirty_pages_of_a_shared_file_stay_when_memory_is_short(mm: MemoryMap, memory: PhysicalMemory) -> None:
    content = Content(bytes(PAGE_SIZE))
    shared = mm.map(0, PAGE_SIZE, RW, MAP_SHARED, content)
    mm.write(shared, b"written")
    mm.discard(shared, PAGE_SIZE)  # no page table shows it now
    own = mm.map(0, 15 << 20, RW, ANONYMOUS)
    mm.populate(own, 15 << 20, write=True)
    with pytest.raises(MemoryError):
        mm.populate(mm.map(0, 15 << 20, RW, ANONYMOUS), 15 << 20, write=True)
    assert mm.read(shared, 7) == b"written"
