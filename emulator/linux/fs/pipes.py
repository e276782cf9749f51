"""Pipes: two ends of a buffer in memory. What would have to wait is EAGAIN; waiting is the syscall's."""

from __future__ import annotations

import stat as file_mode

from emulator.linux.errors import EAGAIN, EINVAL, ENOTTY, ENXIO, BrokenPipe, LinuxError
from emulator.linux.fs.attributes import Attributes
from emulator.linux.fs.byte_queue import ByteQueue
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import (
    O_ACCMODE,
    O_NONBLOCK,
    O_RDONLY,
    O_WRONLY,
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    Caller,
)
from emulator.linux.fs.memory_files import MemoryNode
from emulator.linux.fs.nodes import PIPE_DEVICE, PIPE_STATISTICS, Node, Superblock
from emulator.linux.fs.open_files import NodeFile
from emulator.linux.fs.paths import Dentry
from emulator.linux.mm.mapping import PAGE_SIZE
from emulator.linux.sched.waiting import WaitQueue
from emulator.linux.tty.terminal_requests import FIONREAD

CAPACITY_BYTES = 65_536  # pipe(7)
MOST_CAPACITY_BYTES = 1 << 20  # fs.pipe-max-size
ATOMIC_BYTES = 4096  # PIPE_BUF


class Pipe(Node):
    """The buffer between a reading and a writing end."""

    __slots__ = (
        "_filled",
        "_number",
        "arrived",
        "capacity",
        "data",
        "freed",
        "made_ns",
        "readers",
        "readers_ever",
        "superblock",
        "writers",
        "writers_ever",
    )
    statistics = PIPE_STATISTICS

    def __init__(self, superblock: Superblock) -> None:
        self.superblock = superblock
        self.capacity = CAPACITY_BYTES
        self.arrived = WaitQueue()  # for readers: there is data, or no writer
        self.freed = WaitQueue()  # for writers
        self.data = ByteQueue()
        self._filled = 0  # bytes of its last page, with those that have been read
        self.readers = self.readers_ever = 0
        self.writers = self.writers_ever = 0
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

    def append(self, data: bytes) -> None:
        """In pages. What of a write does not fill one goes into the last one, if it has room (pipe_write())."""
        size = len(data)
        joined = self.joined(size)
        self.data.add(data, PAGE_SIZE, joined)
        if size > joined:
            self._filled = (size - joined) % PAGE_SIZE or PAGE_SIZE
        else:
            self._filled += joined

    def joined(self, size: int) -> int:
        """How many bytes of a write go into the page that is there."""
        odd = size % PAGE_SIZE
        return odd if self.data and self._filled + odd <= PAGE_SIZE else 0

    def ends(self, flags: int) -> tuple[PipeEnd, PipeEnd]:
        return PipeEnd(self, O_RDONLY | flags & O_NONBLOCK), PipeEnd(self, O_WRONLY | flags & O_NONBLOCK)

    def open_file(self, task: Caller, flags: int, path: str) -> PipeEnd:
        """/proc/self/fd/N of a pipe: another description of the same end."""
        return _end(self, flags)


class Fifo(MemoryNode):
    """A pipe with a name (fifo(7)). The buffer lasts from the first open to the last close."""

    __slots__ = ("_pipe",)

    def __init__(self, superblock: Superblock, permissions: int) -> None:
        super().__init__(superblock, file_mode.S_IFIFO | permissions)
        self._pipe: Pipe | None = None

    def open_file(self, task: Caller, flags: int, path: str) -> PipeEnd:
        """An end, at once. Whether the open has to wait for the other one is `PipeEnd.waits_for_other_end`."""
        pipe = self._pipe
        if pipe is None or not pipe.readers + pipe.writers:
            pipe = self._pipe = Pipe(self.superblock)
        if flags & O_ACCMODE == O_WRONLY and flags & O_NONBLOCK and not pipe.readers:
            raise LinuxError(ENXIO, f"{path}: nobody reads")
        end = _end(pipe, flags)
        end.path = path
        end.dentry = Dentry(self, "", None)
        return end


