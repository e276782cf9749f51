"""Pipes: two ends of a buffer in memory. What would have to wait is EAGAIN; waiting is the syscall's."""

from __future__ import annotations

import stat as file_mode

from emulator.linux.attributes import Attributes, FileSystemStatistics
from emulator.linux.errors import EAGAIN, ENOTTY, EPIPE, LinuxError
from emulator.linux.file import O_NONBLOCK, O_RDONLY, O_WRONLY, POLLERR, POLLHUP, POLLIN, POLLOUT, Caller
from emulator.linux.nodes import PIPE_DEVICE, PIPE_STATISTICS, Node, Superblock
from emulator.linux.open_files import FIONREAD, NodeFile
from emulator.linux.paths import Dentry
from emulator.linux.waiting import WaitQueue

CAPACITY_BYTES = 65_536  # pipe(7)
MOST_CAPACITY_BYTES = 1 << 20  # fs.pipe-max-size
ATOMIC_BYTES = 4096  # PIPE_BUF


class Pipe(Node):
    """The buffer between a reading and a writing end."""

    __slots__ = ("_number", "capacity", "changed", "data", "made_ns", "readers", "superblock", "writers")
    statistics = PIPE_STATISTICS

    def __init__(self, superblock: Superblock) -> None:
        self.superblock = superblock
        self.capacity = CAPACITY_BYTES
        self.changed = WaitQueue()  # of either end
        self.data = bytearray()
        self.readers = 0
        self.writers = 0
        self._number = superblock.inodes.new()
        self.made_ns = superblock.now()

    @property
    def file_type(self) -> int:
        return file_mode.S_IFIFO

    def attributes(self) -> Attributes:
        owner = self.superblock.owner
        mode = file_mode.S_IFIFO | 0o600
        return Attributes(
            self._number, mode, 0, 1, owner, owner, PIPE_DEVICE, (0, 0), self.made_ns, self.made_ns
        )  # fmt: skip

    def __del__(self) -> None:
        self.superblock.budget.take(-len(self.data))

    def ends(self, flags: int) -> tuple[PipeEnd, PipeEnd]:
        return ReadEnd(self, O_RDONLY | flags & O_NONBLOCK), WriteEnd(self, O_WRONLY | flags & O_NONBLOCK)

    def open_file(self, task: Caller, flags: int, path: str) -> PipeEnd:
        """/proc/self/fd/N of a pipe: another description of the same end."""
        kind = ReadEnd if flags & 3 == O_RDONLY else WriteEnd
        return kind(self, flags)


class PipeEnd(NodeFile):
    """One end."""

    def __init__(self, pipe: Pipe, flags: int) -> None:
        super().__init__(flags, f"pipe:[{pipe.inode}]")
        self.pipe = pipe
        self.dentry = Dentry(pipe, "", None)

    @property
    def changed(self) -> WaitQueue:
        return self.pipe.changed

    def statistics(self) -> FileSystemStatistics:
        return PIPE_STATISTICS

    def ioctl(self, task: Caller, request: int, argument: int) -> int:
        if request == FIONREAD:
            task.mm.write(argument, len(self.pipe.data).to_bytes(4, "little"))
            return 0
        raise LinuxError(ENOTTY, f"{self.path} has no ioctl {request:#x}")


class ReadEnd(PipeEnd):
    """Where a pipe is read."""

    def __init__(self, pipe: Pipe, flags: int) -> None:
        super().__init__(pipe, flags)
        pipe.readers += 1

    def read(self, task: Caller, size: int) -> bytes:
        pipe = self.pipe
        if not pipe.data and size:
            if not pipe.writers:
                return b""
            raise LinuxError(EAGAIN, f"{self.path} is empty")
        data = bytes(pipe.data[:size])
        del pipe.data[:size]
        pipe.superblock.budget.take(-len(data))
        pipe.changed.wake()
        return data

    def poll(self) -> int:
        return (POLLIN if self.pipe.data else 0) | (0 if self.pipe.writers else POLLHUP)

    def close(self) -> None:
        self.pipe.readers -= 1
        self.pipe.changed.wake()


class WriteEnd(PipeEnd):
    """Where a pipe is written."""

    def __init__(self, pipe: Pipe, flags: int) -> None:
        super().__init__(pipe, flags)
        pipe.writers += 1

    def write(self, task: Caller, data: bytes) -> int:
        pipe = self.pipe
        if not pipe.readers:
            raise LinuxError(EPIPE, f"{self.path}: the reading end is closed")
        room = pipe.capacity - len(pipe.data)
        if room < len(data) and (room == 0 or len(data) <= ATOMIC_BYTES):
            raise LinuxError(EAGAIN, f"{self.path}: no room for {len(data)} bytes")
        taken = data[:room]
        pipe.superblock.budget.take(len(taken))
        pipe.data += taken
        pipe.changed.wake()
        return len(taken)

    def poll(self) -> int:
        room = self.pipe.capacity - len(self.pipe.data)
        return (POLLOUT if room >= ATOMIC_BYTES else 0) | (0 if self.pipe.readers else POLLERR)

    def close(self) -> None:
        self.pipe.writers -= 1
        self.pipe.changed.wake()
