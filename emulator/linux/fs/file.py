"""File: an open file description, as syscalls use it, and FileTable: a process's file descriptors."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from emulator.linux.errors import EBADF, EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM, ENOTTY, ESPIPE, LinuxError
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.locks import FileLocks
from emulator.linux.mm.mapping import FileContent, Holder
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.credentials import Credentials
from emulator.linux.process.limits import Limits
from emulator.linux.sched.waiting import WaitQueue

# uapi/asm-generic/fcntl.h: the flags with the same value on both ISAs (the others: Architecture.open_flags)
O_RDONLY = 0
O_WRONLY = 1
O_RDWR = 2
O_ACCMODE = 3
O_CREAT = 0o100
O_EXCL = 0o200
O_NOCTTY = 0o400
O_TRUNC = 0o1000
O_APPEND = 0o2000
O_NONBLOCK = 0o4000
O_DSYNC = 0o10000
O_ASYNC = 0o20000
O_NOATIME = 0o1000000
O_CLOEXEC = 0o2000000
O_PATH = 0o10000000

POLLIN = 0x001  # uapi/asm-generic/poll.h
POLLPRI = 0x002
POLLOUT = 0x004
POLLERR = 0x008
POLLHUP = 0x010
POLLNVAL = 0x020
POLLRDNORM = 0x040
POLLWRNORM = 0x100
POLLRDHUP = 0x2000


class Caller(Protocol):
    """The task that calls, as files see it (a ``Task`` is one)."""

    @property
    def pid(self) -> int: ...
    @property
    def tid(self) -> int: ...
    @property
    def mm(self) -> MemoryMap: ...
    @property
    def credentials(self) -> Credentials: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def files(self) -> FileTable: ...


class Watcher(Protocol):
    """Who watches files as long as they are open (an epoll instance)."""

    def forget(self, file: File) -> None: ...


class held:
    """Files that a call works with stay open until it ends, whoever closes their descriptors meanwhile: fdget()."""

    __slots__ = ("_files",)

    def __init__(self, *files: File) -> None:
        self._files = files

    def __enter__(self) -> None:
        for file in self._files:
            file.retain()

    def __exit__(self, *error: object) -> None:
        for file in self._files:
            file.release()


class File:
    """An open file description: what several descriptors may share. A kind of file overrides what it can do.

    What is not overridden fails as a kernel without that `file_operations` entry does.
    """

    maps_as_anonymous = False  # mmap of it gives memory that is zero at first: /dev/zero
    writes_all = True  # a write that waits goes on until all is written
    reads_each_piece = False  # readv is a read for each piece of memory: it has `read`, not `read_iter`
    writes_each_piece = False
    signal_owner = 0  # fcntl(F_SETOWN): the process, or minus the group, that O_ASYNC signals
    signal = 0  # fcntl(F_SETSIG): the signal; 0 for SIGIO without information
    silence_ends = False  # a read that has waited that long gives nothing, rather than EAGAIN: a terminal's VTIME
    read_timeout_ns: int | None = None  # SO_RCVTIMEO: how long a read waits
    write_timeout_ns: int | None = None

    def __init__(self, flags: int = O_RDONLY, path: str = "") -> None:
        self.flags = flags  # O_ACCMODE and status flags; fcntl(F_SETFL) changes them
        self.path = path  # what /proc/self/fd shows
        self._references = 0
        self.locked: set[FileLocks] = set()  # in which this description owns locks
        self._changed: WaitQueue | None = None
        self.watchers: dict[Watcher, None] | None = None  # whom the end of this description concerns

    # lifetime: descriptors and device mappings hold references
    def retain(self) -> None:
        self._references += 1

    def release(self) -> None:
        """What the last reference held is released, too: one after the other, since each may hold the next."""
        released: list[File] = [self]
        while released:
            file = released.pop()
            assert file._references > 0, f"{file.path}: released more often than retained"
            file._references -= 1
            if file._references == 0:
                for locks in file.locked:
                    locks.drop(file)
                if file.watchers is not None:
                    for watcher in list(file.watchers):
                        watcher.forget(file)
                file.close()
                released.extend(file.let_go())

    def let_go(self) -> list[File]:
        """After `close`: files that this one held."""
        return []

    def lock_key(self) -> Hashable:
        """Which file it is to those who lock files: all opens of an inode are one."""
        return self

    @property
    def is_open(self) -> bool:
        """Whether anybody still holds it (an epoll instance forgets what is not open)."""
        return self._references > 0

    def close(self) -> None:
        """The last reference has gone."""

    # what a kind of file may do
    def read(self, task: Caller, destination: Destination) -> int:
        """What is at the file's position, which moves, as far as there is room: how many bytes; none at the end."""
        raise LinuxError(EINVAL, f"{self.path or type(self).__name__} cannot be read")

    def write(self, task: Caller, data: bytes) -> int:
        raise LinuxError(EINVAL, f"{self.path or type(self).__name__} cannot be written")

    def part_of_write(self, size: int, readable: int) -> int:
        """How much of a write of `size` bytes is done where only the first `readable` can be read; none is EFAULT.

        LinuxError for what is wrong whatever the bytes are, and is found before they are looked at.
        """
        return 0

    def check_waited_write(self) -> None:
        """What a write that has waited for room finds to be wrong before it goes on."""

    def read_at(self, task: Caller, offset: int, destination: Destination) -> int:
        """pread: the position stays."""
        raise LinuxError(ESPIPE, f"{self.path or type(self).__name__} has no offsets")

    def write_at(self, task: Caller, offset: int, data: bytes) -> int:
        raise LinuxError(ESPIPE, f"{self.path or type(self).__name__} has no offsets")

    def seek(self, offset: int, whence: int) -> int:
        raise LinuxError(ESPIPE, f"{self.path or type(self).__name__} cannot seek")

    def ioctl(self, task: Caller, request: int, argument: int) -> int:
        raise LinuxError(ENOTTY, f"{self.path or type(self).__name__} has no ioctl {request:#x}")

    def details(self) -> str:
        """What /proc/PID/fdinfo/N says besides position and flags: whole lines."""
        return ""

    def poll(self) -> int:
        """POLL* bits that hold now. A plain file is always ready."""
        return POLLIN | POLLOUT

    def polled(self) -> None:
        """Somebody has been told what `poll` says: what is said once is over."""

    # waiting
    @property
    def changed(self) -> WaitQueue:
        """Woken by whoever changes what `poll` says."""
        if self._changed is None:
            self._changed = WaitQueue()
        return self._changed

    def wait_queues(self) -> tuple[WaitQueue, ...]:
        """What to sleep on until `poll` may say something else."""
        return (self.changed,)

    def wakes(self) -> int:
        """How often anything has changed that somebody could wait for."""
        return sum(queue.wakes for queue in self.wait_queues())

    @property
    def seals(self) -> int:
        """F_SEAL_*: what nobody may do to the file any more."""
        return 0

    # mmap: a file has content (pages through the page cache), or frames of its own (a device), or neither
    def content(self) -> FileContent | None:
        return None

    def map_frames(self, task: Caller, length: int, offset: int, protection: int, shared: bool) -> tuple[int, Holder]:
        """The first of the contiguous frames that show `length` bytes at `offset` of a device, and who keeps them."""
        raise LinuxError(ENODEV, f"{self.path or type(self).__name__} cannot be mapped")

    protection_is_final = False
    """Whether mprotect(2) gives a mapping of the device no more than mmap(2) has, and never makes it executable."""

    @property
    def may_be_split(self) -> bool:
        """Whether a part of a mapping of the device may go alone."""
        return True

    def mapped(self) -> None:
        """A process has mapped the device's frames."""
        self.retain()

    def unmapped(self) -> None:
        """None of them is mapped any more in a process that had them."""
        self.release()

    @property
    def readable(self) -> bool:
        return self.flags & O_ACCMODE != O_WRONLY and not self.flags & O_PATH

    @property
    def writable(self) -> bool:
        return self.flags & O_ACCMODE != O_RDONLY and not self.flags & O_PATH


