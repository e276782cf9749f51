"""Open files: what open(2) makes of a node: a regular file with a position, a directory being read, a path (O_PATH)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from emulator.linux.errors import (
    EBADF,
    EFBIG,
    EINVAL,
    EISDIR,
    ENOTDIR,
    ENOTTY,
    ENXIO,
    EOPNOTSUPP,
    EPERM,
    LinuxError,
)
from emulator.linux.fs.attributes import Attributes, DirectoryEntry, FileSystemStatistics, pack_directory
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_APPEND, POLLIN, POLLOUT, Caller, File
from emulator.linux.fs.file_events import FileEvents
from emulator.linux.fs.holes import next_data, next_hole
from emulator.linux.fs.memory_files import F_SEAL_FUTURE_WRITE, F_SEAL_GROW, F_SEAL_SHRINK, F_SEAL_WRITE
from emulator.linux.fs.nodes import F_SEAL_SEAL, Body, Directory, Node
from emulator.linux.fs.notifications import IN_ACCESS, IN_MODIFY
from emulator.linux.fs.paths import Dentry
from emulator.linux.mm.mapping import FileContent, MappedFile
from emulator.linux.mm.page_cache import PageCache
from emulator.linux.tty.terminal_requests import FIONREAD

SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE = range(5)
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE, FALLOC_FL_ZERO_RANGE = 1, 2, 16  # uapi/linux/falloc.h
ZERO_BYTES = 1 << 20  # written at once
LARGE_READ_BYTES = 1 << 16  # from here on a read is cut at the file's size before memory is taken for it
OFFSET_LIMIT = (1 << 63) - 1


class NodeFile(File):
    """An open file with a place in the tree. `dentry` is set by who opens it."""

    dentry: Dentry | None = None

    @property
    def _node(self) -> Node:
        assert self.dentry is not None, f"{self.path or type(self).__name__} was opened without its node"
        return self.dentry.node

    events: FileEvents | None = None  # who hears what happens to it; set by who opens it

    def close(self) -> None:
        if self.events is not None:
            self.events.closed(self)

    def attributes(self) -> Attributes:
        return self._node.attributes()

    def lock_key(self) -> Hashable:
        return self.attributes().inode

    def statistics(self) -> FileSystemStatistics:
        return self._node.statistics

    def set_mode(self, permissions: int) -> None:
        self._node.set_mode(permissions)

    def set_times(self, accessed_ns: int | None, modified_ns: int | None) -> None:
        self._node.set_times(accessed_ns, modified_ns)

    def truncate(self, size: int) -> None:
        raise LinuxError(EINVAL, f"{self.path} is not a regular file")


class Content:
    """A file's contents for mappings. One for each inode: write-back works when any open of the file may write."""

    def __init__(self, identity: MappedFile, body: Body, writable: bool) -> None:
        self._identity = identity
        self.body = body
        self.writable = writable

    @property
    def identity(self) -> MappedFile:
        return self._identity

    def size(self) -> int:
        return self.body.size()

    def read_at(self, offset: int, size: int) -> bytes:
        return self.body.read_at(offset, size)

    def write_at(self, offset: int, data: bytes) -> int:
        return self.body.write_at(offset, data)


class Contents:
    """The contents that have been mapped, by inode."""

    def __init__(self, pages: PageCache) -> None:
        self.pages = pages
        self._by_inode: dict[int, Content] = {}

    def get(self, inode: int) -> Content | None:
        return self._by_inode.get(inode)

    def of(self, file: OpenFile) -> Content:
        attributes = file.attributes()
        content = self._by_inode.get(attributes.inode)
        if content is None:
            identity = MappedFile(file.path, *attributes.device, attributes.inode)
            content = self._by_inode[attributes.inode] = Content(identity, file.body, file.writable)
        elif file.writable and not content.writable:
            content.body, content.writable = file.body, True
        return content


class _Shown(NamedTuple):
    """A file's bytes as its mappings show them."""

    size: Callable[[], int]
    read_at: Callable[[int, int], bytes]

    def skip_hole(self, offset: int) -> int:
        return offset


