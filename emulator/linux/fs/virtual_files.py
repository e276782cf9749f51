"""Virtual files: directories and files that the kernel makes up: /proc, /sys, /dev. Nothing in them is the host's."""

from __future__ import annotations

import os
import stat as file_mode
from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

from emulator.linux.errors import EACCES, EEXIST, EINVAL, ENOTDIR, LinuxError
from emulator.linux.fs.attributes import Attributes, DirectoryEntry, FileSystemStatistics
from emulator.linux.fs.file import Caller, File
from emulator.linux.fs.nodes import (
    DEV_DEVICE,
    MEMORY_STATISTICS,
    PROC_DEVICE,
    PROC_STATISTICS,
    SYS_DEVICE,
    SYS_STATISTICS,
    TRACE_DEVICE,
    TRACE_STATISTICS,
    Body,
    BodyOfNode,
    Directory,
    Node,
    Regular,
    Superblock,
    Symlink,
)

Text = Callable[[], str | bytes]
Store = Callable[[bytes], None]
Row = tuple[str, str | Text] | tuple[str, str | Text, Store]
"""A file of a directory: the path below it, the text, and what is done with what is written."""
Rows = Callable[[], Iterable[Row]]


@runtime_checkable
class OpensItself(Protocol):
    """A node whose open file is not contents with offsets: a device, say."""

    def open_file(self, task: Caller, flags: int, path: str) -> File: ...


class Volume:
    """One virtual file system: its device number, its statfs, and the inode numbers and time that its nodes get."""

    def __init__(self, superblock: Superblock, device: tuple[int, int], statistics: FileSystemStatistics) -> None:
        self.superblock = superblock
        self.device = device
        self.statistics = statistics
        self.made_ns = superblock.now()

    def attributes(self, number: int, mode: int, size: int = 0, links: int = 1) -> Attributes:
        owner = self.superblock.owner
        return Attributes(number, mode, size, links, owner, owner, self.device, (0, 0), self.made_ns, self.made_ns)


def proc_volume(superblock: Superblock) -> Volume:
    return Volume(superblock, PROC_DEVICE, PROC_STATISTICS)


def sys_volume(superblock: Superblock) -> Volume:
    return Volume(superblock, SYS_DEVICE, SYS_STATISTICS)


def trace_volume(superblock: Superblock) -> Volume:
    return Volume(superblock, TRACE_DEVICE, TRACE_STATISTICS)


def dev_volume(superblock: Superblock) -> Volume:
    return Volume(superblock, DEV_DEVICE, MEMORY_STATISTICS)


class VirtualNode(Node):
    """An inode of a virtual file system."""

    __slots__ = ("_number", "mode", "statistics", "volume")

    def __init__(self, volume: Volume, mode: int) -> None:
        self.volume = volume
        self.mode = mode
        self.statistics = volume.statistics
        self._number = 0

    @property
    def file_type(self) -> int:
        return file_mode.S_IFMT(self.mode)

    @property
    def inode(self) -> int:
        if not self._number:
            self._number = self.volume.superblock.inodes.new()
        return self._number

    def attributes(self) -> Attributes:
        return self.volume.attributes(self.inode, self.mode)


