"""Hints and barriers about storage. What a guest writes is where it belongs at once: nothing is waited for."""

from __future__ import annotations

import stat as file_mode

from emulator.linux.errors import EINVAL, ESPIPE, LinuxError
from emulator.linux.fs.open_files import NodeFile, OpenDirectory, OpenFile
from emulator.linux.process.task import Task
from emulator.linux.syscalls.input_output import readable
from emulator.linux.syscalls.table import Long, Size, Support, UInt, syscall

AT_ONCE = "what is written is with the host at once; whether the host's disk has it is not the guest's business"
HINT = "there is no cache that a hint could help"


def _synchronise(task: Task, descriptor: int) -> int:
    file = task.files.get(descriptor)
    if not isinstance(file, OpenFile | OpenDirectory):
        raise LinuxError(EINVAL, f"{file.path} cannot be synchronised")
    return 0


@syscall(aarch64=82, x86_64=74, support=Support.ACCEPTED, note=AT_ONCE)
def fsync(task: Task, fd: int) -> int:
    """fsync(2)"""
    return _synchronise(task, fd)


@syscall(aarch64=83, x86_64=75, support=Support.ACCEPTED, note=AT_ONCE)
def fdatasync(task: Task, fd: int) -> int:
    """fdatasync(2)"""
    return _synchronise(task, fd)


@syscall(aarch64=81, x86_64=162, support=Support.ACCEPTED, note=AT_ONCE)
def sync(task: Task) -> int:
    """sync(2)"""
    return 0


@syscall(aarch64=267, x86_64=306, support=Support.ACCEPTED, note=AT_ONCE)
def syncfs(task: Task, fd: int) -> int:
    """syncfs(2)"""
    task.files.get(fd)
    return 0


@syscall(aarch64=84, x86_64=277, support=Support.ACCEPTED, note=AT_ONCE)
def sync_file_range(task: Task, fd: int, offset: Long, nbytes: Long, flags: UInt) -> int:
    """sync_file_range(2)"""
    if offset < 0 or nbytes < 0 or flags & ~7:
        raise LinuxError(EINVAL, f"sync_file_range({offset}, {nbytes}, {flags:#x})")
    return _synchronise(task, fd)


@syscall(aarch64=223, x86_64=221, support=Support.ACCEPTED, note=HINT)
def fadvise64(task: Task, fd: int, offset: Long, len_: Long, advice: int) -> int:
    """posix_fadvise(2)"""
    file = task.files.get(fd)
    if not isinstance(file, NodeFile) or file_mode.S_ISFIFO(file.attributes().mode):
        raise LinuxError(ESPIPE, f"{file.path} is a pipe")
    if not 0 <= advice <= 5:
        raise LinuxError(EINVAL, f"advice {advice} is not one of 0..5")
    return 0


@syscall(aarch64=213, x86_64=187, support=Support.ACCEPTED, note=HINT)
def readahead(task: Task, fd: int, offset: Long, count: Size) -> int:
    """readahead(2)"""
    if not isinstance(readable(task, fd), OpenFile):
        raise LinuxError(EINVAL, f"descriptor {fd} is not a regular file")
    return 0
