"""Overlay: a host directory whose changes stay in memory (/tmp). The host's files are never written.

A directory node keeps what the guest has changed or looked at in `children`, what it has deleted in `hidden`, and shows
the host's `lower` directory for every other name. A node remembers its lower path, not its name, so that renaming a
directory moves it whole. A file is copied into memory when it is opened for writing.
"""

from __future__ import annotations

import os
import stat as file_mode
from collections.abc import Iterable

from emulator.linux.errors import EBUSY, LinuxError, host_errors
from emulator.linux.fs.attributes import DirectoryEntry
from emulator.linux.fs.host_body import HostBody
from emulator.linux.fs.host_files import HostSpecial, HostTree, listing
from emulator.linux.fs.host_places import Place
from emulator.linux.fs.memory_files import MemoryDirectory, MemoryNode, MemoryRegular, MemorySymlink
from emulator.linux.fs.nodes import Body, BodyOfNode, Node, Superblock

COPY_BYTES = 1 << 20
MEMORY = "memory"  # where mounts in directories are noted that are in memory alone: no path


def _adopt(node: MemoryNode, status: os.stat_result) -> None:
    """Begin with the attributes of the host's node."""
    superblock = node.superblock
    node.uid, node.gid = superblock.owner_of(status, writable=True)
    node.accessed_ns = node.modified_ns = status.st_mtime_ns
    node.host_inode = status.st_dev, status.st_ino


class OverlayRegular(MemoryRegular):
    """A regular file that the host keeps until the guest opens it for writing."""

    __slots__ = ("lower",)

    def __init__(self, superblock: Superblock, lower: Place, status: os.stat_result) -> None:
        self.lower: Place | None = lower
        super().__init__(superblock, file_mode.S_IMODE(status.st_mode))
        _adopt(self, status)

    def open(self, *, write: bool, truncate: bool) -> Body:
        if self.lower is None:
            return super().open(write=write, truncate=truncate)
        if not write and not truncate:
            return LowerBody(self, HostBody(self.superblock, self.lower, os.O_RDONLY))
        self.copy_up(0 if truncate else None)
        if truncate:
            self.changed()
        return self

    def copy_up(self, size: int | None = None) -> None:
        """Take the contents (at most `size` bytes) into memory; the host's file is not looked at again."""
        if self.lower is None:
            return
        if size != 0:
            body = HostBody(self.superblock, self.lower, os.O_RDONLY)
            wanted = body.size() if size is None else min(size, body.size())
            self.superblock.budget.take(wanted)
            while len(self.data) < wanted:
                chunk = body.read_at(len(self.data), min(COPY_BYTES, wanted - len(self.data)))
                self.data += chunk or bytes(wanted - len(self.data))
        self.lower = None

    def size(self) -> int:
        if self.lower is None:
            return len(self.data)
        with host_errors:
            return self.lower.status().st_size

    def read_at(self, offset: int, size: int) -> bytes:
        assert self.lower is None, f"{self.lower.path} is read through LowerBody"
        return super().read_at(offset, size)


class LowerBody(BodyOfNode):
    """An open file of the host below an overlay: follows the file into memory once somebody writes it."""

    __slots__ = ("_host",)
    _node: OverlayRegular

    def __init__(self, node: OverlayRegular, host: HostBody) -> None:
        super().__init__(node)
        self._host = host

    @property
    def _body(self) -> Body:
        return self._host if self._node.lower is not None else self._node

    def read_at(self, offset: int, size: int) -> bytes:
        return self._body.read_at(offset, size)

    def write_at(self, offset: int, data: bytes) -> int:
        self._node.copy_up()
        return self._node.write_at(offset, data)

    def size(self) -> int:
        return self._body.size()

    def truncate(self, size: int) -> None:
        self._node.copy_up()
        self._node.truncate(size)


class OverlayDirectory(MemoryDirectory):
    """A directory in memory over one of the host's."""

    __slots__ = ("hidden", "lower", "tree")

    def __init__(self, tree: HostTree, lower: Place | None, permissions: int) -> None:
        super().__init__(tree.superblock, permissions)
        self.tree = tree
        self.lower = lower
        self.hidden: set[str] = set()  # names of the host's that the guest has deleted or replaced

    @classmethod
    def over(cls, tree: HostTree, lower: Place, status: os.stat_result) -> OverlayDirectory:
        directory = cls(tree, lower, file_mode.S_IMODE(status.st_mode))
        _adopt(directory, status)
        return directory

    def lookup(self, name: str) -> Node | None:
        if self.lower is None or name in self.hidden:
            return self.children.get(name)
        place = self.lower.child(name)
        node = self.tree.mounts.get(place.path) or self.children.get(name)
        if node is None:
            node = self._of_host(place)
            if node is not None:
                self.children[name] = node  # it keeps its identity from now on
        return node

    def _of_host(self, place: Place) -> Node | None:
        status = self.tree.status(place)
        if status is None:
            return None
        file_type = file_mode.S_IFMT(status.st_mode)
        if file_type == file_mode.S_IFDIR:
            return OverlayDirectory.over(self.tree, place, status)
        if file_type == file_mode.S_IFREG:
            return OverlayRegular(self.superblock, place, status)
        if file_type == file_mode.S_IFLNK:
            with host_errors:
                link = MemorySymlink(self.superblock, place.target())
            _adopt(link, status)
            return link
        return HostSpecial(self.superblock, place, True, file_type)

    def _lower_names(self) -> dict[str, os.stat_result]:
        """What shows through of the host's directory and has not been looked up yet."""
        if self.lower is None:
            return {}
        covered = self.hidden | self.children.keys()
        return {name: status for name, status in self.tree.names(self.lower).items() if name not in covered}

    def entries(self) -> Iterable[DirectoryEntry]:
        nodes = dict(self.children)
        if self.lower is not None:
            mounted = self.tree.mounted(self.lower.path)
            nodes.update((name, node) for name, node in mounted.items() if name not in self.hidden)
        return listing(self.superblock, nodes, self._lower_names())

    def _links(self) -> int:
        return super()._links() + sum(file_mode.S_ISDIR(status.st_mode) for status in self._lower_names().values())

    def empty(self) -> bool:
        return not any(True for _ in self.entries())

    def put(self, name: str, node: Node) -> None:
        if self.lower is not None:
            self.hidden.add(name)
        super().put(name, node)

    def drop(self, name: str) -> None:
        if self.lower is not None:
            self.hidden.add(name)
        super().drop(name)

    def mount(self, name: str, node: Node) -> None:
        path = self.lower.child(name).path if self.lower is not None else f"{MEMORY}/{self.inode}/{name}"
        self.tree.mounts[path] = node
        if self.lower is None:
            self.children[name] = node

    def check_removable(self, name: str, node: Node) -> None:
        if any(node is mounted for mounted in self.tree.mounts.values()):
            raise LinuxError(EBUSY, f"{name}: another file system begins here")

    def _new_directory(self, permissions: int) -> OverlayDirectory:
        return OverlayDirectory(self.tree, None, permissions)
