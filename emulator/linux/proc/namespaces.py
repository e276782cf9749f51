"""/proc/PID/ns: the first namespaces, in which all are, and of which there are no more. As fs/nsfs.c."""

from __future__ import annotations

import stat as file_mode

from emulator.linux.errors import EINVAL, LinuxError
from emulator.linux.fs.attributes import FileSystemStatistics
from emulator.linux.fs.nodes import BodyOfNode, Regular, Superblock
from emulator.linux.fs.paths import Dentry, MagicLink
from emulator.linux.fs.virtual_files import VirtualDirectory, VirtualNode, Volume

NSFS_DEVICE = (0, 4)
NSFS_STATISTICS = FileSystemStatistics(0x6E736673)  # NSFS_MAGIC
FIRST_NAMESPACES = {  # their inodes: include/linux/proc_ns.h, and the first two that the kernel gives by itself
    "net": 0xF000_0000,
    "uts": 0xEFFF_FFFE,
    "ipc": 0xEFFF_FFFF,
    "pid": 0xEFFF_FFFC,
    "user": 0xEFFF_FFFD,
    "mnt": 0xF000_0001,
    "cgroup": 0xEFFF_FFFB,
    "time": 0xEFFF_FFFA,
}
_LINKS = {name: name for name in FIRST_NAMESPACES} | {f"{name}_for_children": name for name in ("pid", "time")}


class _Namespace(VirtualNode, Regular):
    """What such a link leads to. It can be opened, and neither read nor written."""

    __slots__ = ()

    def __init__(self, superblock: Superblock, inode: int) -> None:
        super().__init__(Volume(superblock, NSFS_DEVICE, NSFS_STATISTICS), file_mode.S_IFREG | 0o444)
        self._number = inode

    def open(self, *, write: bool, truncate: bool) -> _NamespaceBody:
        return _NamespaceBody(self)


class _NamespaceBody(BodyOfNode):
    __slots__ = ()

    def read_at(self, offset: int, size: int) -> bytes:
        raise LinuxError(EINVAL, "a namespace has no bytes")

    def write_at(self, offset: int, data: bytes) -> int:
        raise LinuxError(EINVAL, "a namespace has no bytes")

    def size(self) -> int:
        return 0

    def truncate(self, size: int) -> None:
        raise LinuxError(EINVAL, "a namespace has no bytes")


class _NamespaceLink(VirtualNode, MagicLink):
    __slots__ = ("_kind", "_namespace")

    def __init__(self, volume: Volume, kind: str) -> None:
        super().__init__(volume, file_mode.S_IFLNK | 0o777)
        self._kind = kind
        self._namespace = _Namespace(volume.superblock, FIRST_NAMESPACES[kind])

    def target(self) -> str:
        return f"{self._kind}:[{FIRST_NAMESPACES[self._kind]}]"

    def destination(self) -> Dentry:
        return Dentry(self._namespace, self.target(), None)


def fill(directory: VirtualDirectory) -> None:
    """/proc/PID/ns"""
    for name, kind in _LINKS.items():
        directory.add(name, _NamespaceLink(directory.volume, kind))
