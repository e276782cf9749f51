"""Opening, creating and closing files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from emulator.linux.errors import E2BIG, EAGAIN, EINVAL, LinuxError
from emulator.linux.fs.file import O_CLOEXEC, O_CREAT, O_TRUNC, O_WRONLY
from emulator.linux.fs.openable_tree import O_TMPFILE_BIT
from emulator.linux.fs.paths import Dentry, Resolve
from emulator.linux.fs.pipes import PipeEnd
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping, wait_until
from emulator.linux.syscalls.at import AT_FDCWD, new_mode, start, tree
from emulator.linux.syscalls.table import Address, Path, Size, UInt, syscall


@syscall(aarch64=56, x86_64=257)
def openat(task: Task, dfd: int, filename: Path, flags: int, mode: UInt) -> int | Sleeping[int]:
    """openat(2)"""
    return _open(task, start(task, dfd, filename), filename, flags, mode)


def _open(task: Task, directory: Dentry, path: str, flags: int, mode: int, resolve: int = 0) -> int | Sleeping[int]:
    permissions = new_mode(task, mode) if flags & (O_CREAT | O_TMPFILE_BIT) else 0
    file = tree(task).open_at(task, directory, path, flags, permissions, resolve=resolve)
    if isinstance(file, PipeEnd) and file.waits_for_other_end():
        return _open_later(task, file, flags)
    return task.files.install(file, bool(flags & O_CLOEXEC))


def _open_later(task: Task, end: PipeEnd, flags: int) -> Sleeping[int]:
    """fifo(7): one end waits for the other, also for one that has gone again by the time it wakes."""
    before = end.came()
    end.retain()
    try:
        yield from wait_until(task, lambda: end.came() != before, end.wait_queues, f"an open of {end.path}")
        return task.files.install(end, bool(flags & O_CLOEXEC))
    finally:
        end.release()


@syscall(x86_64=2)
def open(task: Task, filename: Path, flags: int, mode: UInt) -> int | Sleeping[int]:
    """open(2)"""
    return openat(task, AT_FDCWD, filename, flags, mode)


@syscall(x86_64=85)
def creat(task: Task, pathname: Path, mode: UInt) -> int | Sleeping[int]:
    """creat(2)"""
    return openat(task, AT_FDCWD, pathname, O_CREAT | O_WRONLY | O_TRUNC, mode)


@dataclass(frozen=True, slots=True)
class OpenHow:
    """uapi/linux/openat2.h, struct open_how."""

    flags: int
    mode: int
    resolve: int
    SIZE: ClassVar[int] = 24

    @classmethod
    def unpack(cls, data: bytes) -> OpenHow:
        return cls(*(int.from_bytes(data[at : at + 8], "little") for at in (0, 8, 16)))


@syscall(aarch64=437, x86_64=437)
def openat2(task: Task, dfd: int, filename: Path, how: Address, usize: Size) -> int | Sleeping[int]:
    """openat2(2)"""
    if usize < OpenHow.SIZE:
        raise LinuxError(EINVAL, f"struct open_how has at least {OpenHow.SIZE} bytes, not {usize}")
    if usize > OpenHow.SIZE and any(task.mm.read(how + OpenHow.SIZE, min(usize, 4096) - OpenHow.SIZE)):
        raise LinuxError(E2BIG, f"struct open_how of {usize} bytes with fields that are not known")
    values = OpenHow.unpack(task.mm.read(how, OpenHow.SIZE))
    if values.flags >> 32 or values.mode & ~0o7777:
        raise LinuxError(EINVAL, f"open_how flags {values.flags:#x}, mode {values.mode:#o}")
    resolve = values.resolve
    if resolve >> 6 or resolve & (Resolve.BENEATH | Resolve.IN_ROOT) == Resolve.BENEATH | Resolve.IN_ROOT:
        raise LinuxError(EINVAL, f"open_how.resolve {resolve:#x}")
    if values.mode and not values.flags & (O_CREAT | O_TMPFILE_BIT):
        raise LinuxError(EINVAL, f"open_how.mode {values.mode:#o} of a file that is not made")
    if resolve & Resolve.CACHED and values.flags & (O_CREAT | O_TRUNC | O_TMPFILE_BIT):
        raise LinuxError(EAGAIN, "RESOLVE_CACHED of what changes a file")
    scoped = resolve & Resolve.IN_ROOT and filename.startswith("/")
    directory = start(task, dfd, "." if scoped else filename)
    return _open(task, directory, filename, values.flags, values.mode, resolve & ~Resolve.CACHED)


@syscall(aarch64=57, x86_64=3)
def close(task: Task, fd: int) -> int:
    """close(2)"""
    task.files.close(fd)
    return 0


CLOSE_RANGE_UNSHARE = 2  # uapi/linux/close_range.h
CLOSE_RANGE_CLOEXEC = 4


@syscall(aarch64=436, x86_64=436)
def close_range(task: Task, fd: UInt, max_fd: UInt, flags: UInt) -> int:
    """close_range(2)"""
    if flags & ~(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) or fd > max_fd:
        raise LinuxError(EINVAL, f"close_range({fd}, {max_fd}, {flags:#x})")
    if flags & CLOSE_RANGE_UNSHARE:
        task.kernel.lifecycle.unshare_files(task)
    for descriptor in task.files.descriptors():
        if fd <= descriptor <= max_fd:
            if flags & CLOSE_RANGE_CLOEXEC:
                task.files.set_cloexec(descriptor, True)
            else:
                task.files.close(descriptor)
    return 0
