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
def brk(task: Task, brk: Address) -> int:
    return task.mm.set_brk(brk)


@syscall(aarch64=222, x86_64=9, support=Support.PARTIAL, note="no huge pages")
def mmap(task: Task, addr: Address, len_: Size, prot: ULong, flags: ULong, fd: int, off: ULong) -> int | Sleeping[int]:
    if off & PAGE_OFFSET:
        raise LinuxError(EINVAL, f"offset {off:#x} is not a multiple of {PAGE_SIZE}")
    file = None if flags & MAP_ANONYMOUS else task.files.get(fd)
    if file is not None and file.flags & O_PATH:
        raise LinuxError(EBADF, f"descriptor {fd} is open with O_PATH")
    if len_ == 0:
        raise LinuxError(EINVAL, "a mapping of no bytes")
    if page_up(len_) >> 64 or len_ > task.mm.layout.task_size:
        raise LinuxError(ENOMEM, f"a mapping of {len_:#x} bytes")
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
        start = task.mm.map(addr, len_, prot, flags)
    else:
        start = _map_file(task, file, addr, len_, prot, flags, off)
    if flags & (MAP_POPULATE | MAP_LOCKED) or task.mm.locks_new:
        return _mapped_and_populated(task, start, page_up(len_))
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
    frame, holder = file.map_frames(task, length, offset, protection, shared)
    identity = MappedFile(file.path, *DEVICE_MAJOR_MINOR, 1)
    final = file.protection_is_final
    return task.mm.map_device(
        address, length, protection, flags, frame, identity, offset, holder,
        may_write=(not shared or file.writable) and (not final or bool(protection & PROT_WRITE)), may_execute=not final,
    )  # fmt: skip


@syscall(aarch64=215, x86_64=11)
def munmap(task: Task, addr: Address, len_: Size) -> int:
    limit = task.mm.layout.task_size
    if addr & PAGE_OFFSET or addr > limit or len_ > limit - addr or len_ == 0:
        raise LinuxError(EINVAL, f"{len_:#x} bytes at {addr:#x}")
    task.mm.unmap(addr, page_up(len_))
    return 0


@syscall(aarch64=226, x86_64=10)
def mprotect(task: Task, start: Address, len_: Size, prot: ULong) -> int:
    growth = prot & (PROT_GROWSDOWN | PROT_GROWSUP)
    if growth == PROT_GROWSDOWN | PROT_GROWSUP or start & PAGE_OFFSET:
        raise LinuxError(EINVAL, f"mprotect({start:#x}, {len_:#x}, {prot:#x})")
    if len_ == 0:
        return 0
    _check_range(task, start, len_, ENOMEM)
    if prot & ~(KNOWN_PROTECTION | growth):
        raise LinuxError(EINVAL, f"protection {prot:#x}")
    first = start
    if growth == PROT_GROWSDOWN:
        mapping = task.mm.find(start)
        if mapping is None or not mapping.grows_down:
            raise LinuxError(EINVAL, f"nothing at {start:#x} grows down")
        first = mapping.start
    task.mm.protect(first, start + page_up(len_) - first, prot)
    return 0


def _check_range(task: Task, address: int, length: int, code: int) -> None:
    if length > task.mm.layout.task_size or address > task.mm.layout.task_size - page_up(length):
        raise LinuxError(code, f"{length:#x} bytes at {address:#x} are beyond the address space")


@syscall(aarch64=216, x86_64=25)
def mremap(task: Task, addr: Address, old_len: Size, new_len: Size, flags: ULong, new_addr: Address) -> int:
    mm = task.mm
    old_len, new_len = page_up(old_len), page_up(new_len)
    if flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP):
        raise LinuxError(EINVAL, f"flags {flags:#x}")
    if flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) and not flags & MREMAP_MAYMOVE:
        raise LinuxError(EINVAL, "MREMAP_FIXED and MREMAP_DONTUNMAP need MREMAP_MAYMOVE")
    if flags & MREMAP_DONTUNMAP and old_len != new_len:
        raise LinuxError(EINVAL, "MREMAP_DONTUNMAP does not change the size")
    if addr & PAGE_OFFSET or new_len == 0 or new_len > mm.layout.task_size:
        raise LinuxError(EINVAL, f"{old_len:#x} bytes at {addr:#x} to {new_len:#x} bytes")
    if flags & MREMAP_FIXED:
        overlap = new_addr < addr + old_len and addr < new_addr + new_len
        if new_addr & PAGE_OFFSET or new_addr > mm.layout.task_size - new_len or overlap:
            raise LinuxError(EINVAL, f"new address {new_addr:#x}")
    mapping = mm.find(addr)
    if mapping is None:
        raise LinuxError(EFAULT, f"nothing is mapped at {addr:#x}")
    if old_len == 0 and not mapping.shared:
        raise LinuxError(EINVAL, "only a shared mapping can be mapped once more")
    if addr + old_len > mapping.end:
        raise LinuxError(EFAULT, f"{old_len:#x} bytes at {addr:#x} are more than one mapping")
    moving = flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)
    if not moving and new_len <= old_len:
        if new_len < old_len:
            mm.unmap(addr + new_len, old_len - new_len)
        return addr
    if not moving and old_len and addr + old_len == mapping.end and mm.grow(mapping, new_len - old_len):
        return addr
    if not flags & MREMAP_MAYMOVE:
        raise LinuxError(ENOMEM, f"{new_len:#x} bytes do not fit at {addr:#x}")
    if flags & MREMAP_FIXED:
        mm.unmap(new_addr, new_len)
        if new_len < old_len:
            mm.unmap(addr + new_len, old_len - new_len)
            old_len = new_len
    else:
        new_addr = mm.mappings.choose(new_addr if flags & MREMAP_DONTUNMAP else 0, new_len)
    mm.move(mapping, addr, old_len, new_addr, new_len, keep_old=bool(flags & MREMAP_DONTUNMAP))
    return new_addr


