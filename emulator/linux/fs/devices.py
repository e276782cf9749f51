"""Devices: the character devices below /dev. They are the machine's own, whatever the host has there."""

from __future__ import annotations

import stat as file_mode
from collections.abc import Callable

from emulator.linux.errors import ENOSPC, LinuxError
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import Caller, File
from emulator.linux.fs.open_files import NodeFile
from emulator.linux.fs.paths import Dentry
from emulator.linux.fs.virtual_files import FileNode, VirtualDirectory, Volume
from emulator.linux.random import Random

READ_LIMIT_BYTES = 1 << 25  # what one read of an endless device gives at most


class Device(NodeFile):
    """A character device that has no position: pread and pwrite do as read and write."""

    def read_at(self, task: Caller, offset: int, destination: Destination) -> int:
        return self.read(task, destination)

    def write_at(self, task: Caller, offset: int, data: bytes) -> int:
        return self.write(task, data)

    def seek(self, offset: int, whence: int) -> int:
        return 0

    def part_of_write(self, size: int, readable: int) -> int:
        """Nobody looks at what is written."""
        return size

    def write(self, task: Caller, data: bytes) -> int:
        return len(data)


class Null(Device):
    """/dev/null"""

    def read(self, task: Caller, destination: Destination) -> int:
        return 0


class Zero(Device):
    """/dev/zero"""

    maps_as_anonymous = True

    def read(self, task: Caller, destination: Destination) -> int:
        return destination.give(bytes(min(destination.left, READ_LIMIT_BYTES)))


class Full(Zero):
    """/dev/full"""

    maps_as_anonymous = False

    def write(self, task: Caller, data: bytes) -> int:
        raise LinuxError(ENOSPC, "/dev/full is always full")


class RandomDevice(Device):
    """/dev/random and /dev/urandom: from the machine's seeded generator. Writing adds nothing to it."""

    def __init__(self, random: Random, flags: int) -> None:
        super().__init__(flags)
        self._random = random

    def read(self, task: Caller, destination: Destination) -> int:
        return destination.give(self._random.bytes(min(destination.left, READ_LIMIT_BYTES)))


def fill(directory: VirtualDirectory, volume: Volume, random: Random) -> None:
    """The rows of /dev that need nothing but the machine."""
    rows: tuple[tuple[str, tuple[int, int], Callable[[Caller, int], File]], ...] = (
        # admin-guide/devices.txt, major 1
        ("null", (1, 3), lambda task, flags: Null(flags)),
        ("zero", (1, 5), lambda task, flags: Zero(flags)),
        ("full", (1, 7), lambda task, flags: Full(flags)),
        ("random", (1, 8), lambda task, flags: RandomDevice(random, flags)),
        ("urandom", (1, 9), lambda task, flags: RandomDevice(random, flags)),
    )
    for name, special, factory in rows:
        directory.add(name, DeviceNode(volume, factory, special))


class DeviceNode(FileNode):
    """A character device's inode."""

    __slots__ = ()

    def __init__(self, volume: Volume, factory: Callable[[Caller, int], File], special: tuple[int, int]) -> None:
        super().__init__(volume, factory, file_mode.S_IFCHR | 0o666, special)

    def permits(self, wanted: int) -> bool:
        return not wanted & 1

    def open_file(self, task: Caller, flags: int, path: str) -> File:
        file = super().open_file(task, flags, path)
        if isinstance(file, NodeFile):
            file.dentry = Dentry(self, path.rpartition("/")[2], None)
        return file
