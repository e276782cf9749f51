"""splice, tee and vmsplice: bytes between pipes and files without user memory. fs/splice.c"""

from __future__ import annotations

import stat as file_mode
import struct

from emulator.linux.errors import EAGAIN, EBADF, EINVAL, ESPIPE, LinuxError
from emulator.linux.fs.destination import KernelBuffer, in_memory
from emulator.linux.fs.file import O_APPEND, O_NONBLOCK, File, held
from emulator.linux.fs.open_files import OpenFile
from emulator.linux.fs.pipes import Pipe, PipeEnd, check_readers, read_pipe, write_pipe
from emulator.linux.fs.standard_streams import PIPE_BYTES, StandardStream
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping, WaitQueue, wait_until
from emulator.linux.syscalls.input_output import read_bytes, write_file
from emulator.linux.syscalls.table import Address, Size, UInt, syscall
from emulator.linux.syscalls.user_vectors import vectors

SPLICE_F_NONBLOCK, ALL_FLAGS = 2, 15  # uapi/linux/splice.h; MOVE, MORE and GIFT change nothing that could be seen


def is_pipe(file: File) -> bool:
    """One of the guest's, or one that the user gave it."""
    return isinstance(file, PipeEnd) or (
        isinstance(file, StandardStream) and file_mode.S_ISFIFO(file.attributes().mode)
    )


def _until(task: Task, queue: WaitQueue, ready: bool, what: str, *, waits: bool) -> Sleeping[bool]:
    """One look, and one sleep if it was in vain; whether there was nothing to wait for."""
    if ready:
        return True
    if not waits:
        raise LinuxError(EAGAIN, what)
    before = queue.wakes
    yield from wait_until(task, lambda: queue.wakes != before, lambda: (queue,), what)
    return False


def _await_data(task: Task, pipe: Pipe, *, waits: bool) -> Sleeping[bool]:
    """Whether bytes have come; False at the end."""
    while pipe.writers:
        if (yield from _until(task, pipe.arrived, bool(pipe.data), "a splice from an empty pipe", waits=waits)):
            return True
    return bool(pipe.data)


def _await_room(task: Task, pipe: Pipe, *, waits: bool) -> Sleeping[int]:
    """How many bytes can be written."""
    while True:
        check_readers(pipe, "a splice to a pipe")
        room = pipe.capacity - len(pipe.data)
        if (yield from _until(task, pipe.freed, room > 0, "a splice to a full pipe", waits=waits)):
            return room


def _put_back(pipe: Pipe, rest: bytes) -> None:
    """What the target had no room for is the next one to be read."""
    if rest:
        pipe.superblock.budget.take(len(rest))
        pipe.data.put_back(rest)
        pipe.arrived.wake()


def _taken(source: PipeEnd, size: int) -> bytes:
    buffer = KernelBuffer(size)
    read_pipe(source.pipe, buffer, source.path)
    return buffer.data


def _from_pipe(task: Task, source: File, size: int, *, waits: bool) -> Sleeping[bytes]:
    if not isinstance(source, PipeEnd):
        return (yield from read_bytes(task, source, min(size, PIPE_BYTES)))
    there = yield from _await_data(task, source.pipe, waits=waits)
    return _taken(source, size) if there else b""


def _out_of_pipe(task: Task, source: File, target: File, at: int | None, size: int, *, waits: bool) -> Sleeping[int]:
    """From a pipe to a file: what is there now, as much as goes."""
    data = yield from _from_pipe(task, source, size, waits=waits)
    if not data:
        return 0
    written = 0
    try:
        if at is not None:
            written = target.write_at(task, at, data)
        else:
            written = yield from write_file(task, target, data)
    finally:
        if isinstance(source, PipeEnd):
            _put_back(source.pipe, data[written:])
    return written


def into_pipe(task: Task, source: File, at: int | None, target: File, size: int, *, waits: bool) -> Sleeping[int]:
    """From a file to a pipe: as much as there is room for."""
    room = PIPE_BYTES
    if isinstance(target, PipeEnd):
        room = yield from _await_room(task, target.pipe, waits=waits)
    wanted = min(size, room)
    data = yield from read_bytes(task, source, wanted, at)
    if not data:
        return 0
    if isinstance(target, PipeEnd):
        return write_pipe(target.pipe, data, target.path)
    return (yield from write_file(task, target, data))


def _between_pipes(task: Task, source: File, target: File, size: int, *, waits: bool) -> Sleeping[int]:
    if not isinstance(target, PipeEnd):
        return (yield from _out_of_pipe(task, source, target, None, size, waits=waits))
    if not isinstance(source, PipeEnd):
        return (yield from into_pipe(task, source, None, target, size, waits=waits))
    if source.pipe is target.pipe:
        raise LinuxError(EINVAL, "a splice from a pipe to itself")
    room = yield from _await_room(task, target.pipe, waits=waits)
    if not (yield from _await_data(task, source.pipe, waits=waits)):
        return 0
    return write_pipe(target.pipe, _taken(source, min(size, room)), target.path)


