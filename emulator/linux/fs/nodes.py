"""Node: an inode of the guest's file tree, whatever keeps it: the host, memory, or a function of the kernel.

A node is found by name in a `Directory` and opened as a `Body`, which is what an open file reads and writes. Nodes do
no path walking (paths.py) and know no descriptors. What a node does not allow it refuses with a LinuxError.
"""

from __future__ import annotations

import os
import stat as file_mode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from emulator.linux.errors import EISDIR, ENOSPC, ENOTDIR, EROFS, LinuxError
from emulator.linux.fs.attributes import Attributes, DirectoryEntry, FileSystemStatistics

# Devices (major, minor) of the file systems, pinned. The host's whole tree, /tmp too, is one file system to the guest:
# what a file's numbers are must not depend on where the guest may write.
HOST_DEVICE = (8, 1)
MEMORY_DEVICE = (0, 30)  # /dev/shm and memfd
PROC_DEVICE = (0, 21)
SYS_DEVICE = (0, 20)
DEV_DEVICE = (0, 5)
TRACE_DEVICE = (0, 11)
PIPE_DEVICE = (0, 12)
DEVPTS_DEVICE = (0, 22)
CGROUP_DEVICE = (0, 26)
BPF_DEVICE = (0, 27)

HOST_STATISTICS = FileSystemStatistics(0xEF53, block_count=1 << 26, free_blocks=1 << 25)  # EXT4_SUPER_MAGIC
MEMORY_STATISTICS = FileSystemStatistics(0x01021994, block_count=1 << 18, free_blocks=1 << 17)  # TMPFS_MAGIC
PROC_STATISTICS = FileSystemStatistics(0x9FA0)  # PROC_SUPER_MAGIC
SYS_STATISTICS = FileSystemStatistics(0x62656572)  # SYSFS_MAGIC
TRACE_STATISTICS = FileSystemStatistics(0x74726163)  # TRACEFS_MAGIC
CGROUP_STATISTICS = FileSystemStatistics(0x63677270)  # CGROUP2_SUPER_MAGIC
BPF_STATISTICS = FileSystemStatistics(0xCAFE4A11)  # BPF_FS_MAGIC
DEVPTS_STATISTICS = FileSystemStatistics(0x1CD1)  # DEVPTS_SUPER_MAGIC
PIPE_STATISTICS = FileSystemStatistics(0x50495045)  # PIPEFS_MAGIC

F_SEAL_SEAL = 1  # uapi/linux/fcntl.h: nobody may add another seal
DIRECTORY_SIZE_BYTES = 4096  # st_size of every directory: the host's depends on its file system


class InodeNumbers:
    """Gives inode numbers in the order in which the guest first asks, so that they are the same on every host."""

    FIRST = 1000

    def __init__(self) -> None:
        self._next = self.FIRST
        self._host: dict[tuple[int, int], int] = {}  # by st_dev, st_ino

    def new(self) -> int:
        number = self._next
        self._next += 1
        return number

    def of_host(self, device: int, inode: int) -> int:
        """The guest's number of the host's inode: hard links keep one number."""
        number = self._host.get((device, inode))
        if number is None:
            number = self._host[device, inode] = self.new()
        return number

    def of_stream(self, device: int, inode: int) -> int:
        """The same for a standard stream. It takes one number whatever it is connected to, for the sake of the rest."""
        number = self.new()
        return self._host.setdefault((device, inode), number)

    def forget_host(self, device: int, inode: int) -> None:
        """The inode is deleted: the host may use its number again for another file, and the guest must not see that."""
        self._host.pop((device, inode), None)


class MemoryBudget:
    """How much file data the machine keeps in memory: what is written below /tmp, memfds and pipes.

    `reserve` takes it from the machine's memory, too; False where there is none left.
    """

    def __init__(
        self, limit_bytes: int, message: Callable[[str], None], reserve: Callable[[int], bool] = lambda count: True
    ) -> None:
        self.limit_bytes = limit_bytes
        self._reserve = reserve
        self.used_bytes = 0
        self._message = message
        self._told = False

    def take(self, count: int) -> None:
        """Reserve `count` bytes (negative: give back). ENOSPC when there is no room, said once."""
        if count > 0 and self.used_bytes + count > self.limit_bytes:
            self._refuse(count, f"the limit is {self.limit_bytes} bytes")
        if count and not self._reserve(count):
            self._refuse(count, "the machine's memory is used up (--memory)")
        self.used_bytes += count

    def _refuse(self, count: int, why: str) -> NoReturn:
        if not self._told:
            self._told = True
            self._message(f"files in memory (/tmp, memfd) are full: {why} (ENOSPC)")
        raise LinuxError(ENOSPC, f"{self.used_bytes} + {count} bytes of files in memory: {why}")