class PipeEnd(NodeFile):
    """One end, or both: a FIFO opened with O_RDWR never waits for another one, and never sees one go."""

    def __init__(self, pipe: Pipe, flags: int) -> None:
        super().__init__(flags, f"pipe:[{pipe.inode}]")
        self.pipe = pipe
        self.dentry = Dentry(pipe, "", None)
        self._writers_before = pipe.writers_ever if not pipe.writers else -1
        if self.writable:
            pipe.writers += 1
            pipe.writers_ever += 1
            pipe.arrived.wake()
        if self.readable:
            pipe.readers += 1
            pipe.readers_ever += 1
            pipe.freed.wake()

    @property
    def has_name(self) -> bool:
        """Opening a FIFO waits, and expects a writer; opening /proc/self/fd/N does not (fifo_open(), fs/pipe.c)."""
        return self.dentry is not None and isinstance(self.dentry.node, Fifo)

    def waits_for_other_end(self) -> bool:
        """Whether open(2) of this end of a FIFO waits until somebody opens the other one."""
        return self.has_name and not (self.pipe.readers and self.pipe.writers) and not self.flags & O_NONBLOCK

    def came(self) -> int:
        """How often the other end has been opened."""
        return self.pipe.writers_ever if self.readable else self.pipe.readers_ever

    def wait_queues(self) -> tuple[WaitQueue, ...]:
        pipe = self.pipe
        return (*((pipe.arrived,) if self.readable else ()), *((pipe.freed,) if self.writable else ()))

    def read(self, task: Caller, destination: Destination) -> int:
        return read_pipe(self.pipe, destination, self.path)

    def part_of_write(self, size: int, readable: int) -> int:
        """Whole pages, and before them what goes into the last one (`Pipe.append`)."""
        check_readers(self.pipe, self.path)
        first = self.pipe.joined(size)
        return first + (readable - first) // PAGE_SIZE * PAGE_SIZE if readable >= first else 0

    def write(self, task: Caller, data: bytes) -> int:
        return write_pipe(self.pipe, data, self.path)

    def poll(self) -> int:
        """No hang-up before the first writer (pipe_poll(), fs/pipe.c)."""
        pipe = self.pipe
        bits = 0
        if self.readable:
            hung_up = not pipe.writers and (pipe.writers_ever != self._writers_before or not self.has_name)
            bits |= (POLLIN if pipe.data else 0) | (POLLHUP if hung_up else 0)
        if self.writable:
            has_room = pipe.capacity - len(pipe.data) >= ATOMIC_BYTES
            bits |= (POLLOUT if has_room else 0) | (0 if pipe.readers else POLLERR)
        return bits

    def ioctl(self, task: Caller, request: int, argument: int) -> int:
        if request == FIONREAD:
            task.mm.write(argument, len(self.pipe.data).to_bytes(4, "little"))
            return 0
        raise LinuxError(ENOTTY, f"{self.path} has no ioctl {request:#x}")

    def close(self) -> None:
        if self.writable:
            self.pipe.writers -= 1
            self.pipe.arrived.wake()
        if self.readable:
            self.pipe.readers -= 1
            self.pipe.freed.wake()


def _end(pipe: Pipe, flags: int) -> PipeEnd:
    if flags & O_ACCMODE == O_ACCMODE:  # fifo_open(), fs/pipe.c: access mode 3 opens neither end
        raise LinuxError(EINVAL, "a pipe is opened for reading, writing or both")
    return PipeEnd(pipe, flags)


def read_pipe(pipe: Pipe, destination: Destination, path: str) -> int:
    if not destination.left:
        return 0
    if not pipe.data:
        if not pipe.writers:
            return 0
        raise LinuxError(EAGAIN, f"{path} is empty")
    count = pipe.data.move(destination)
    pipe.superblock.budget.take(-count)
    pipe.freed.wake()
    return count


def check_readers(pipe: Pipe, path: str) -> None:
    if not pipe.readers:
        raise BrokenPipe(f"{path}: the reading end is closed", after_part=True)


def write_pipe(pipe: Pipe, data: bytes, path: str) -> int:
    if not data:
        return 0
    check_readers(pipe, path)
    room = pipe.capacity - len(pipe.data)
    if room < len(data) and (room <= 0 or len(data) <= ATOMIC_BYTES):
        raise LinuxError(EAGAIN, f"{path}: no room for {len(data)} bytes")
    taken = data[:room]
    pipe.superblock.budget.take(len(taken))
    pipe.append(taken)
    pipe.arrived.wake()
    return len(taken)
