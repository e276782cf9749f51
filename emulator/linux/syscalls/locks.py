"""Locks: fcntl(2)'s commands on ranges of a file, for a process or for an open file (F_OFD_*), and flock(2)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable

from emulator.linux.errors import EAGAIN, EBADF, EDEADLK, EINVAL, EOVERFLOW, LinuxError
from emulator.linux.fs.file import File, held
from emulator.linux.fs.locks import END_OF_FILE, FileLocks, Lock
from emulator.linux.fs.open_files import SEEK_CUR, SEEK_END, SEEK_SET, OpenFile
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping, wait_until
from emulator.linux.syscalls.at import tree
from emulator.linux.syscalls.table import UInt, syscall

F_RDLCK, F_WRLCK, F_UNLCK = range(3)  # uapi/asm-generic/fcntl.h
FLOCK = struct.Struct("<hh4xqqi4x")  # struct flock: type, whence, start, length, pid
LOCK_SH, LOCK_EX, LOCK_NB, LOCK_UN = 1, 2, 4, 8

Command = Callable[[Task, File, int, Hashable], int | Sleeping[int]]  # task, file, struct flock, owner


def _asked(task: Task, file: File, address: int, owner: Hashable) -> tuple[int, Lock]:
    """The type and the range of a struct flock."""
    kind, whence, start, length, pid = FLOCK.unpack(task.mm.read(address, FLOCK.size))
    if whence == SEEK_SET:
        base = 0
    elif isinstance(file, OpenFile) and whence in (SEEK_CUR, SEEK_END):
        base = file.position if whence == SEEK_CUR else file.body.size()
    else:
        raise LinuxError(EINVAL, f"whence {whence} of a lock of {file.path}")
    start += base
    end = start + length if length else END_OF_FILE
    if length < 0:
        start, end = end, start
    if kind not in (F_RDLCK, F_WRLCK, F_UNLCK) or start < 0:
        raise LinuxError(EINVAL, f"a lock of type {kind} from byte {start}")
    if end > END_OF_FILE:
        raise LinuxError(EOVERFLOW, f"a lock up to byte {end}")
    if owner is file and pid:
        raise LinuxError(EINVAL, f"l_pid {pid} of an open file's lock; it is 0")
    return kind, Lock(owner, kind == F_WRLCK, start, end, -1 if owner is file else task.pid)


def _range_locks(task: Task, file: File) -> FileLocks:
    return tree(task).locks.ranges(file.lock_key())


def _own(task: Task, file: File, locks: FileLocks, owner: Hashable) -> None:
    """Whoever has a lock keeps the file's locks, until it closes the file."""
    if owner is file:
        file.locked.add(locks)
    else:
        task.files.locked[file.lock_key()] = locks


def query(task: Task, file: File, address: int, owner: Hashable) -> int:
    kind, wanted = _asked(task, file, address, owner)
    if kind == F_UNLCK:
        raise LinuxError(EINVAL, "a query for an unlock")
    found = _range_locks(task, file).conflict(wanted)
    if found is None:
        task.mm.write(address, struct.pack("<h", F_UNLCK))
        return 0
    length = found.end - found.start if found.end != END_OF_FILE else 0
    kind = F_WRLCK if found.exclusive else F_RDLCK
    task.mm.write(address, FLOCK.pack(kind, SEEK_SET, found.start, length, found.pid))
    return 0


def _take(task: Task, file: File, address: int, owner: Hashable) -> tuple[FileLocks, Lock] | None:
    """None if it is done; otherwise what there is to wait for."""
    kind, wanted = _asked(task, file, address, owner)
    if (kind == F_RDLCK and not file.readable) or (kind == F_WRLCK and not file.writable):
        raise LinuxError(EBADF, f"{file.path} is not open for what lock type {kind} needs")
    locks = _range_locks(task, file)
    if kind == F_UNLCK:
        locks.give(wanted)
    elif not locks.take(wanted):
        return locks, wanted
    else:
        _own(task, file, locks, owner)
    return None


def take(task: Task, file: File, address: int, owner: Hashable) -> int:
    if _take(task, file, address, owner) is not None:
        raise LinuxError(EAGAIN, f"{file.path} is locked by somebody else")
    return 0


def wait(task: Task, file: File, address: int, owner: Hashable) -> int | Sleeping[int]:
    blocked = _take(task, file, address, owner)
    return 0 if blocked is None else _take_later(task, file, owner, *blocked)


def _take_later(task: Task, file: File, owner: Hashable, locks: FileLocks, wanted: Lock) -> Sleeping[int]:
    all_locks = tree(task).locks
    if owner is not file and all_locks.would_deadlock(wanted, locks):
        raise LinuxError(EDEADLK, f"{file.path}: who has the lock waits for this process")
    all_locks.waiting[owner] = locks, wanted
    with held(file):
        try:
            yield from wait_until(task, lambda: locks.take(wanted), lambda: (locks.changed,), f"a lock of {file.path}")
        finally:
            all_locks.waiting.pop(owner, None)
        _own(task, file, locks, owner)
    return 0


def for_process(command: Command) -> Callable[[Task, int, File, int], int | Sleeping[int]]:
    """F_GETLK, F_SETLK, F_SETLKW: `query`, `take` and `wait` as fcntl(2) calls them."""
    return lambda task, descriptor, file, address: command(task, file, address, task.files)


def for_open_file(command: Command) -> Callable[[Task, int, File, int], int | Sleeping[int]]:
    """F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW"""
    return lambda task, descriptor, file, address: command(task, file, address, file)


@syscall(aarch64=32, x86_64=73)
def flock(task: Task, fd: int, cmd: UInt) -> int | Sleeping[int]:
    """flock(2). Another kind of lock replaces the one that the open file has, which is given up first."""
    file = task.files.get(fd)
    kind = cmd & ~LOCK_NB
    if kind not in (LOCK_SH, LOCK_EX, LOCK_UN):
        raise LinuxError(EINVAL, f"flock operation {cmd:#x}")
    locks = tree(task).locks.whole(file.lock_key())
    wanted = Lock(file, kind == LOCK_EX)
    if kind == LOCK_UN:
        locks.drop(file)
        return 0
    if not locks.take(wanted):
        locks.drop(file)
        if cmd & LOCK_NB:
            raise LinuxError(EAGAIN, f"{file.path} is locked by somebody else")
        return _flock_later(task, file, locks, wanted)
    file.locked.add(locks)
    return 0


def _flock_later(task: Task, file: File, locks: FileLocks, wanted: Lock) -> Sleeping[int]:
    with held(file):
        yield from wait_until(task, lambda: locks.take(wanted), lambda: (locks.changed,), f"a lock of {file.path}")
        file.locked.add(locks)
    return 0