class OutputBudget:
    """How much the guest may still write to the host: to files and standard streams, and as names of new files."""

    NAME_BYTES = 4096  # what a new name counts as: it takes an inode of the host's

    def __init__(self, limit_bytes: int, message: Callable[[str], None]) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._message = message
        self._told = False

    def take(self, count: int) -> int:
        """How many of `count` bytes may be written. ENOSPC when none may, said once."""
        granted = self.granted(count)
        if count and not granted:
            raise self._refusal()
        return granted

    def granted(self, count: int) -> int:
        """The same for who cannot refuse: 0 when none may."""
        granted = min(count, self.limit_bytes - self.used_bytes)
        if granted < count and not self._told:
            self._told = True
            limit = f"{self.limit_bytes} bytes"
            self._message(f"the guest has written {limit} to the host, and may not write more (ENOSPC; --max-output)")
        self.used_bytes += granted
        return granted

    def take_all(self, count: int) -> None:
        """All of `count` bytes, or ENOSPC."""
        granted = self.take(count)
        if granted < count:
            self.used_bytes -= granted
            raise self._refusal()

    def _refusal(self) -> LinuxError:
        return LinuxError(ENOSPC, f"{self.used_bytes} bytes have been written to the host")

    def take_name(self) -> None:
        """A new file, directory or link."""
        self.take(self.NAME_BYTES)


@dataclass(slots=True)
class Superblock:
    """What all nodes of a file system share; all of a machine's share the inode numbers and what follows them."""

    now: Callable[[], int]  # guest CLOCK_REALTIME in ns
    budget: MemoryBudget
    output: OutputBudget
    user: tuple[int, int]  # uid and gid: whose the host user's files are, where the guest may write
    host_uid: int  # the host user's
    host_gid: int
    owners: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)  # host's device, inode -> uid, gid
    inodes: InodeNumbers = field(default_factory=InodeNumbers)
    changed_ns: dict[tuple[int, int], int] = field(default_factory=dict)  # host's device, inode -> guest's last change
    device: tuple[int, int] = HOST_DEVICE
    statistics: FileSystemStatistics = HOST_STATISTICS
    hidden_devices: frozenset[int] = frozenset()  # st_dev of the host's file systems that are not to be seen

    owner = 0  # uid and gid of what the machine makes itself

    def owner_of(self, status: os.stat_result, *, writable: bool) -> tuple[int, int]:
        """uid and gid of a host file: those that the guest gave it, or what stands for the host's.

        Files of the host's user belong to the guest's user where the guest may write, and to root elsewhere: so who
        that is on the host is not seen.
        """
        if self.owners and (given := self.owners.get((status.st_dev, status.st_ino))) is not None:
            return given
        uid, gid = self.user if writable else (0, 0)
        return (
            uid if status.st_uid == self.host_uid else status.st_uid,
            gid if status.st_gid == self.host_gid else status.st_gid,
        )


class Body(Protocol):
    """The contents of an open regular file. Offsets and sizes are in bytes and not negative.

    It lives as long as somebody has it (descriptors, mappings) and frees what it holds when the last one lets go of it.
    """

    @property
    def seals(self) -> int:
        """F_SEAL_*: what nobody may do to it any more."""

    @property
    def all_or_nothing(self) -> bool:
        """Whether a read of which not all arrives has found nothing."""

    def read_at(self, offset: int, size: int) -> bytes: ...
    def write_at(self, offset: int, data: bytes) -> int: ...
    def size(self) -> int: ...
    def truncate(self, size: int) -> None: ...
    def skip_hole(self, offset: int) -> int:
        """Where looking for other bytes than zeroes may begin (holes.py)."""

    def attributes(self) -> Attributes: ...
    def set_mode(self, permissions: int) -> None: ...
    def set_times(self, accessed_ns: int | None, modified_ns: int | None) -> None: ...


class Node:
    """One inode. Every change is refused unless a subclass allows it."""

    __slots__ = ()
    statistics: FileSystemStatistics = HOST_STATISTICS

    @property
    def file_type(self) -> int:
        """stat.S_IFREG and so on."""
        raise NotImplementedError

    def attributes(self) -> Attributes:
        raise NotImplementedError

    def attributes_as_found(self) -> Attributes:
        """For whoever has just looked the node up, once: nobody looks again at what was seen then."""
        return self.attributes()

    @property
    def inode(self) -> int:
        """The number alone: a listing does not ask for more."""
        return self.attributes().inode

    def permits(self, wanted: int) -> bool:
        """access(2) for a sum of R_OK=4 W_OK=2 X_OK=1. The guest is root: only X_OK asks the mode. May raise EROFS."""
        mode = self.attributes().mode
        return not wanted & 1 or file_mode.S_ISDIR(mode) or bool(mode & 0o111)

    def set_mode(self, permissions: int) -> None:
        raise LinuxError(EROFS, "chmod of a file that the guest may not change")

    @property
    def asks_for_owner(self) -> bool:
        """Whether owner, group and mode decide who may do what; if not, the node looks after itself."""
        return True

    def set_owner(self, uid: int, gid: int) -> None:
        raise LinuxError(EROFS, "chown of a file that the guest may not change")

    def set_times(self, accessed_ns: int | None, modified_ns: int | None) -> None:
        """None leaves a time as it is."""
        raise LinuxError(EROFS, "utimensat of a file that the guest may not change")


