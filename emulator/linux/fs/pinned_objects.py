"""The file system of type bpf, at /sys/fs/bpf: names for objects that else only descriptors keep. kernel/bpf/inode.c

What the objects are is not known here.
"""

from __future__ import annotations

import stat as file_mode
from dataclasses import replace
from typing import Protocol

from emulator.linux.errors import EACCES, EIO, EOPNOTSUPP, EPERM, LinuxError
from emulator.linux.fs.memory_files import MemoryDirectory, MemoryNode
from emulator.linux.fs.nodes import BPF_DEVICE, BPF_STATISTICS, Body, Directory, Node, Regular, Superblock

_ROOT_PERMISSIONS = 0o1700  # as Debian mounts it


class Kept(Protocol):
    """An object that ends with the last who has it."""

    def retain(self) -> None: ...
    def release(self) -> None: ...


class PinnedObject(MemoryNode, Regular):
    """A name of an object. It has it as long as it is in a directory."""

    __slots__ = ("pinned",)

    def __init__(self, superblock: Superblock, permissions: int, pinned: Kept) -> None:
        super().__init__(superblock, file_mode.S_IFREG | permissions)
        self.pinned = pinned

    def open(self, *, write: bool, truncate: bool) -> Body:
        raise LinuxError(EIO, "what is pinned is not opened, but asked for by BPF_OBJ_GET")


class PinDirectory(MemoryDirectory):
    """A directory of them."""

    __slots__ = ()

    def lookup(self, name: str) -> Node | None:
        if "." in name:
            raise LinuxError(EPERM, f"{name}: names with dots are reserved here")
        return super().lookup(name)

    def pin(self, name: str, permissions: int, pinned: Kept) -> None:
        self._check_new(name)
        node = PinnedObject(self.superblock, permissions, pinned).charged()
        pinned.retain()
        self.put(name, node)

    def create(self, name: str, permissions: int) -> tuple[Regular, Body]:
        raise LinuxError(EACCES, f"{name}: there are no files here but those of BPF_OBJ_PIN")

    def temporary(self, permissions: int) -> Regular:
        raise LinuxError(EOPNOTSUPP, "there are no files here but those of BPF_OBJ_PIN")

    def add_special(self, name: str, node: Node) -> None:
        raise LinuxError(EPERM, f"{name}: there are no files here but those of BPF_OBJ_PIN")

    def _new_directory(self, permissions: int) -> MemoryDirectory:
        return PinDirectory(self.superblock, permissions)

    def remove(self, name: str) -> None:
        node = self._existing(name)
        super().remove(name)
        if isinstance(node, PinnedObject) and not node.links:
            node.pinned.release()


def pin_root(superblock: Superblock) -> PinDirectory:
    """The root of a new one."""
    return PinDirectory(replace(superblock, device=BPF_DEVICE, statistics=BPF_STATISTICS), _ROOT_PERMISSIONS)


def directory_of_pins(directory: Directory, path: str) -> PinDirectory:
    if not isinstance(directory, PinDirectory):
        raise LinuxError(EPERM, f"{path} is in no file system of type bpf")
    return directory
