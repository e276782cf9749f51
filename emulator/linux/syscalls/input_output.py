"""Reading and writing what is open: read, write, their vector and offset forms, lseek.

However much a call asks for, only a portion of it is held at once. As in Linux, an error after the first portion is
the next call's: this one says how far it came.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.linux.errors import EAGAIN, EBADF, EFAULT, EINVAL, EOPNOTSUPP, ERESTARTSYS, LinuxError
from emulator.linux.fs.destination import (
    Destination,
    KernelBuffer,
    Piece,
    UserBuffer,
    check_range,
    in_memory,
    read_pieces,
)
from emulator.linux.fs.file import O_NONBLOCK, POLLERR, POLLHUP, POLLIN, POLLOUT, File, held
from emulator.linux.fs.open_files import OpenFile
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleep, Sleeping, Wake, wait_until, work
from emulator.linux.syscalls.failures import cut_short
from emulator.linux.syscalls.table import Address, Long, Size, Support, UInt, Unused, syscall
from emulator.linux.syscalls.user_vectors import MAX_BYTES, PORTION_BYTES, portions, vectors

BYTES_PER_CYCLE = 8  # of portions but the last, on every core: a call that moves GB takes time, however few there are


def readable(task: Task, descriptor: int) -> File:
    file = task.files.get(descriptor)
    if not file.readable:
        raise LinuxError(EBADF, f"descriptor {descriptor} is not open for reading")
    return file


def writable(task: Task, descriptor: int) -> File:
    file = task.files.get(descriptor)
    if not file.writable:
        raise LinuxError(EBADF, f"descriptor {descriptor} is not open for writing")
    return file


def _waits(file: File, error: LinuxError) -> bool:
    return error.code == EAGAIN and not file.flags & O_NONBLOCK


def _readable_again(task: Task, file: File) -> Sleeping[bool]:
    """Whether there is anything to come; else the read is over."""
    ready = POLLIN | POLLERR | POLLHUP
    until_ns = None if file.read_timeout_ns is None else task.clock.elapsed_ns() + file.read_timeout_ns
    what = f"a read of {file.path}"
    if (yield from wait_until(task, lambda: bool(file.poll() & ready), file.wait_queues, what, until_ns)):
        return True
    if file.silence_ends:
        return False
    raise LinuxError(EAGAIN, f"{what}: the timeout is over")


def read_file(task: Task, file: File, destination: Destination) -> Sleeping[int]:
    """read(2) at the file's position, waiting if the file's user wants that."""
    try:
        return file.read(task, destination)
    except LinuxError as error:
        if not _waits(file, error):
            raise
    return (yield from _read_later(task, file, destination))


def read_bytes(task: Task, file: File, size: int, at: int | None = None) -> Sleeping[bytes]:
    """... into the kernel's own memory; `at` an offset if one is given."""
    buffer = KernelBuffer(size)
    if at is None:
        yield from read_file(task, file, buffer)
    else:
        file.read_at(task, at, buffer)
    return buffer.data


def _write_now(task: Task, file: File, data: bytes) -> int:
    """What can be written at once; 0 where it must wait."""
    try:
        return file.write(task, data)
    except LinuxError as error:
        if not _waits(file, error):
            raise
        return 0


def _gathered(task: Task, file: File, pieces: list[Piece]) -> bytes:
    """What of a process's memory is written: all of it, or as much as the file takes of what can be read."""
    readable = read_pieces(task.mm, pieces)
    size = sum(length for _, length in pieces)
    if len(readable) == size:
        return readable
    count = file.part_of_write(size, len(readable))
    if not count:
        raise LinuxError(EFAULT, f"{size - len(readable)} of {size} bytes cannot be read")
    return readable[:count].ljust(count, b"\0")


def _write_rest(task: Task, file: File, data: bytes, done: int) -> Sleeping[int]:
    """When `done` bytes have been written. An error after the first byte is the next call's, a signal's end, too."""
    ready = POLLOUT | POLLERR | POLLHUP
    what = f"a write of {file.path}"
    with held(file):
        while done < len(data) and not file.flags & O_NONBLOCK and (file.writes_all or not done):
            before = file.wakes()  # with room for others there may be none for this one
            until_ns = None if file.write_timeout_ns is None else task.clock.elapsed_ns() + file.write_timeout_ns
            try:
                while file.wakes() == before or not file.poll() & ready:
                    wake = yield Sleep(file.wait_queues(), until_ns, what)
                    if wake is Wake.SIGNAL:
                        raise LinuxError(ERESTARTSYS, f"{what}: a signal came")
                    if wake is Wake.TIMEOUT:
                        raise LinuxError(EAGAIN, f"{what}: the timeout is over")
                file.check_waited_write()
                done += _write_now(task, file, data[done:])
            except LinuxError as error:
                return cut_short(task, error, done)
    return done


