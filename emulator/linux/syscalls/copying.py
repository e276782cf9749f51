"""Copying between open files without user memory: sendfile, copy_file_range."""

from __future__ import annotations

import struct
from contextlib import suppress

from emulator.linux.errors import EBADF, EINVAL, EISDIR, LinuxError
from emulator.linux.fs.file import O_APPEND, O_NONBLOCK, File
from emulator.linux.fs.open_files import SEEK_CUR, OpenDirectory, OpenFile
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping
from emulator.linux.syscalls.failures import cut_short
from emulator.linux.syscalls.input_output import ends_early, read_bytes, readable, writable, write_file
from emulator.linux.syscalls.splicing import into_pipe, is_pipe, user_offset
from emulator.linux.syscalls.table import Address, Size, UInt, syscall
from emulator.linux.syscalls.user_vectors import MAX_BYTES, PORTION_BYTES

COPY_BYTES = 1 << 20


def copy(
    task: Task, source: File, source_at: int | None, target: File, target_at: int | None, size: int
) -> Sleeping[int]:
    """Move bytes between open files without user memory. None: at the file's position."""
    done = 0
    while done < size:
        if done and not done % PORTION_BYTES and (yield from ends_early(task)):
            break
        wanted = min(size - done, COPY_BYTES)
        data = yield from read_bytes(task, source, wanted, None if source_at is None else source_at + done)
        if not data:
            break
        try:
            if target_at is None:
                written = yield from write_file(task, target, data)
            else:
                written = target.write_at(task, target_at + done, data)
        except LinuxError as error:
            _give_back(source, source_at, len(data))
            return cut_short(task, error, done)
        done += written
        if written < len(data):
            _give_back(source, source_at, len(data) - written)
            break
        if len(data) < wanted:
            break
    return done


def _give_back(source: File, source_at: int | None, count: int) -> None:
    """What the target had no room for is read again."""
    if source_at is None:
        with suppress(LinuxError):  # a pipe's bytes are gone
            source.seek(-count, SEEK_CUR)


def _check_sendfile(source: File, target: File) -> None:
    """splice_direct_to_actor(), fs/splice.c: not from what has no position."""
    if target.flags & O_APPEND:
        raise LinuxError(EINVAL, f"{target.path} is open for appending")
    try:
        source.seek(0, SEEK_CUR)
    except LinuxError:
        raise LinuxError(EINVAL, f"{source.path} has no position") from None


@syscall(aarch64=71, x86_64=40)
def sendfile(task: Task, out_fd: int, in_fd: int, offset: Address, count: Size) -> Sleeping[int]:
    """sendfile(2). To a pipe it is a splice(2): it fills what room there is."""
    start = user_offset(task, offset)
    source, target = readable(task, in_fd), writable(task, out_fd)
    count = min(count, MAX_BYTES)
    if is_pipe(source):
        raise LinuxError(EINVAL, f"{source.path} is a pipe: splice(2) reads those")
    if is_pipe(target):
        done = yield from into_pipe(task, source, start, target, count, waits=not target.flags & O_NONBLOCK)
    else:
        _check_sendfile(source, target)
        done = yield from copy(task, source, start, target, None, count)
    if start is not None:
        task.mm.write(offset, struct.pack("<q", start + done))
    return done


def _check_copy(source: File, target: File, source_at: int | None, target_at: int | None, size: int) -> int:
    """generic_copy_file_checks(): between regular files, not onto itself; how much there is."""
    if not source.readable or not target.writable or target.flags & O_APPEND:
        raise LinuxError(EBADF, f"from {source.path} to {target.path}")
    if isinstance(source, OpenDirectory):
        raise LinuxError(EISDIR, source.path)
    if not isinstance(source, OpenFile) or not isinstance(target, OpenFile):
        raise LinuxError(EINVAL, f"{source.path} and {target.path} are not two regular files")
    start = source.position if source_at is None else source_at
    into = target.position if target_at is None else target_at
    size = max(0, min(size, source.body.size() - start))
    if source.lock_key() == target.lock_key() and start < into + size and into < start + size:
        raise LinuxError(EINVAL, f"{size} bytes at {start} to {into} of the same file")
    return size


@syscall(aarch64=285, x86_64=326)
def copy_file_range(
    task: Task, fd_in: int, off_in: Address, fd_out: int, off_out: Address, len_: Size, flags: UInt
) -> Sleeping[int]:
    """copy_file_range(2)"""
    if flags:
        raise LinuxError(EINVAL, f"copy_file_range flags {flags:#x}: there are none")
    source_at, target_at = user_offset(task, off_in), user_offset(task, off_out)
    files = task.files.get(fd_in), task.files.get(fd_out)
    len_ = _check_copy(*files, source_at, target_at, len_)
    done = yield from copy(task, files[0], source_at, files[1], target_at, min(len_, MAX_BYTES))
    for address, start in ((off_in, source_at), (off_out, target_at)):
        if start is not None:
            task.mm.write(address, struct.pack("<q", start + done))
    return done