class BodyOfNode:
    """What every `Body` leaves to its node. It cannot be sealed."""

    __slots__ = ("_node",)
    seals = F_SEAL_SEAL
    all_or_nothing = False

    def __init__(self, node: Node) -> None:
        self._node = node

    def skip_hole(self, offset: int) -> int:
        return offset

    def attributes(self) -> Attributes:
        return self._node.attributes()

    def set_mode(self, permissions: int) -> None:
        self._node.set_mode(permissions)

    def set_times(self, accessed_ns: int | None, modified_ns: int | None) -> None:
        self._node.set_times(accessed_ns, modified_ns)


class Regular(Node):
    """A file with contents."""

    __slots__ = ()

    @property
    def file_type(self) -> int:
        return file_mode.S_IFREG

    def open(self, *, write: bool, truncate: bool) -> Body:
        raise NotImplementedError

    def truncate(self, size: int) -> None:
        """truncate(2)"""
        self.open(write=True, truncate=False).truncate(size)


class Symlink(Node):
    """A symbolic link."""

    __slots__ = ()

    @property
    def file_type(self) -> int:
        return file_mode.S_IFLNK

    def target(self) -> str:
        raise NotImplementedError


class Directory(Node):
    """Names and their nodes. Names are str as os.fsdecode makes them."""

    __slots__ = ()

    @property
    def file_type(self) -> int:
        return file_mode.S_IFDIR

    @property
    def lasting(self) -> bool:
        """Whether who has found it by a path finds it there again, until something is moved or removed by its name."""
        return True

    def lookup(self, name: str) -> Node | None:
        raise NotImplementedError

    def lookup_as_found(self, name: str) -> Node | None:
        """The same for the walk that has just found this directory: nobody looks again whether it is there."""
        return self.lookup(name)

    def entries(self) -> Iterable[DirectoryEntry]:
        """All names but . and .., sorted by name, since the host's order is the host's."""
        raise NotImplementedError

    def writable(self) -> bool:
        return False

    def refusal(self, name: str) -> LinuxError:
        """Why no name can be made, changed or removed here."""
        return LinuxError(EROFS, f"{name}: the directory is read-only")

    def create(self, name: str, permissions: int) -> tuple[Regular, Body]:
        """A new empty file, open for reading and writing whatever its permissions."""
        raise self.refusal(name)

    def create_directory(self, name: str, permissions: int) -> None:
        raise self.refusal(name)

    def create_symlink(self, name: str, target: str) -> None:
        raise self.refusal(name)

    def add_special(self, name: str, node: Node) -> None:
        """A FIFO or socket of the machine's; its name is not in use."""
        raise self.refusal(name)

    def link(self, name: str, node: Node) -> None:
        """A hard link to `node`. EXDEV if another file system keeps it."""
        raise self.refusal(name)

    def remove(self, name: str) -> None:
        """unlink(2) of a node that exists and is no directory."""
        raise self.refusal(name)

    def remove_directory(self, name: str) -> None:
        """rmdir(2) of a directory that exists."""
        raise self.refusal(name)

    def rename(self, name: str, target: Directory, target_name: str, *, exchange: bool) -> None:
        """rename(2) of `name`, which exists, to `target_name` in `target`; what was there is replaced, or exchanged."""
        raise self.refusal(name)

    def temporary(self, permissions: int) -> Regular:
        """O_TMPFILE: a file without a name."""
        raise self.refusal("O_TMPFILE")

    def mount(self, name: str, node: Node) -> None:
        """Another tree begins at `name`, whether or not there is such a name. Before the guest starts."""
        raise self.refusal(name)


def check_rename(source: Node, target: Node | None) -> None:
    """The type rules of rename(2). Whether a directory that is replaced is empty is for its owner to check."""
    if target is None:
        return
    source_is_directory = source.file_type == file_mode.S_IFDIR
    target_is_directory = target.file_type == file_mode.S_IFDIR
    if source_is_directory and not target_is_directory:
        raise LinuxError(ENOTDIR, "a directory cannot replace a file")
    if target_is_directory and not source_is_directory:
        raise LinuxError(EISDIR, "a file cannot replace a directory")
