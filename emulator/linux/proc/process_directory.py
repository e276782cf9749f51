"""/proc/PID: a process as a directory: its texts, links, and the files that it has open."""

from __future__ import annotations

import os
import stat as file_mode
from collections.abc import Callable, Collection, Iterable

from emulator.linux.errors import ENOENT, ESRCH, LinuxError
from emulator.linux.fs.attributes import Attributes, DirectoryEntry
from emulator.linux.fs.nodes import Node
from emulator.linux.fs.open_files import NodeFile
from emulator.linux.fs.paths import Dentry, MagicLink
from emulator.linux.fs.virtual_files import TextFile, TextLink, VirtualDirectory, Volume
from emulator.linux.proc import namespaces
from emulator.linux.proc.process_memory import MemoryFile, read_memory, read_pagemap, write_memory
from emulator.linux.proc.process_texts import PROCESS_LINKS, PROCESS_TEXTS
from emulator.linux.process.task import Process, Task

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


class TaskDirectory(VirtualDirectory):
    """/proc/PID, /proc/PID/task/TID, or a directory there: gone with the task, though somebody may have it open."""

    __slots__ = ("_task",)

    def __init__(self, volume: Volume, task: Task) -> None:
        super().__init__(volume)
        self._task = task

    @property
    def lasting(self) -> bool:
        return False

    @property
    def gone(self) -> bool:
        """The process has been waited for."""
        return self._task.kernel.tasks.get(self._task.tid) is not self._task

    def lookup(self, name: str) -> Node | None:
        return None if self.gone else super().lookup(name)

    def entries(self) -> Iterable[DirectoryEntry]:
        """proc_readdir_de() of what is gone is ENOENT."""
        if self.gone:
            raise LinuxError(ENOENT, f"/proc/{self._task.pid}: nothing of the process is left")
        return super().entries()


class DescriptorDirectory(TaskDirectory):
    """/proc/PID/fd"""

    __slots__ = ("_inodes",)

    def __init__(self, volume: Volume, task: Task) -> None:
        super().__init__(volume, task)
        self._inodes: dict[int, int] = {}

    def _link(self, descriptor: int) -> DescriptorLink:
        inode = self._inodes.get(descriptor)
        if inode is None:
            inode = self._inodes[descriptor] = self.volume.superblock.inodes.new()
        return DescriptorLink(self.volume, self._task, descriptor, inode)

    def _descriptors(self) -> Collection[int]:
        """A zombie has none, though another process may go on with what it had."""
        return () if self._task.exit_code is not None else self._task.files.descriptors()

    def lookup(self, name: str) -> Node | None:
        return self._link(int(name)) if name.isdecimal() and int(name) in self._descriptors() else None

    def entries(self) -> Iterable[DirectoryEntry]:
        return [
            DirectoryEntry(self._link(descriptor).inode, file_mode.S_IFLNK, str(descriptor).encode())
            for descriptor in self._descriptors()
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


class ProcessDirectory(TaskDirectory):
    """/proc/PID"""

    __slots__ = ()

    @property
    def process(self) -> Process:
        return self._task.process


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
    directory = (ProcessDirectory if with_tasks else TaskDirectory)(volume, task)
    for name, text in PROCESS_TEXTS.items():
        directory.add_text(name, _of_living(name, text, task))
    for name, target in PROCESS_LINKS.items():
        directory.add(name, TextLink(volume, _while_living(name, target, task)))

    def store_comm(data: bytes) -> None:
        task.kernel.rename(task, os.fsdecode(data.rstrip(b"\n")))

    directory.add_text("comm", _of_living("comm", lambda task: task.comm + "\n", task), store_comm)
    directory.add("mem", MemoryFile(volume, task, read_memory, write_memory, 0o600))
    directory.add("pagemap", MemoryFile(volume, task, read_pagemap, None, 0o400))
    directory.add("fd", DescriptorDirectory(volume, task))
    directory.add("fdinfo", DescriptorInfoDirectory(volume, task))
    directory.add("ns", ns := TaskDirectory(volume, task))
    namespaces.fill(ns)
    if with_tasks:
        directory.add("task", ThreadsDirectory(volume, task))
    return directory


class ThreadsDirectory(TaskDirectory):
    """/proc/PID/task"""

    __slots__ = ("_directories",)

    def __init__(self, volume: Volume, task: Task) -> None:
        super().__init__(volume, task)
        self._directories = TaskDirectories(volume, with_tasks=False)

    def _threads(self) -> list[Task]:
        """A main thread that has ended is there until its process has been waited for."""
        leader, threads = self._task, self._task.process.threads
        return threads if leader in threads or self.gone else [leader, *threads]

    def lookup(self, name: str) -> Node | None:
        thread = next((thread for thread in self._threads() if str(thread.tid) == name), None)
        return None if thread is None else self._directories.of(thread)

    def entries(self) -> Iterable[DirectoryEntry]:
        nodes = [(thread.tid, self._directories.of(thread)) for thread in self._threads()]
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


def _while_living(name: str, target: Callable[[Task], str], task: Task) -> Callable[[], str]:
    """What a link of /proc/PID leads to; a zombie has no directories and no program."""

    def made() -> str:
        if task.exit_code is not None:
            raise LinuxError(ENOENT, f"/proc/{task.pid}/{name}: the process has ended")
        return target(task)

    return made
