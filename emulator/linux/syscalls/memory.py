"""Memory: brk, mmap and what changes mappings."""

from __future__ import annotations

from emulator.linux.errors import (
    EACCES,
    EBADF,
    EFAULT,
    EINVAL,
    ENOMEM,
    EOPNOTSUPP,
    EOVERFLOW,
    EPERM,
    LinuxError,
)
from emulator.linux.fs.file import O_PATH, File
from emulator.linux.fs.memory_files import F_SEAL_FUTURE_WRITE, F_SEAL_WRITE
from emulator.linux.mm.mapping import (
    MAP_32BIT,
    MAP_ANONYMOUS,
    MAP_HUGETLB,
    MAP_LOCKED,
    MAP_POPULATE,
    MAP_PRIVATE,
    MAP_SHARED,
    MAP_SHARED_VALIDATE,
    MAP_TYPE,
    PAGE_SHIFT,
    PAGE_SIZE,
    PROT_EXEC,
    PROT_GROWSDOWN,
    PROT_GROWSUP,
    PROT_READ,
    PROT_WRITE,
    MappedFile,
    page_down,
    page_up,
)
from emulator.linux.mm.mm import POPULATED_PAGES
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping, work
from emulator.linux.syscalls.input_output import BYTES_PER_CYCLE
from emulator.linux.syscalls.table import Address, Size, Support, ULong, syscall

PAGE_OFFSET = PAGE_SIZE - 1
KNOWN_PROTECTION = PROT_READ | PROT_WRITE | PROT_EXEC
KNOWN_FLAGS = 0x1F_FFF3  # uapi/asm-generic/mman*.h: all flags up to MAP_FIXED_NOREPLACE, and the types

MREMAP_MAYMOVE, MREMAP_FIXED, MREMAP_DONTUNMAP = 1, 2, 4
MS_ASYNC, MS_INVALIDATE, MS_SYNC = 1, 2, 4
MLOCK_ONFAULT = 1
MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT = 1, 2, 4

# uapi/asm-generic/mman-common.h; the advice that has no effect here beyond the check of its range
MADV_DONTNEED, MADV_FREE, MADV_REMOVE = 4, 8, 9
MADV_POPULATE_READ, MADV_POPULATE_WRITE = 22, 23
MINCORE_BYTES = 1 << 32  # looked at at once
SYNCED_PAGES = 4096  # written at once
MADVICE_WITHOUT_EFFECT = {0, 1, 2, 3, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 25}
DEVICE_MAJOR_MINOR = 0, 15  # anonymous inodes, as PERF_RECORD_MMAP2 shows them


@syscall(aarch64=214, x86_64=12)
def brk(task: Task, address: Address) -> int:
    return task.mm.set_brk(address)


@syscall(aarch64=222, x86_64=9, support=Support.PARTIAL, note="no huge pages")
def mmap(
    task: Task, address: Address, length: Size, protection: ULong, flags: ULong, descriptor: int, offset: ULong
) -> int | Sleeping[int]:
    if offset & PAGE_OFFSET:
        raise LinuxError(EINVAL, f"offset {offset:#x} is not a multiple of {PAGE_SIZE}")
    file = None if flags & MAP_ANONYMOUS else task.files.get(descriptor)
    if file is not None and file.flags & O_PATH:
        raise LinuxError(EBADF, f"descriptor {descriptor} is open with O_PATH")
    if length == 0:
        raise LinuxError(EINVAL, "a mapping of no bytes")
    if page_up(length) >> 64 or length > task.mm.layout.task_size:
        raise LinuxError(ENOMEM, f"a mapping of {length:#x} bytes")
    kind = flags & MAP_TYPE
    if kind not in (MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE) or (file is None and kind == MAP_SHARED_VALIDATE):
        raise LinuxError(EINVAL, f"mapping type {kind:#x} is neither MAP_SHARED nor MAP_PRIVATE")
    if kind == MAP_SHARED_VALIDATE and flags & ~(KNOWN_FLAGS | MAP_TYPE):
        raise LinuxError(EOPNOTSUPP, f"flags {flags:#x}")
    if flags & MAP_HUGETLB:
        raise LinuxError(ENOMEM, "there are no huge pages")
    flags &= ~MAP_32BIT
    if file is not None and file.maps_as_anonymous:
        file, flags = None, flags | MAP_ANONYMOUS
    if file is None:
        start = task.mm.map(address, length, protection, flags)
    else:
        start = _map_file(task, file, address, length, protection, flags, offset)
    if flags & (MAP_POPULATE | MAP_LOCKED) or task.mm.locks_new:
        return _mapped_and_populated(task, start, page_up(length))
    return start