def write_file(task: Task, file: File, data: bytes) -> Sleeping[int]:
    """write(2) at the file's position, waiting if the file's user wants that."""
    return (yield from _write_rest(task, file, data, _write_now(task, file, data)))


@syscall(aarch64=63, x86_64=0)
def read(task: Task, fd: int, buf: Address, count: Size) -> int | Sleeping[int]:
    """read(2). What need not wait is no generator: they take half a microsecond."""
    file = readable(task, fd)
    mm = task.mm
    if buf + count > mm.layout.task_size:  # `check_range` without a call, which every read would pay
        check_range(mm, buf, count)
    if count > PORTION_BYTES:
        pieces = [(buf, min(count, MAX_BYTES))]
        return _read_into(task, file, pieces, lambda done, to: read_file(task, file, to))
    destination = UserBuffer(mm, buf, count)
    try:
        return file.read(task, destination)
    except LinuxError as error:
        if _waits(file, error):
            return _read_later(task, file, destination)
        raise


def _read_later(task: Task, file: File, destination: Destination) -> Sleeping[int]:
    """When there is something; 0 at the end."""
    with held(file):
        while (yield from _readable_again(task, file)):
            try:
                return file.read(task, destination)
            except LinuxError as error:  # somebody else was first
                if not _waits(file, error):
                    raise
    return 0


@syscall(aarch64=64, x86_64=1)
def write(task: Task, fd: int, buf: Address, count: Size) -> int | Sleeping[int]:
    """write(2)"""
    file = writable(task, fd)
    mm = task.mm
    if buf + count > mm.layout.task_size:
        check_range(mm, buf, count)
    if count > PORTION_BYTES:
        return _write_from(task, file, [(buf, min(count, MAX_BYTES))], lambda done, data: write_file(task, file, data))
    try:
        data = mm.read(buf, count) if count else b""
    except LinuxError:
        data = _gathered(task, file, [(buf, count)])
    done = _write_now(task, file, data)
    if done == len(data) or file.flags & O_NONBLOCK:
        return done
    return _write_rest(task, file, data, done)


@syscall(aarch64=67, x86_64=17)
def pread64(task: Task, fd: int, buf: Address, count: Size, pos: Long) -> Sleeping[int]:
    """pread(2)"""
    if pos < 0:
        raise LinuxError(EINVAL, f"offset {pos}")
    file = readable(task, fd)
    check_range(task.mm, buf, count)
    pieces = [(buf, min(count, MAX_BYTES))]
    return _read_into(task, file, pieces, lambda done, to: _read_at(task, file, pos + done, to))


@syscall(aarch64=68, x86_64=18)
def pwrite64(task: Task, fd: int, buf: Address, count: Size, pos: Long) -> Sleeping[int]:
    """pwrite(2)"""
    if pos < 0:
        raise LinuxError(EINVAL, f"offset {pos}")
    file = writable(task, fd)
    pieces = [(buf, min(count, MAX_BYTES))]
    return _write_from(task, file, pieces, lambda done, data: _write_at(task, file, pos + done, data))


