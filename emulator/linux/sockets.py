"""Sockets: a local socket that finds nobody to talk to. C libraries ask for a name service through one, and go on."""

from __future__ import annotations

import stat as file_mode

from emulator.linux.attributes import Attributes
from emulator.linux.errors import ENOTCONN, LinuxError
from emulator.linux.file import O_RDWR, POLLHUP, POLLOUT, Caller
from emulator.linux.nodes import PIPE_DEVICE, Node, Superblock
from emulator.linux.open_files import NodeFile
from emulator.linux.paths import Dentry


class SocketNode(Node):
    """A socket's inode."""

    __slots__ = ("_number", "superblock")

    def __init__(self, superblock: Superblock) -> None:
        self.superblock = superblock
        self._number = superblock.inodes.new()

    @property
    def file_type(self) -> int:
        return file_mode.S_IFSOCK

    def attributes(self) -> Attributes:
        owner = self.superblock.owner
        return Attributes(self._number, file_mode.S_IFSOCK | 0o777, uid=owner, gid=owner, device=PIPE_DEVICE)


class LocalSocket(NodeFile):
    """An AF_UNIX socket without a peer."""

    def __init__(self, superblock: Superblock, flags: int) -> None:
        node = SocketNode(superblock)
        super().__init__(O_RDWR | flags, f"socket:[{node.inode}]")
        self.dentry = Dentry(node, "", None)

    def read(self, task: Caller, size: int) -> bytes:
        raise LinuxError(ENOTCONN, self.path)

    def write(self, task: Caller, data: bytes) -> int:
        raise LinuxError(ENOTCONN, self.path)

    def poll(self) -> int:
        return POLLOUT | POLLHUP