def _mapped_and_populated(task: Task, start: int, length: int) -> Sleeping[int]:
    yield from _populate(task, start, length)
    return start


def _populate(task: Task, start: int, length: int, *, write: bool = False) -> Sleeping[bool]:
    """Bring in what may be touched, in parts, until a signal ends the process. Whether all may be."""
    parts = task.mm.populating(start, length, write=write)
    while not task.signals.fatal():
        try:
            next(parts)
        except StopIteration as end:
            return bool(end.value)
        yield from work((POPULATED_PAGES << PAGE_SHIFT) // BYTES_PER_CYCLE)
    return False


def _map_file(task: Task, file: File, address: int, length: int, protection: int, flags: int, offset: int) -> int:
    if (offset >> PAGE_SHIFT) + (page_up(length) >> PAGE_SHIFT) > 1 << 51:
        raise LinuxError(EOVERFLOW, f"offset {offset:#x} and {length:#x} bytes")
    shared = bool(flags & MAP_SHARED)
    if shared and protection & PROT_WRITE and not file.writable:
        raise LinuxError(EACCES, f"{file.path} is not open for writing")
    if not file.readable:
        raise LinuxError(EACCES, f"{file.path} is not open for reading")
    sealed = shared and bool(file.seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
    if sealed and protection & PROT_WRITE:
        raise LinuxError(EPERM, f"{file.path} is sealed against writing")
    content = file.content()
    if content is not None:
        may_write = not shared or (file.writable and not sealed)
        return task.mm.map(address, length, protection, flags, content, offset, may_write=may_write)
    task.mm.make_way(address, page_up(length), flags)
    frame = file.map_frames(task, length, offset, protection, shared)
    identity = MappedFile(file.path, *DEVICE_MAJOR_MINOR, 1)
    return task.mm.map_device(address, length, protection, flags, frame, identity, offset, file)


@syscall(aarch64=215, x86_64=11)
def munmap(task: Task, address: Address, length: Size) -> int:
    limit = task.mm.layout.task_size
    if address & PAGE_OFFSET or address > limit or length > limit - address or length == 0:
        raise LinuxError(EINVAL, f"{length:#x} bytes at {address:#x}")
    task.mm.unmap(address, page_up(length))
    return 0


@syscall(aarch64=226, x86_64=10)
def mprotect(task: Task, address: Address, length: Size, protection: ULong) -> int:
    growth = protection & (PROT_GROWSDOWN | PROT_GROWSUP)
    if growth == PROT_GROWSDOWN | PROT_GROWSUP or address & PAGE_OFFSET:
        raise LinuxError(EINVAL, f"mprotect({address:#x}, {length:#x}, {protection:#x})")
    if length == 0:
        return 0
    _check_range(task, address, length, ENOMEM)
    if protection & ~(KNOWN_PROTECTION | growth):
        raise LinuxError(EINVAL, f"protection {protection:#x}")
    start = address
    if growth == PROT_GROWSDOWN:
        mapping = task.mm.find(address)
        if mapping is None or not mapping.grows_down:
            raise LinuxError(EINVAL, f"nothing at {address:#x} grows down")
        start = mapping.start
    task.mm.protect(start, address + page_up(length) - start, protection)
    return 0


def _check_range(task: Task, address: int, length: int, code: int) -> None:
    if length > task.mm.layout.task_size or address > task.mm.layout.task_size - page_up(length):
        raise LinuxError(code, f"{length:#x} bytes at {address:#x} are beyond the address space")


@syscall(aarch64=216, x86_64=25)
def mremap(task: Task, old: Address, old_length: Size, new_length: Size, flags: ULong, new: Address) -> int:
    mm = task.mm
    old_length, new_length = page_up(old_length), page_up(new_length)
    if flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP):
        raise LinuxError(EINVAL, f"flags {flags:#x}")
    if flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) and not flags & MREMAP_MAYMOVE:
        raise LinuxError(EINVAL, "MREMAP_FIXED and MREMAP_DONTUNMAP need MREMAP_MAYMOVE")
    if flags & MREMAP_DONTUNMAP and old_length != new_length:
        raise LinuxError(EINVAL, "MREMAP_DONTUNMAP does not change the size")
    if old & PAGE_OFFSET or new_length == 0 or new_length > mm.layout.task_size:
        raise LinuxError(EINVAL, f"{old_length:#x} bytes at {old:#x} to {new_length:#x} bytes")
    if flags & MREMAP_FIXED:
        overlap = new < old + old_length and old < new + new_length
        if new & PAGE_OFFSET or new > mm.layout.task_size - new_length or overlap:
            raise LinuxError(EINVAL, f"new address {new:#x}")
    mapping = mm.find(old)
    if mapping is None:
        raise LinuxError(EFAULT, f"nothing is mapped at {old:#x}")
    if old_length == 0 and not mapping.shared:
        raise LinuxError(EINVAL, "only a shared mapping can be mapped once more")
    if old + old_length > mapping.end:
        raise LinuxError(EFAULT, f"{old_length:#x} bytes at {old:#x} are more than one mapping")
    moving = flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)
    if not moving and new_length <= old_length:
        if new_length < old_length:
            mm.unmap(old + new_length, old_length - new_length)
        return old
    if not moving and old_length and old + old_length == mapping.end and mm.grow(mapping, new_length - old_length):
        return old
    if not flags & MREMAP_MAYMOVE:
        raise LinuxError(ENOMEM, f"{new_length:#x} bytes do not fit at {old:#x}")
    if flags & MREMAP_FIXED:
        mm.unmap(new, new_length)
        if new_length < old_length:
            mm.unmap(old + new_length, old_length - new_length)
            old_length = new_length
    else:
        new = mm.choose(new if flags & MREMAP_DONTUNMAP else 0, new_length)
    mm.move(mapping, old, old_length, new, new_length, keep_old=bool(flags & MREMAP_DONTUNMAP))
    return new