def user_offset(task: Task, address: int) -> int | None:
    """A file offset in user memory; None where there is none."""
    if not address:
        return None
    offset: int = struct.unpack("<q", task.mm.read(address, 8))[0]
    if offset < 0:
        raise LinuxError(EINVAL, f"offset {offset}")
    return offset


@syscall(aarch64=76, x86_64=275)
def splice(
    task: Task, fd_in: int, off_in: Address, fd_out: int, off_out: Address, len_: Size, flags: UInt
) -> int | Sleeping[int]:
    """splice(2)"""
    if not len_:
        return 0
    if flags & ~ALL_FLAGS:
        raise LinuxError(EINVAL, f"splice flags {flags:#x}")
    files = task.files.get(fd_in), task.files.get(fd_out)
    for file, offset in zip(files, (off_in, off_out), strict=True):
        if offset and is_pipe(file):
            raise LinuxError(ESPIPE, f"{file.path} is a pipe and has no offsets")
    return _holding(files, _splice(task, *files, off_in, off_out, len_, flags))


def _holding(files: tuple[File, ...], call: Sleeping[int]) -> Sleeping[int]:
    with held(*files):
        return (yield from call)


def _splice(
    task: Task, source: File, target: File, source_offset: int, target_offset: int, size: int, flags: int
) -> Sleeping[int]:
    source_at, target_at = user_offset(task, source_offset), user_offset(task, target_offset)
    if not source.readable or not target.writable:
        raise LinuxError(EBADF, f"from {source.path} to {target.path}")
    waits = not flags & SPLICE_F_NONBLOCK
    waits = waits and not any(file.flags & O_NONBLOCK for file in (source, target) if is_pipe(file))
    if is_pipe(source) and is_pipe(target):
        return (yield from _between_pipes(task, source, target, size, waits=waits))
    if is_pipe(source):
        if target.flags & O_APPEND or (target_at is not None and not isinstance(target, OpenFile)):
            raise LinuxError(EINVAL, f"a splice to {target.path}")
        done = yield from _out_of_pipe(task, source, target, target_at, size, waits=waits)
    elif is_pipe(target):
        if source_at is not None and not isinstance(source, OpenFile):
            raise LinuxError(EINVAL, f"a splice from {source.path}")
        done = yield from into_pipe(task, source, source_at, target, size, waits=waits)
    else:
        raise LinuxError(EINVAL, f"neither {source.path} nor {target.path} is a pipe")
    for address, start in ((source_offset, source_at), (target_offset, target_at)):
        if start is not None:
            task.mm.write(address, (start + done).to_bytes(8, "little"))
    return done


@syscall(aarch64=77, x86_64=276)
def tee(task: Task, fdin: int, fdout: int, len_: Size, flags: UInt) -> int | Sleeping[int]:
    """tee(2): what is read stays to be read."""
    if flags & ~ALL_FLAGS:
        raise LinuxError(EINVAL, f"tee flags {flags:#x}")
    if not len_:
        return 0
    ends = task.files.get(fdin), task.files.get(fdout)
    if not ends[0].readable or not ends[1].writable:
        raise LinuxError(EBADF, f"from {ends[0].path} to {ends[1].path}")
    one, other = ends
    if not isinstance(one, PipeEnd) or not isinstance(other, PipeEnd) or one.pipe is other.pipe:
        raise LinuxError(EINVAL, f"{one.path} and {other.path} are not two pipes of the machine's")
    waits = not flags & SPLICE_F_NONBLOCK and not (one.flags | other.flags) & O_NONBLOCK
    return _holding(ends, _tee(task, one.pipe, other, len_, waits=waits))


def _tee(task: Task, source: Pipe, target: PipeEnd, size: int, *, waits: bool) -> Sleeping[int]:
    if not (yield from _await_data(task, source, waits=waits)):
        return 0
    room = yield from _await_room(task, target.pipe, waits=waits)
    return write_pipe(target.pipe, bytes(source.data[: min(size, room)]), target.path)


@syscall(aarch64=75, x86_64=278)
def vmsplice(task: Task, fd: int, uiov: Address, nr_segs: Size, flags: UInt) -> Sleeping[int]:
    """vmsplice(2). The pages are copied, also of a gift."""
    if flags & ~ALL_FLAGS:
        raise LinuxError(EINVAL, f"vmsplice flags {flags:#x}")
    file = task.files.get(fd)
    if not isinstance(file, PipeEnd):
        raise LinuxError(EBADF, f"{file.path} is no pipe of the machine's")
    pieces = vectors(task, uiov, min(nr_segs, 0x7FFF_FFFF))
    size = sum(length for _, length in pieces)
    if not size:
        return 0
    waits = not flags & SPLICE_F_NONBLOCK
    if not file.writable:
        there = yield from _await_data(task, file.pipe, waits=waits)
        return read_pipe(file.pipe, in_memory(task.mm, pieces), file.path) if there else 0
    room = yield from _await_room(task, file.pipe, waits=waits)
    data = b""
    for base, length in pieces:
        if length and len(data) < room:
            data += task.mm.read(base, min(length, room - len(data)))
    return write_pipe(file.pipe, data, file.path)