class OpenFile(NodeFile):
    """A regular file, open."""

    writes_all = False  # where there is no room for all, none comes by waiting

    def __init__(self, body: Body, flags: int, path: str, contents: Contents) -> None:
        super().__init__(flags, path)
        self.body = body
        self.position = 0
        self._contents = contents
        self._inode = 0  # known when it has been asked for

    @property
    def reads_each_piece(self) -> bool:  # type: ignore[override]
        return self.body.all_or_nothing

    def _mapped(self) -> Content | None:
        if not self._inode:
            self._inode = self.body.attributes().inode
        return self._contents.get(self._inode)

    def read(self, task: Caller, destination: Destination) -> int:
        count = self.read_at(task, self.position, destination)
        self.position += count
        return count

    def read_at(self, task: Caller, offset: int, destination: Destination) -> int:
        give = destination.give_whole if self.body.all_or_nothing else destination.give
        count = give(self._bytes_at(offset, destination.left))
        if count and self.events is not None:
            self.events.about(self, IN_ACCESS)
        return count

    def _dirty(self) -> Content | None:
        """What mappings show, if they may have been written since the body was."""
        mapped = self._mapped()
        is_dirty = mapped is not None and mapped.writable and self._contents.pages.file(mapped).dirty
        return mapped if is_dirty else None

    def _bytes_at(self, offset: int, size: int) -> bytes:
        if size > LARGE_READ_BYTES:
            size = min(size, max(0, self.body.size() - offset))
        dirty = self._dirty()
        return self.body.read_at(offset, size) if dirty is None else self._contents.pages.read(dirty, offset, size)

    def part_of_write(self, size: int, readable: int) -> int:
        return readable

    def write(self, task: Caller, data: bytes) -> int:
        if self.flags & O_APPEND:
            self.position = self.body.size()
        written = self.write_at(task, self.position, data)
        self.position += written
        return written

    def write_at(self, task: Caller, offset: int, data: bytes) -> int:
        if self.flags & O_APPEND:  # Linux appends with pwrite, too: pwrite(2), BUGS
            offset = self.body.size()
        if not data:
            return 0
        seals = self.body.seals
        if seals & ~F_SEAL_SEAL:
            self._check_seals(seals, offset + len(data), writes=True)
        written = self.body.write_at(offset, data)
        mapped = self._mapped()
        if mapped is not None:
            self._contents.pages.written(mapped.identity, offset, data[:written])
        if self.events is not None:
            self.events.about(self, IN_MODIFY)
        return written

    def _check_seals(self, seals: int, end: int, *, writes: bool) -> None:
        """EPERM for what memfd_create's file has been sealed against."""
        size = self.body.size()
        if (
            (writes and seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
            or (end > size and seals & F_SEAL_GROW)
            or (end < size and not writes and seals & F_SEAL_SHRINK)
        ):
            raise LinuxError(EPERM, f"{self.path} has seals {seals:#x}")

    @property
    def seals(self) -> int:
        return self.body.seals

    def truncate(self, size: int) -> None:
        old = self.body.size()
        if self.body.seals & ~F_SEAL_SEAL:
            self._check_seals(self.body.seals, size, writes=False)
        self.body.truncate(size)
        mapped = self._mapped()
        if mapped is not None and size < old:
            self._contents.pages.truncated(mapped.identity, size)
        if self.events is not None:
            self.events.about(self, IN_MODIFY)

    def allocate(self, task: Caller, mode: int, offset: int, size: int) -> None:
        """fallocate(2): space is there anyway; what is left is the size, and the bytes that become zero."""
        keep_size = mode & FALLOC_FL_KEEP_SIZE
        end = offset + size
        if mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE):
            raise LinuxError(EOPNOTSUPP, f"fallocate mode {mode:#x}")
        if mode & FALLOC_FL_PUNCH_HOLE and (not keep_size or mode & FALLOC_FL_ZERO_RANGE):
            raise LinuxError(EOPNOTSUPP, "FALLOC_FL_PUNCH_HOLE needs FALLOC_FL_KEEP_SIZE, and no FALLOC_FL_ZERO_RANGE")
        if end > OFFSET_LIMIT:
            raise LinuxError(EFBIG, f"fallocate of {size} bytes at {offset}")
        if not keep_size and end > self.body.size():
            self.truncate(end)
        if mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE):
            end = min(end, self.body.size())
            for start in range(offset, end, ZERO_BYTES):
                self.write_at(task, start, bytes(min(ZERO_BYTES, end - start)))

    def seek(self, offset: int, whence: int) -> int:
        if whence == SEEK_CUR:
            offset += self.position
        elif whence == SEEK_END:
            offset += self.body.size()
        elif whence in (SEEK_DATA, SEEK_HOLE):
            offset = self._seek_hole(offset, whence)
        elif whence != SEEK_SET:
            raise LinuxError(EINVAL, f"whence {whence} is not one of 0..4")
        if not 0 <= offset <= OFFSET_LIMIT:
            raise LinuxError(EINVAL, f"offset {offset}")
        self.position = offset
        return offset

    def _seek_hole(self, offset: int, whence: int) -> int:
        size = self.body.size()
        if not 0 <= offset < size:
            raise LinuxError(ENXIO, f"offset {offset} of a file of {size} bytes")
        shown = self.body if self._dirty() is None else _Shown(self.body.size, self._bytes_at)
        if whence == SEEK_HOLE:
            return next_hole(shown, offset)
        data = next_data(shown, offset)
        if data is None:
            raise LinuxError(ENXIO, f"no data behind {offset}")
        return data

    def ioctl(self, task: Caller, request: int, argument: int) -> int:
        if request == FIONREAD:
            task.mm.write(argument, max(0, min(self.body.size() - self.position, 0x7FFFFFFF)).to_bytes(4, "little"))
            return 0
        raise LinuxError(ENOTTY, f"{self.path} has no ioctl {request:#x}")

    def poll(self) -> int:
        return POLLIN | POLLOUT

    def content(self) -> FileContent | None:
        return self._contents.of(self)

    def attributes(self) -> Attributes:
        return self.body.attributes()

    def set_mode(self, permissions: int) -> None:
        self.body.set_mode(permissions)

    def set_times(self, accessed_ns: int | None, modified_ns: int | None) -> None:
        self.body.set_times(accessed_ns, modified_ns)


