"""Process memory as files: /proc/PID/mem, which is the memory itself, and pagemap, which says what is there."""

from __future__ import annotations

import stat as file_mode
import struct
from collections.abc import Callable

from emulator.linux.errors import EACCES, EINVAL, EIO, LinuxError
from emulator.linux.fs.nodes import BodyOfNode, Regular
from emulator.linux.fs.virtual_files import VirtualNode, Volume
from emulator.linux.mm.mapping import PAGE_SHIFT
from emulator.linux.mm.remote_access import read_remote, write_remote
from emulator.linux.process.task import Task
from emulator.linux.ptrace.permission import may_access

ENTRY_BYTES = 8  # of pagemap, for each page
PRESENT, OF_FILE, EXCLUSIVE, SOFT_DIRTY = 1 << 63, 1 << 61, 1 << 56, 1 << 55  # Documentation/admin-guide/mm/pagemap
MOST_ENTRIES = 1 << 16  # that one read gives

Read = Callable[[Task, int, int], bytes]  # at an offset, a number of bytes
Write = Callable[[Task, int, bytes], int]


class MemoryFile(VirtualNode, Regular):
    """A file of /proc/PID that is read, and perhaps written, at an offset which means an address."""

    __slots__ = ("read", "task", "write")

    def __init__(self, volume: Volume, task: Task, read: Read, write: Write | None, permissions: int) -> None:
        super().__init__(volume, file_mode.S_IFREG | permissions)
        self.task = task
        self.read = read
        self.write = write

    def open(self, *, write: bool, truncate: bool) -> MemoryBody:
        """EACCES for who may not trace the process (mm_access)."""
        if not may_access(self.task.kernel.calling(), self.task):
            raise LinuxError(EACCES, f"process {self.task.pid} is not one that the caller may trace")
        return MemoryBody(self)


class MemoryBody(BodyOfNode):
    """Such a file, open."""

    __slots__ = ()
    all_or_nothing = True
    _node: MemoryFile

    def read_at(self, offset: int, size: int) -> bytes:
        task = self._node.task
        return b"" if task.exit_code is not None else self._node.read(task, offset, size)

    def write_at(self, offset: int, data: bytes) -> int:
        if self._node.write is None:
            raise LinuxError(EINVAL, "this file of the kernel cannot be written")
        return self._node.write(self._node.task, offset, data)

    def size(self) -> int:
        return self._node.task.mm.layout.task_size

    def truncate(self, size: int) -> None:
        """O_TRUNC on a file of /proc does nothing."""


def read_memory(task: Task, address: int, size: int) -> bytes:
    """/proc/PID/mem: up to the first page that cannot be read; EIO if that is the first of all."""
    data = read_remote(task.mm, address, size)
    if size and not data:
        raise LinuxError(EIO, f"nothing to read at {address:#x}")
    return data


def write_memory(task: Task, address: int, data: bytes) -> int:
    """/proc/PID/mem: also where the process itself may only read. EIO if that is nowhere."""
    done = write_remote(task.mm, address, data)
    if data and not done:
        raise LinuxError(EIO, f"nothing to write at {address:#x}")
    return done


def read_pagemap(task: Task, offset: int, size: int) -> bytes:
    """/proc/PID/pagemap: an entry for each page, in whole ones. The guest is root and sees the frames."""
    if offset % ENTRY_BYTES or size % ENTRY_BYTES:
        raise LinuxError(EINVAL, f"{size} bytes at {offset} of entries of {ENTRY_BYTES}")
    first = offset // ENTRY_BYTES
    last = min(first + min(size // ENTRY_BYTES, MOST_ENTRIES), task.mm.layout.task_size >> PAGE_SHIFT)
    return b"".join(struct.pack("<Q", _entry(task, page << PAGE_SHIFT)) for page in range(first, last))


def _entry(task: Task, address: int) -> int:
    entry = task.mm.space.lookup(address)
    if entry is None:
        return 0
    mapping = task.mm.find(address)
    of_file = mapping is not None and mapping.shared
    users = task.kernel.memory.references(entry[0])
    exclusive = users == (2 if of_file else 1)  # the page cache has those of files, too
    return PRESENT | SOFT_DIRTY | (OF_FILE if of_file else 0) | (EXCLUSIVE if exclusive else 0) | entry[0]