class DescriptorRoom:
    """How many descriptors all processes of a machine may have together: they take the host's memory."""

    def __init__(self, most: int = 1 << 20) -> None:
        self.most = most
        self.used = 0

    def take(self, count: int, code: int) -> None:
        if self.used + count > self.most:
            raise LinuxError(code, f"{self.used} descriptors: the machine has as many as it may")
        self.used += count


class FileTable:
    """Descriptor -> File, and which descriptors exec closes. `limit` is RLIMIT_NOFILE."""

    def __init__(self, limit: int = 1024, room: DescriptorRoom | None = None) -> None:
        self.limit = limit
        self._room = DescriptorRoom() if room is None else room
        self._files: dict[int, File] = {}
        self._lowest_free = 0  # all below are in use
        self._cloexec: set[int] = set()
        self._users = 1  # tasks
        self.locked: dict[Hashable, FileLocks] = {}  # files of which the process owns locks, by File.lock_key

    def retain(self) -> None:
        """One more task has these descriptors."""
        self._users += 1

    def release(self) -> None:
        """One task less; the last one closes all."""
        self._users -= 1
        if self._users == 0:
            self.close_all()

    @property
    def is_shared(self) -> bool:
        """Whether several tasks have these descriptors."""
        return self._users > 1

    def copy(self) -> FileTable:
        """fork: the same open files under the same descriptors."""
        copy = FileTable(self.limit, self._room)
        self._room.take(len(self._files), ENOMEM)
        for descriptor, file in self._files.items():
            copy._hold(descriptor, file, descriptor in self._cloexec)
        copy._lowest_free = self._lowest_free
        return copy

    def install(self, file: File, cloexec: bool = False, lowest: int = 0) -> int:
        """Give `file` the lowest free descriptor that is at least `lowest`. If there is none, a new file is closed."""
        descriptor = max(lowest, self._lowest_free)
        while descriptor in self._files:
            descriptor += 1
        file.retain()
        try:
            if descriptor >= self.limit:
                raise LinuxError(EMFILE, f"descriptor {descriptor}: the limit is {self.limit}")
            self._put(descriptor, file, cloexec)
        finally:
            file.release()
        if lowest <= self._lowest_free:
            self._lowest_free = descriptor + 1
        return descriptor

    def install_at(self, descriptor: int, file: File, cloexec: bool = False) -> int:
        """dup2: give `file` this very descriptor; what it named before is closed."""
        if not 0 <= descriptor < self.limit:
            raise LinuxError(EBADF, f"descriptor {descriptor} is not in 0..{self.limit - 1}")
        file.retain()  # before the old one goes: they may be the same
        try:
            if descriptor in self._files:
                self.close(descriptor)
            self._put(descriptor, file, cloexec)
        finally:
            file.release()
        return descriptor

    def _put(self, descriptor: int, file: File, cloexec: bool) -> None:
        self._room.take(1, ENFILE)
        self._hold(descriptor, file, cloexec)

    def _hold(self, descriptor: int, file: File, cloexec: bool) -> None:
        file.retain()
        self._files[descriptor] = file
        if cloexec:
            self._cloexec.add(descriptor)

    def get(self, descriptor: int) -> File:
        file = self._files.get(descriptor)
        if file is None:
            raise LinuxError(EBADF, f"descriptor {descriptor} is not open")
        return file

    def close(self, descriptor: int) -> None:
        file = self._files.pop(descriptor, None)
        if file is None:
            raise LinuxError(EBADF, f"descriptor {descriptor} is not open")
        self._room.used -= 1
        self._cloexec.discard(descriptor)
        self._lowest_free = min(self._lowest_free, descriptor)
        if self.locked:  # fcntl(2): whichever descriptor of the file is closed
            locks = self.locked.pop(file.lock_key(), None)
            if locks is not None:
                locks.drop(self)
        file.release()

    def dup(self, descriptor: int, lowest: int = 0, cloexec: bool = False) -> int:
        return self.install(self.get(descriptor), cloexec, lowest)

    def cloexec(self, descriptor: int) -> bool:
        self.get(descriptor)
        return descriptor in self._cloexec

    def set_cloexec(self, descriptor: int, cloexec: bool) -> None:
        self.get(descriptor)
        if cloexec:
            self._cloexec.add(descriptor)
        else:
            self._cloexec.discard(descriptor)

    def close_on_exec(self) -> None:
        for descriptor in sorted(self._cloexec):
            self.close(descriptor)

    def close_all(self) -> None:
        for descriptor in sorted(self._files):
            self.close(descriptor)

    @property
    def in_use(self) -> int:
        """How many descriptors are."""
        return len(self._files)

    def descriptors(self) -> list[int]:
        return sorted(self._files)