@syscall(aarch64=233, x86_64=28, support=Support.PARTIAL, note="advice without effect on a program is only checked")
def madvise(task: Task, address: Address, length: Size, advice: int) -> int | Sleeping[int]:
    mm = task.mm
    known = MADVICE_WITHOUT_EFFECT | {MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_POPULATE_READ, MADV_POPULATE_WRITE}
    if advice not in known:
        raise LinuxError(EINVAL, f"advice {advice}")
    if address & PAGE_OFFSET or length > mm.layout.task_size:
        raise LinuxError(EINVAL, f"{length:#x} bytes at {address:#x}")
    length = page_up(length)
    if length == 0:
        return 0
    if advice in (MADV_POPULATE_READ, MADV_POPULATE_WRITE):
        mm.check_mapped(address, length)
        return _populated_as_advised(task, address, length, write=advice == MADV_POPULATE_WRITE)
    elif advice in (MADV_DONTNEED, MADV_FREE):
        mm.discard(address, length)
    elif advice == MADV_REMOVE:
        mm.remove(address, length)
    mm.check_mapped(address, length)
    return 0


def _populated_as_advised(task: Task, address: int, length: int, *, write: bool) -> Sleeping[int]:
    yield from _populate(task, address, length, write=write)
    task.mm.check_mapped(address, length)
    return 0