def ends_early(task: Task, file: File | None = None, *, size: int = PORTION_BYTES) -> Sleeping[bool]:
    """After a portion, when it has taken its time: whether a signal ends the call.

    Any does where no `file` is moved, or one that is no regular file; as in Linux only a fatal one where it is.
    """
    yield from work(size // BYTES_PER_CYCLE)
    return task.signals.fatal() if isinstance(file, OpenFile) else task.signals.deliverable()


def _read_into(
    task: Task, file: File, pieces: list[Piece], read: Callable[[int, Destination], Sleeping[int]]
) -> Sleeping[int]:
    """Fill `pieces` by `read(bytes done, destination)`, until there is less than there is room. How many bytes came."""
    done = 0
    parts = ([piece] for piece in pieces) if file.reads_each_piece else portions(pieces)
    with held(file):
        for part in parts:
            if done >= PORTION_BYTES and (yield from ends_early(task, file)):
                break
            destination = in_memory(task.mm, part)
            wanted = destination.left
            try:
                count = yield from read(done, destination)
            except LinuxError as error:
                return cut_short(task, error, done)
            done += count
            if count < wanted:
                break
    return done


def _write_from(
    task: Task, file: File, pieces: list[Piece], write: Callable[[int, bytes], Sleeping[int]]
) -> Sleeping[int]:
    """Give `pieces` to `write(bytes done, data)`, until it takes less than it is given. How many bytes went."""
    done = 0
    parts = ([piece] for piece in pieces) if file.writes_each_piece else portions(pieces)
    with held(file):
        for portion in parts:
            if done >= PORTION_BYTES and (yield from ends_early(task, file)):
                break
            try:
                data = _gathered(task, file, portion)
                written = yield from write(done, data)
            except LinuxError as error:
                return cut_short(task, error, done)
            done += written
            if written < sum(length for _, length in portion):
                break
    return done


def _read_at(task: Task, file: File, offset: int, destination: Destination) -> Sleeping[int]:
    """pread(2): what has offsets never waits."""
    yield from ()
    return file.read_at(task, offset, destination)


def _write_at(task: Task, file: File, offset: int, data: bytes) -> Sleeping[int]:
    yield from ()
    return file.write_at(task, offset, data)


@syscall(aarch64=65, x86_64=19)
def readv(task: Task, fd: int, vec: Address, vlen: int) -> Sleeping[int]:
    """readv(2)"""
    file = readable(task, fd)
    return _read_into(task, file, vectors(task, vec, vlen), lambda done, to: read_file(task, file, to))


@syscall(aarch64=66, x86_64=20)
def writev(task: Task, fd: int, vec: Address, vlen: int) -> Sleeping[int]:
    """writev(2)"""
    file = writable(task, fd)
    return _write_from(task, file, vectors(task, vec, vlen), lambda done, data: write_file(task, file, data))


@syscall(aarch64=69, x86_64=295)
def preadv(task: Task, fd: int, vec: Address, vlen: int, pos_l: Long, pos_h: Unused) -> Sleeping[int]:
    """preadv(2)"""
    if pos_l < 0:
        raise LinuxError(EINVAL, f"offset {pos_l}")
    file = readable(task, fd)
    pieces = vectors(task, vec, vlen)
    return _read_into(task, file, pieces, lambda done, to: _read_at(task, file, pos_l + done, to))


@syscall(aarch64=70, x86_64=296)
def pwritev(task: Task, fd: int, vec: Address, vlen: int, pos_l: Long, pos_h: Unused) -> Sleeping[int]:
    """pwritev(2)"""
    if pos_l < 0:
        raise LinuxError(EINVAL, f"offset {pos_l}")
    file = writable(task, fd)
    pieces = vectors(task, vec, vlen)
    return _write_from(task, file, pieces, lambda done, data: _write_at(task, file, pos_l + done, data))


RWF_HIPRI, RWF_DSYNC, RWF_SYNC, RWF_NOWAIT, RWF_APPEND = 1, 2, 4, 8, 16  # uapi/linux/fs.h
HINTS = RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT  # nothing here is faster, later or waits


@syscall(aarch64=286, x86_64=327, support=Support.PARTIAL, note="flags other than hints and RWF_APPEND are EOPNOTSUPP")
def preadv2(task: Task, fd: int, vec: Address, vlen: int, pos_l: Long, pos_h: Unused, flags: UInt) -> Sleeping[int]:
    """preadv2(2)"""
    if flags & ~(HINTS | RWF_APPEND):
        raise LinuxError(EOPNOTSUPP, f"preadv2 flags {flags:#x}")
    return readv(task, fd, vec, vlen) if pos_l == -1 else preadv(task, fd, vec, vlen, pos_l, pos_h)


def _append(task: Task, descriptor: int, vector: int, count: int, *, moves: bool) -> Sleeping[int]:
    """RWF_APPEND: to the file's end, wherever that was; the position follows if it was meant."""
    file = writable(task, descriptor)
    if not isinstance(file, OpenFile):
        return (yield from writev(task, descriptor, vector, count))
    end = file.body.size()
    done = yield from pwritev(task, descriptor, vector, count, end, 0)
    if moves:
        file.position = end + done
    return done


@syscall(aarch64=287, x86_64=328, support=Support.PARTIAL, note="flags other than hints and RWF_APPEND are EOPNOTSUPP")
def pwritev2(task: Task, fd: int, vec: Address, vlen: int, pos_l: Long, pos_h: Unused, flags: UInt) -> Sleeping[int]:
    """pwritev2(2)"""
    if flags & ~(HINTS | RWF_APPEND):
        raise LinuxError(EOPNOTSUPP, f"pwritev2 flags {flags:#x}")
    if flags & RWF_APPEND:
        return _append(task, fd, vec, vlen, moves=pos_l == -1)
    return writev(task, fd, vec, vlen) if pos_l == -1 else pwritev(task, fd, vec, vlen, pos_l, pos_h)


@syscall(aarch64=62, x86_64=8)
def lseek(task: Task, fd: int, offset: Long, whence: UInt) -> int:
    """lseek(2)"""
    return task.files.get(fd).seek(offset, whence)