@syscall(aarch64=233, x86_64=28, support=Support.PARTIAL, note="advice without effect on a program is only checked")
def madvise(task: Task, start: Address, len_in: Size, behavior: int) -> int | Sleeping[int]:
    mm = task.mm
    known = MADVICE_WITHOUT_EFFECT | {MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_POPULATE_READ, MADV_POPULATE_WRITE}
    if behavior not in known:
        raise LinuxError(EINVAL, f"advice {behavior}")
    if start & PAGE_OFFSET or len_in > mm.layout.task_size:
        raise LinuxError(EINVAL, f"{len_in:#x} bytes at {start:#x}")
    len_in = page_up(len_in)
    if len_in == 0:
        return 0
    if behavior in (MADV_POPULATE_READ, MADV_POPULATE_WRITE):
        mm.check_mapped(start, len_in)
        return _populated_as_advised(task, start, len_in, write=behavior == MADV_POPULATE_WRITE)
    elif behavior in (MADV_DONTNEED, MADV_FREE):
        mm.discard(start, len_in)
    elif behavior == MADV_REMOVE:
        mm.remove(start, len_in)
    mm.check_mapped(start, len_in)
    return 0


def _populated_as_advised(task: Task, address: int, length: int, *, write: bool) -> Sleeping[int]:
    yield from _populate(task, address, length, write=write)
    task.mm.check_mapped(address, length)
    return 0


@syscall(aarch64=232, x86_64=27)
def mincore(task: Task, start: Address, len_: Size, vec: Address) -> Sleeping[int]:
    if start & PAGE_OFFSET:
        raise LinuxError(EINVAL, f"address {start:#x}")
    _check_range(task, start, len_, ENOMEM)
    len_ = page_up(len_)
    task.mm.check_mapped(start, len_)
    for first in range(start, start + len_, MINCORE_BYTES):
        size = min(MINCORE_BYTES, start + len_ - first)
        present = bytearray(size >> PAGE_SHIFT)
        for page in task.mm.space.present(first, size >> PAGE_SHIFT):
            present[(page - first) >> PAGE_SHIFT] = 1
        task.mm.write(vec + ((first - start) >> PAGE_SHIFT), bytes(present))
        if size == MINCORE_BYTES:
            yield from work(len(present) // BYTES_PER_CYCLE)
            if task.signals.fatal():
                break
    return 0


@syscall(aarch64=227, x86_64=26)
def msync(task: Task, start: Address, len_: Size, flags: int) -> Sleeping[int]:
    if flags & ~(MS_ASYNC | MS_INVALIDATE | MS_SYNC) or start & PAGE_OFFSET or flags & 5 == MS_ASYNC | MS_SYNC:
        raise LinuxError(EINVAL, f"msync({start:#x}, {len_:#x}, {flags:#x})")
    _check_range(task, start, len_, ENOMEM)
    if len_:
        flushed = 0
        for pages in task.mm.syncing(start, page_up(len_)):
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
def mlock(task: Task, start: Address, len_: Size) -> Sleeping[int]:
    """Pages never leave the machine's memory: locking only brings them in."""
    return _lock_and_populate(task, start, len_)


@syscall(aarch64=284, x86_64=325)
def mlock2(task: Task, start: Address, len_: Size, flags: int) -> int | Sleeping[int]:
    if flags & ~MLOCK_ONFAULT:
        raise LinuxError(EINVAL, f"flags {flags:#x}")
    if not flags & MLOCK_ONFAULT:
        return _lock_and_populate(task, start, len_)
    _lock(task, start, len_, locked=True)
    return 0


@syscall(aarch64=229, x86_64=150)
def munlock(task: Task, start: Address, len_: Size) -> int:
    _lock(task, start, len_, locked=False)
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