class OpenDirectory(NodeFile):
    """A directory, open: getdents gives the names that were there when reading began."""

    def __init__(self, dentry: Dentry, flags: int) -> None:
        super().__init__(flags, dentry.path)
        self.dentry = dentry
        self._entries: list[DirectoryEntry] | None = None
        self._position = 0

    def read(self, task: Caller, destination: Destination) -> int:
        raise LinuxError(EISDIR, f"{self.path} is a directory")

    def read_at(self, task: Caller, offset: int, destination: Destination) -> int:
        raise LinuxError(EISDIR, f"{self.path} is a directory")

    def _names(self) -> list[DirectoryEntry]:
        if self._entries is None:
            dentry = self.dentry
            assert dentry is not None
            node = dentry.node
            assert isinstance(node, Directory)
            dots = [
                DirectoryEntry(node.inode, node.file_type, b"."),
                DirectoryEntry(dentry.parent.node.inode, node.file_type, b".."),
            ]
            self._entries = dots + list(node.entries())
        return self._entries

    def next_entries(self, destination: Destination, *, old_layout: bool = False) -> int:
        """getdents: as many records as fit and arrive: how many bytes; none at the end."""
        names = self._names()
        left = destination.left
        records = pack_directory(names[self._position :], self._position, left, old_layout=old_layout)
        if not records and self._position < len(names):
            raise LinuxError(EINVAL, f"the next name does not fit into {left} bytes")
        arrived = destination.put(b"".join(records))
        done = 0
        for record in records:
            if done + len(record) > arrived:
                break
            done += len(record)
            self._position += 1
        if records and not done:
            raise destination.fault()
        if self.events is not None:
            self.events.about(self, IN_ACCESS)
        return done

    def seek(self, offset: int, whence: int) -> int:
        if whence == SEEK_CUR:
            offset += self._position
        elif whence != SEEK_SET:
            raise LinuxError(EINVAL, f"whence {whence}: a directory's position is set or asked for")
        if offset < 0:
            raise LinuxError(EINVAL, f"position {offset} of a directory")
        self._position = offset
        if offset == 0:
            self._entries = None  # rewinddir: look again
        return offset


class PathFile(NodeFile):
    """O_PATH: a place in the tree, nothing more."""

    def __init__(self, dentry: Dentry, flags: int) -> None:
        super().__init__(flags, dentry.path)
        self.dentry = dentry

    def read(self, task: Caller, destination: Destination) -> int:
        raise LinuxError(EBADF, f"{self.path} was opened with O_PATH")

    def write(self, task: Caller, data: bytes) -> int:
        raise LinuxError(EBADF, f"{self.path} was opened with O_PATH")

    def read_at(self, task: Caller, offset: int, destination: Destination) -> int:
        raise LinuxError(EBADF, f"{self.path} was opened with O_PATH")

    def write_at(self, task: Caller, offset: int, data: bytes) -> int:
        raise LinuxError(EBADF, f"{self.path} was opened with O_PATH")

    def seek(self, offset: int, whence: int) -> int:
        raise LinuxError(EBADF, f"{self.path} was opened with O_PATH")

    def ioctl(self, task: Caller, request: int, argument: int) -> int:
        raise LinuxError(EBADF, f"{self.path} was opened with O_PATH")


def directory_of(file: File, descriptor: int) -> Dentry:
    """Where a relative path begins that is looked up at an open directory."""
    if not isinstance(file, NodeFile) or file.dentry is None or not isinstance(file.dentry.node, Directory):
        raise LinuxError(ENOTDIR, f"descriptor {descriptor} is not a directory")
    return file.dentry