@syscall(aarch64=232, x86_64=27)
def mincore(task: Task, address: Address, length: Size, vector: Address) -> Sleeping[int]:
    if address & PAGE_OFFSET:
        raise LinuxError(EINVAL, f"address {address:#x}")
    _check_range(task, address, length, ENOMEM)
    length = page_up(length)
    task.mm.check_mapped(address, length)
    for start in range(address, address + length, MINCORE_BYTES):
        size = min(MINCORE_BYTES, address + length - start)
        present = bytearray(size >> PAGE_SHIFT)
        for page in task.mm.space.present(start, size >> PAGE_SHIFT):
            present[(page - start) >> PAGE_SHIFT] = 1
        task.mm.write(vector + ((start - address) >> PAGE_SHIFT), bytes(present))
        if size == MINCORE_BYTES:
            yield from work(len(present) // BYTES_PER_CYCLE)
            if task.signals.fatal():
                break
    return 0


@syscall(aarch64=227, x86_64=26)
def msync(task: Task, address: Address, length: Size, flags: int) -> Sleeping[int]:
    if flags & ~(MS_ASYNC | MS_INVALIDATE | MS_SYNC) or address & PAGE_OFFSET or flags & 5 == MS_ASYNC | MS_SYNC:
        raise LinuxError(EINVAL, f"msync({address:#x}, {length:#x}, {flags:#x})")
    _check_range(task, address, length, ENOMEM)
    if length:
        flushed = 0
        for pages in task.mm.syncing(address, page_up(length)):
            flushed += pages
            if flushed >= SYNCED_PAGES:
                yield from work((flushed << PAGE_SHIFT) // BYTES_PER_CYCLE)
                flushed = 0
    return 0


def _lock(task: Task, address: int, length: int, *, locked: bool) -> tuple[int, int]:
    """The pages that are meant: first address, length."""
    start = page_down(address)
    length = page_up(length + address - start)
    _check_range(task, start, length, EINVAL)
    if length:
        task.mm.lock(start, length, locked=locked)
    return start, length


def _lock_and_populate(task: Task, address: int, length: int) -> Sleeping[int]:
    start, length = _lock(task, address, length, locked=True)
    if length and not (yield from _populate(task, start, length)):
        raise LinuxError(ENOMEM, f"not all of {length:#x} bytes at {start:#x} can be touched")
    return 0


@syscall(aarch64=228, x86_64=149)
def mlock(task: Task, address: Address, length: Size) -> Sleeping[int]:
    """Pages never leave the machine's memory: locking only brings them in."""
    return _lock_and_populate(task, address, length)


@syscall(aarch64=284, x86_64=325)
def mlock2(task: Task, address: Address, length: Size, flags: int) -> int | Sleeping[int]:
    if flags & ~MLOCK_ONFAULT:
        raise LinuxError(EINVAL, f"flags {flags:#x}")
    if not flags & MLOCK_ONFAULT:
        return _lock_and_populate(task, address, length)
    _lock(task, address, length, locked=True)
    return 0


@syscall(aarch64=229, x86_64=150)
def munlock(task: Task, address: Address, length: Size) -> int:
    _lock(task, address, length, locked=False)
    return 0


@syscall(aarch64=230, x86_64=151)
def mlockall(task: Task, flags: int) -> int | Sleeping[int]:
    if flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) or flags in (0, MCL_ONFAULT):
        raise LinuxError(EINVAL, f"flags {flags:#x}")
    mm = task.mm
    mm.locks_new = bool(flags & MCL_FUTURE)
    if flags & MCL_CURRENT:
        mm.lock_all(locked=True)
        if not flags & MCL_ONFAULT:
            return _all_populated(task)
    return 0


def _all_populated(task: Task) -> Sleeping[int]:
    yield from _populate(task, 0, task.mm.layout.task_size)
    return 0


@syscall(aarch64=231, x86_64=152)
def munlockall(task: Task) -> int:
    task.mm.locks_new = False
    task.mm.lock_all(locked=False)
    return 0
