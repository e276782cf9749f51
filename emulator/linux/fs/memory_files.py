"""Memory files: files, directories and symbolic links of the machine alone: memfd, /dev/shm, changes below /tmp."""

from __future__ import annotations

import os
import stat as file_mode
from collections.abc import Iterable
from typing import Self

from emulator.linux.errors import EEXIST, EFBIG, ENOENT, ENOTEMPTY, EOPNOTSUPP, EXDEV, LinuxError
from emulator.linux.fs.attributes import Attributes, DirectoryEntry
from emulator.linux.fs.nodes import (
    DIRECTORY_SIZE_BYTES,
    F_SEAL_SEAL,
    Body,
    Directory,
    Node,
    Regular,
    Superblock,
    Symlink,
    check_rename,
)

SIZE_LIMIT_BYTES = 1 << 62
F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE, F_SEAL_FUTURE_WRITE = 2, 4, 8, 16  # uapi/linux/fcntl.h
GROWTH_BYTES = 1 << 20  # zeroes that are added at once
NODE_BYTES = 1024  # what an inode counts besides its contents: so empty files have an end, too


class MemoryNode(Node):
    """An inode in memory: it lives as long as a name, an open body or a mapping has it."""

    __slots__ = (
        "_charged_bytes",
        "_number",
        "accessed_ns",
        "gid",
        "host_inode",
        "links",
        "mode",
        "modified_ns",
        "statistics",
        "superblock",
        "uid",
    )

    def __init__(self, superblock: Superblock, mode: int) -> None:
        self.superblock = superblock
        self.statistics = superblock.statistics
        self.mode = mode
        self.uid = self.gid = superblock.owner
        self.links = 1
        self.accessed_ns = self.modified_ns = superblock.now()
        self.host_inode: tuple[int, int] | None = None  # st_dev, st_ino of the host's file that this one began as
        self._number = 0  # given when somebody asks
        self._charged_bytes = 0

    @property
    def file_type(self) -> int:
        return file_mode.S_IFMT(self.mode)

    def charged(self) -> Self:
        """The node itself, counted in the machine's memory: the guest has made it. ENOSPC if there is no room."""
        count = NODE_BYTES + self._own_bytes()
        self.superblock.budget.take(count)
        self._charged_bytes = count
        return self

    def _own_bytes(self) -> int:
        """What it holds from its beginning to its end."""
        return 0

    def __del__(self) -> None:
        self.superblock.budget.take(-self._charged_bytes)

    @property
    def inode(self) -> int:
        if not self._number:
            inodes = self.superblock.inodes
            self._number = inodes.of_host(*self.host_inode) if self.host_inode else inodes.new()
        return self._number

    def changed(self) -> None:
        self.modified_ns = self.superblock.now()

    def attributes(self) -> Attributes:
        return Attributes(
            self.inode,
            self.mode,
            self._size(),
            self._links(),
            self.uid,
            self.gid,
            self.superblock.device,
            (0, 0),
            self.accessed_ns,
            self.modified_ns,
        )

    def _size(self) -> int:
        return 0

    def _links(self) -> int:
        return self.links

    def set_mode(self, permissions: int) -> None:
        self.mode = file_mode.S_IFMT(self.mode) | permissions

    def set_owner(self, uid: int, gid: int) -> None:
        self.uid, self.gid = uid, gid
        if not file_mode.S_ISDIR(self.mode):  # nobody's program is run by another's rights
            self.mode &= ~(file_mode.S_ISUID | file_mode.S_ISGID)

    def set_times(self, accessed_ns: int | None, modified_ns: int | None) -> None:
        if accessed_ns is not None:
            self.accessed_ns = accessed_ns
        if modified_ns is not None:
            self.modified_ns = modified_ns


class MemoryRegular(MemoryNode, Regular):
    """A regular file in memory. It is its own body: every open of it reads and writes the same bytes."""

    __slots__ = ("data", "seals")
    all_or_nothing = False

    def __init__(self, superblock: Superblock, permissions: int) -> None:
        super().__init__(superblock, file_mode.S_IFREG | permissions)
        self.data = bytearray()
        self.seals = F_SEAL_SEAL  # nothing can be added, but to what memfd_create has made so

    def __del__(self) -> None:
        super().__del__()
        self.superblock.budget.take(-len(self.data))

    def open(self, *, write: bool, truncate: bool) -> Body:
        if truncate:
            self.truncate(0)
        return self

    def read_at(self, offset: int, size: int) -> bytes:
        return bytes(self.data[offset : offset + size])

    def write_at(self, offset: int, data: bytes) -> int:
        end = offset + len(data)
        if end > len(self.data):
            self._resize(end)
        self.data[offset:end] = data
        self.changed()
        return len(data)

    def size(self) -> int:
        return len(self.data)

    def skip_hole(self, offset: int) -> int:
        return offset

    def truncate(self, size: int) -> None:
        self._resize(size)
        self.changed()

    def _size(self) -> int:
        return self.size()

    def _resize(self, size: int) -> None:
        if size > SIZE_LIMIT_BYTES:
            raise LinuxError(EFBIG, f"a file of {size} bytes")
        growth = size - len(self.data)
        self.superblock.budget.take(growth)
        while len(self.data) < size:
            self.data.extend(bytes(min(GROWTH_BYTES, size - len(self.data))))
        del self.data[size:]