class TextFile(VirtualNode, Regular):
    """A file whose text is made when it is read. `store` takes what is written, `clear` an open that truncates.

    The guest is root and may open it for writing even if nothing can be written: then the write fails, as in Linux.
    """

    __slots__ = ("clear", "store", "text")

    def __init__(
        self,
        volume: Volume,
        text: Text,
        store: Store | None = None,
        permissions: int = 0o444,
        clear: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(volume, file_mode.S_IFREG | permissions | (0o200 if store is not None else 0))
        self.text = text
        self.store = store
        self.clear = clear

    def open(self, *, write: bool, truncate: bool) -> Body:
        if truncate and self.clear is not None:
            self.clear()
        return TextBody(self)

    def made(self) -> bytes:
        text = self.text()
        return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


class BytesFile(TextFile):
    """A file that can only be read, and says how many bytes it has: sysfs calls them bin_attribute."""

    __slots__ = ("_bytes",)

    def __init__(self, volume: Volume, content: Callable[[], bytes]) -> None:
        super().__init__(volume, content)
        self._bytes = content

    def attributes(self) -> Attributes:
        return self.volume.attributes(self.inode, self.mode, len(self._bytes()))


class TextBody(BodyOfNode):
    """An open seq_file: a read at the beginning makes the text anew, and so does one that does not follow another.

    Linux, seq_read_iter and traverse. So who keeps /proc/stat open finds what it is now.
    """

    __slots__ = ("_data", "_next")
    _node: TextFile

    def __init__(self, node: TextFile) -> None:
        super().__init__(node)
        self._data = b""
        self._next = 0

    def read_at(self, offset: int, size: int) -> bytes:
        if offset == 0 or offset != self._next:
            self._data = self._node.made()
        data = self._data[offset : offset + size]
        self._next = offset + len(data)
        return data

    def write_at(self, offset: int, data: bytes) -> int:
        if self._node.store is None:
            raise LinuxError(EINVAL, "this file of the kernel cannot be written")
        self._node.store(data)
        return len(data)

    def size(self) -> int:
        """Of the text that a read would find, anew or where the one before it ended."""
        return max(len(self._data), len(self._node.made()))

    def truncate(self, size: int) -> None:
        """ftruncate(2) of a file of /proc does nothing."""


class TextLink(VirtualNode, Symlink):
    """A symbolic link whose target is made when it is read."""

    __slots__ = ("_target",)

    def __init__(self, volume: Volume, target: Callable[[], str]) -> None:
        super().__init__(volume, file_mode.S_IFLNK | 0o777)
        self._target = target

    def target(self) -> str:
        return self._target()


class FileNode(VirtualNode):
    """A node that opens as a `File` of its own: a device, or what another room registers."""

    __slots__ = ("_factory", "_special")

    def __init__(
        self, volume: Volume, factory: Callable[[Caller, int], File], mode: int, special: tuple[int, int] = (0, 0)
    ) -> None:
        super().__init__(volume, mode)
        self._factory = factory
        self._special = special

    def attributes(self) -> Attributes:
        volume = self.volume
        owner = volume.superblock.owner
        return Attributes(
            self.inode, self.mode, 0, 1, owner, owner, volume.device, self._special, volume.made_ns, volume.made_ns
        )

    def open_file(self, task: Caller, flags: int, path: str) -> File:
        file = self._factory(task, flags)
        file.path = path
        return file


class VirtualDirectory(VirtualNode, Directory):
    """A directory of virtual nodes, filled by rows of paths."""

    __slots__ = ("children",)

    def __init__(self, volume: Volume) -> None:
        super().__init__(volume, file_mode.S_IFDIR | 0o555)
        self.children: dict[str, Node] = {}

    def attributes(self) -> Attributes:
        directories = sum(node.file_type == file_mode.S_IFDIR for node in self.children.values())
        return self.volume.attributes(self.inode, self.mode, 0, 2 + directories)

    def lookup(self, name: str) -> Node | None:
        return self.children.get(name)

    def entries(self) -> Iterable[DirectoryEntry]:
        return [
            DirectoryEntry(node.inode, node.file_type, os.fsencode(name))
            for name, node in sorted(self.children.items())
        ]

    def refusal(self, name: str) -> LinuxError:
        return LinuxError(EACCES, f"{name}: the names here are the kernel's")

    def mount(self, name: str, node: Node) -> None:
        self.children[name] = node

    def add(self, path: str, node: Node) -> None:
        """Put `node` at `path` below this directory, making the directories on the way."""
        above, _, name = path.rpartition("/")
        directory = self.directory(above)
        if name in directory.children:
            raise LinuxError(EEXIST, f"{path} is already there")
        directory.children[name] = node

    def take_away(self, path: str) -> None:
        """What is at `path` below this directory goes, and so do directories on the way that are empty then.

        One whose files are made when somebody looks is not empty.
        """
        above, _, name = path.rpartition("/")
        directory = self.directory(above)
        del directory.children[name]
        if above and not directory.children and not isinstance(directory, LateDirectory):
            self.take_away(above)

    def directory(self, path: str) -> VirtualDirectory:
        """The directory at `path` below this one, made if it is missing."""
        here = self
        for name in path.split("/"):
            if not name:
                continue
            child = here.children.get(name)
            if child is None:
                child = here.children[name] = VirtualDirectory(here.volume)
            if not isinstance(child, VirtualDirectory):
                raise LinuxError(ENOTDIR, f"{path}: {name} is not a virtual directory")
            here = child
        return here

    def add_text(
        self, path: str, text: str | Text, store: Store | None = None, clear: Callable[[], None] | None = None
    ) -> None:
        """A file with a fixed text or one that a function makes."""
        make = (lambda: text) if isinstance(text, str) else text
        directory = self.directory(path.rpartition("/")[0])
        self.add(path, TextFile(directory.volume, make, store, clear=clear))

    def add_late(self, path: str, rows: Rows) -> None:
        """A directory whose files are those of `rows`, which is asked when somebody first looks into it."""
        self.add(path, LateDirectory(self.directory(path.rpartition("/")[0]).volume, rows))


class LateDirectory(VirtualDirectory):
    """A directory whose files are made when somebody first looks into it: where there are many, and few look."""

    __slots__ = ("_rows",)

    def __init__(self, volume: Volume, rows: Rows) -> None:
        super().__init__(volume)
        self._rows: Rows | None = rows

    def _look(self) -> None:
        rows, self._rows = self._rows, None
        if rows is not None:
            for row in rows():
                self.add_text(row[0], row[1], row[2] if len(row) == 3 else None)

    def attributes(self) -> Attributes:
        self._look()
        return super().attributes()

    def lookup(self, name: str) -> Node | None:
        self._look()
        return super().lookup(name)

    def entries(self) -> Iterable[DirectoryEntry]:
        self._look()
        return super().entries()
