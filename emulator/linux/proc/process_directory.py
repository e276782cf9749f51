"""/proc/PID: a process as a directory: its texts, links, and the files that it has open."""

from __future__ import annotations

import os
import stat as file_mode
from collections.abc import Callable, Iterable
from typing import TypeVar

from emulator.linux.errors import ENOENT, ESRCH, LinuxError
from emulator.linux.fs.attributes import Attributes, DirectoryEntry
from emulator.linux.fs.nodes import Node
from emulator.linux.fs.open_files import NodeFile
from emulator.linux.fs.paths import Dentry, MagicLink
from emulator.linux.fs.virtual_files import TextFile, TextLink, VirtualDirectory, Volume
from emulator.linux.proc.namespaces import namespaces
from emulator.linux.proc.process_memory import MemoryFile, read_memory, read_pagemap, write_memory
from emulator.linux.proc.process_texts import PROCESS_LINKS, PROCESS_TEXTS
from emulator.linux.process.task import Process, Task

T = TypeVar("T")

# Files of /proc/PID that hold what they are about as long as they are open; those of memory can be empty, though.
HELD = ("auxv", "environ", "mountinfo", "mounts", "setgroups", "uid_map", "gid_map")
OF_MEMORY = ("cmdline", "coredump_filter", "environ", "maps", "smaps")


class DescriptorLink(MagicLink):
    """/proc/PID/fd/N: leads to what the descriptor has open, whatever its name is now."""

    __slots__ = ("_descriptor", "_inode", "_task", "_volume")

    def __init__(self, volume: Volume, task: Task, descriptor: int, inode: int) -> None:
        self._volume = volume
        self._task = task
        self._descriptor = descriptor
        self._inode = inode

    @property
    def inode(self) -> int:
        return self._inode

    def attributes(self) -> Attributes:
        file = self._task.files.get(self._descriptor)
        permissions = (0o500 if file.readable else 0) | (0o300 if file.writable else 0)
        return self._volume.attributes(self._inode, file_mode.S_IFLNK | permissions, 64)

    def target(self) -> str:
        return self._task.files.get(self._descriptor).path or "anon_inode:[file]"

    def destination(self) -> Dentry:
        file = self._task.files.get(self._descriptor)
        if not isinstance(file, NodeFile) or file.dentry is None:
            raise LinuxError(ENOENT, f"{file.path or type(file).__name__} cannot be opened by its name in /proc")
        return file.dentry


class DescriptorDirectory(VirtualDirectory):
    """/proc/PID/fd"""

    __slots__ = ("_inodes", "_task")

    def __init__(self, volume: Volume, task: Task) -> None:
        super().__init__(volume)
        self._task = task
        self._inodes: dict[int, int] = {}

    def _link(self, descriptor: int) -> DescriptorLink:
        inode = self._inodes.get(descriptor)
        if inode is None:
            inode = self._inodes[descriptor] = self.volume.superblock.inodes.new()
        return DescriptorLink(self.volume, self._task, descriptor, inode)

    def lookup(self, name: str) -> Node | None:
        if not name.isdecimal() or int(name) not in self._task.files.descriptors():
            return None
        return self._link(int(name))

    def entries(self) -> Iterable[DirectoryEntry]:
        return [
            DirectoryEntry(self._link(descriptor).inode, file_mode.S_IFLNK, str(descriptor).encode())
            for descriptor in self._task.files.descriptors()
        ]


class DescriptorInfoDirectory(DescriptorDirectory):
    """/proc/PID/fdinfo"""

    __slots__ = ()

    def lookup(self, name: str) -> Node | None:
        if super().lookup(name) is None:
            return None
        file = self._task.files.get(int(name))
        position = getattr(file, "position", 0)
        head = f"pos:\t{position}\nflags:\t0{file.flags:o}\nmnt_id:\t20\n"
        return TextFile(self.volume, lambda: head + file.details())

    def entries(self) -> Iterable[DirectoryEntry]:
        return [
            DirectoryEntry(entry.inode, file_mode.S_IFREG, entry.name) for entry in super().entries()
        ]  # fmt: skip


class ProcessDirectory(VirtualDirectory):
    """/proc/PID"""

    __slots__ = ("process",)

    def __init__(self, volume: Volume, process: Process) -> None:
        super().__init__(volume)
        self.process = process


class TaskDirectories:
    """The directories of those tasks that somebody has looked at."""

    def __init__(self, volume: Volume, *, with_tasks: bool) -> None:
        self._volume = volume
        self._with_tasks = with_tasks
        self._known: dict[int, tuple[Task, VirtualDirectory]] = {}

    def of(self, task: Task) -> VirtualDirectory:
        known = self._known.get(task.tid)
        if known is None or known[0] is not task:  # execve of a thread gives it the main thread's number
            known = self._known[task.tid] = task, _process_directory(self._volume, task, with_tasks=self._with_tasks)
        return known[1]


def _process_directory(volume: Volume, task: Task, *, with_tasks: bool) -> VirtualDirectory:
    """/proc/PID, and without its threads /proc/PID/task/TID."""
    directory = ProcessDirectory(volume, task.process) if with_tasks else VirtualDirectory(volume)
    for name, text in PROCESS_TEXTS.items():
        directory.add_text(name, _of_living(name, text, task))
    for name, target in PROCESS_LINKS.items():
        directory.add(name, TextLink(volume, _bound(target, task)))

    def store_comm(data: bytes) -> None:
        task.kernel.rename(task, os.fsdecode(data.rstrip(b"\n")))

    directory.add_text("comm", _of_living("comm", lambda task: task.comm + "\n", task), store_comm)
    directory.add("mem", MemoryFile(volume, task, read_memory, write_memory, 0o600))
    directory.add("pagemap", MemoryFile(volume, task, read_pagemap, None, 0o400))
    directory.add("fd", DescriptorDirectory(volume, task))
    directory.add("fdinfo", DescriptorInfoDirectory(volume, task))
    directory.add("ns", namespaces(volume))
    if with_tasks:
        directory.add("task", ThreadsDirectory(volume, task.process))
    return directory


class ThreadsDirectory(VirtualDirectory):
    """/proc/PID/task"""

    __slots__ = ("_directories", "_process")

    def __init__(self, volume: Volume, process: Process) -> None:
        super().__init__(volume)
        self._process = process
        self._directories = TaskDirectories(volume, with_tasks=False)

    def lookup(self, name: str) -> Node | None:
        thread = next((thread for thread in self._process.threads if str(thread.tid) == name), None)
        return None if thread is None else self._directories.of(thread)

    def entries(self) -> Iterable[DirectoryEntry]:
        nodes = [(thread.tid, self._directories.of(thread)) for thread in self._process.threads]
        return [DirectoryEntry(node.inode, node.file_type, str(tid).encode()) for tid, node in nodes]


def _of_living(name: str, text: Callable[[Task], str | bytes], task: Task) -> Callable[[], str | bytes]:
    """What a file of /proc/PID says, which may be open longer than there is a process: get_proc_task's ESRCH then.

    A zombie has lost its memory, and is there until somebody has waited for it.
    """

    def made() -> str | bytes:
        ended = task.exit_code is not None
        if (name not in HELD and task.kernel.tasks.get(task.tid) is not task) or (name == "smaps_rollup" and ended):
            raise LinuxError(ESRCH, f"/proc/{task.pid}/{name}: nothing of the process is left")
        return b"" if name in OF_MEMORY and ended else text(task)

    return made


def _bound(function: Callable[[Task], T], task: Task) -> Callable[[], T]:
    return lambda: function(task)