class MemorySymlink(MemoryNode, Symlink):
    """A symbolic link in memory."""

    __slots__ = ("_target",)

    def __init__(self, superblock: Superblock, target: str) -> None:
        super().__init__(superblock, file_mode.S_IFLNK | 0o777)
        self._target = target

    def target(self) -> str:
        return self._target

    def _size(self) -> int:
        return len(os.fsencode(self._target))

    def _own_bytes(self) -> int:
        return self._size()

    def permits(self, wanted: int) -> bool:
        return True

    def set_mode(self, permissions: int) -> None:
        raise LinuxError(EOPNOTSUPP, "a symbolic link has no permissions")


class MemoryDirectory(MemoryNode, Directory):
    """A directory in memory. `children` are the names that memory holds."""

    __slots__ = ("children",)

    def __init__(self, superblock: Superblock, permissions: int) -> None:
        super().__init__(superblock, file_mode.S_IFDIR | permissions)
        self.children: dict[str, Node] = {}

    def _size(self) -> int:
        return DIRECTORY_SIZE_BYTES

    def _links(self) -> int:
        return 2 + sum(node.file_type == file_mode.S_IFDIR for node in self.children.values())

    def lookup(self, name: str) -> Node | None:
        return self.children.get(name)

    def entries(self) -> Iterable[DirectoryEntry]:
        return [
            DirectoryEntry(node.inode, node.file_type, os.fsencode(name))
            for name, node in sorted(self.children.items())
        ]

    def writable(self) -> bool:
        return True

    def empty(self) -> bool:
        return not self.children

    def put(self, name: str, node: Node) -> None:
        """Give `node` a name here, replacing what had it."""
        self.children[name] = node
        self.changed()

    def drop(self, name: str) -> None:
        """Take the name away."""
        del self.children[name]
        self.changed()

    def check_removable(self, name: str, node: Node) -> None:
        """EBUSY for what must stay."""

    def _check_new(self, name: str) -> None:
        if self.lookup(name) is not None:
            raise LinuxError(EEXIST, name)

    def create(self, name: str, permissions: int) -> tuple[Regular, Body]:
        self._check_new(name)
        node = MemoryRegular(self.superblock, permissions).charged()
        self.put(name, node)
        return node, node

    def temporary(self, permissions: int) -> Regular:
        node = MemoryRegular(self.superblock, permissions).charged()
        node.links = 0
        return node

    def create_directory(self, name: str, permissions: int) -> None:
        self._check_new(name)
        self.put(name, self._new_directory(permissions).charged())

    def _new_directory(self, permissions: int) -> MemoryDirectory:
        return MemoryDirectory(self.superblock, permissions)

    def create_symlink(self, name: str, target: str) -> None:
        self._check_new(name)
        self.put(name, MemorySymlink(self.superblock, target).charged())

    def add_special(self, name: str, node: Node) -> None:
        self._check_new(name)
        self.put(name, node)

    def link(self, name: str, node: Node) -> None:
        if not isinstance(node, MemoryNode):
            raise LinuxError(EXDEV, f"{name}: a hard link from memory to a file of another file system")
        self._check_same(node, name)
        self._check_new(name)
        node.links += 1
        self.put(name, node)

    def _check_same(self, other: MemoryNode, name: str) -> None:
        if other.superblock.device != self.superblock.device:
            raise LinuxError(EXDEV, f"{name}: that is another file system in memory")

    def remove(self, name: str) -> None:
        node = self._existing(name)
        if isinstance(node, MemoryNode):
            node.links -= 1
        self.drop(name)

    def remove_directory(self, name: str) -> None:
        self._check_empty(name, self._existing(name))
        self.drop(name)

    def _existing(self, name: str) -> Node:
        node = self.lookup(name)
        if node is None:
            raise LinuxError(ENOENT, name)
        self.check_removable(name, node)
        return node

    def _check_empty(self, name: str, node: Node) -> None:
        if not isinstance(node, MemoryDirectory) or not node.empty():
            raise LinuxError(ENOTEMPTY, name)

    def rename(self, name: str, target: Directory, target_name: str, *, exchange: bool) -> None:
        if not isinstance(target, MemoryDirectory):
            raise LinuxError(EXDEV, f"{name} is in memory and cannot be moved to another file system")
        self._check_same(target, name)
        source = self._existing(name)
        replaced = target.lookup(target_name)
        if source is replaced:
            return
        if replaced is not None:
            target.check_removable(target_name, replaced)
        if exchange:
            if replaced is None:
                raise LinuxError(ENOENT, target_name)
            self.put(name, replaced)
            target.put(target_name, source)
            return
        check_rename(source, replaced)
        if replaced is not None:
            if replaced.file_type == file_mode.S_IFDIR:
                target._check_empty(target_name, replaced)
                target.drop(target_name)
            else:
                target.remove(target_name)
        self.drop(name)
        target.put(target_name, source)
