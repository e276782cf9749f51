"""Event files: what epoll_create1 and eventfd2 make: an interest list, and a counter."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.linux.errors import EAGAIN, EEXIST, EINVAL, ELOOP, ENOENT, EPERM, LinuxError
from emulator.linux.file import O_RDWR, POLLERR, POLLHUP, POLLIN, POLLOUT, Caller, File
from emulator.linux.open_files import OpenDirectory, OpenFile
from emulator.linux.waiting import WaitQueue

EPOLLEXCLUSIVE = 1 << 28  # uapi/linux/eventpoll.h: of several instances, one or more are told; here all are
EPOLLWAKEUP = 1 << 29
EPOLLONESHOT = 1 << 30
EPOLLET = 1 << 31
EPOLL_READINESS = 0x0FFF_FFFF  # the bits that say for what; those above say how
EXCLUSIVE_OK = POLLIN | POLLOUT | POLLERR | POLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE  # fs/eventpoll.c
EVENTFD_LIMIT = (1 << 64) - 2


class EventCounter(File):
    """eventfd(2)"""

    writes_all = False  # of what is longer than a number the rest is ignored

    def __init__(self, value: int, flags: int, semaphore: bool) -> None:
        super().__init__(O_RDWR | flags, "anon_inode:[eventfd]")
        self._value = value
        self._semaphore = semaphore

    def read(self, task: Caller, size: int) -> bytes:
        if size < 8:
            raise LinuxError(EINVAL, f"an eventfd is read into 8 bytes, not {size}")
        if not self._value:
            raise LinuxError(EAGAIN, "the eventfd's counter is 0")
        taken = 1 if self._semaphore else self._value
        self._value -= taken
        self.changed.wake()
        return taken.to_bytes(8, "little")

    def write(self, task: Caller, data: bytes) -> int:
        added = int.from_bytes(data[:8], "little")
        if len(data) < 8 or added > EVENTFD_LIMIT:
            raise LinuxError(EINVAL, f"an eventfd takes 8 bytes with a number up to {EVENTFD_LIMIT:#x}")
        if self._value + added > EVENTFD_LIMIT:
            raise LinuxError(EAGAIN, "the eventfd's counter is full")
        self._value += added
        self.changed.wake()
        return 8

    def poll(self) -> int:
        return (POLLIN if self._value else 0) | (POLLOUT if self._value < EVENTFD_LIMIT else 0)


@dataclass(slots=True)
class Interest:
    """One file that an epoll instance watches."""

    file: File
    events: int
    data: int
    seen: int = 0  # EPOLLET: the readiness that has been told,
    wakes: int = -1  # and how often the file had changed then
    disabled: bool = False  # EPOLLONESHOT, after it was told


class EventPoll(File):
    """epoll(7). Watches what other descriptors have open."""

    def __init__(self) -> None:
        super().__init__(O_RDWR, "anon_inode:[eventpoll]")
        self._interests: dict[tuple[int, File], Interest] = {}

    def _forget_closed(self) -> None:
        for key in [key for key in self._interests if not key[1].is_open]:
            del self._interests[key]

    def _watches(self, other: EventPoll) -> bool:
        """Whether this instance, or one that it watches, watches `other`."""
        return any(
            file is other or (isinstance(file, EventPoll) and file._watches(other)) for _, file in self._interests
        )

    def add(self, descriptor: int, file: File, events: int, data: int) -> None:
        self._forget_closed()
        if isinstance(file, OpenFile | OpenDirectory):
            raise LinuxError(EPERM, f"{file.path} is always ready and cannot be watched")
        if file is self:
            raise LinuxError(EINVAL, "an epoll instance cannot watch itself")
        if events & EPOLLEXCLUSIVE and (isinstance(file, EventPoll) or events & ~EXCLUSIVE_OK):
            raise LinuxError(EINVAL, f"EPOLLEXCLUSIVE with events {events:#x}, for {file.path}")
        if isinstance(file, EventPoll) and file._watches(self):
            raise LinuxError(ELOOP, "epoll instances that watch each other")
        if (descriptor, file) in self._interests:
            raise LinuxError(EEXIST, f"descriptor {descriptor} is watched already")
        self._interests[descriptor, file] = Interest(file, events, data)
        self.changed.wake()

    def modify(self, descriptor: int, file: File, events: int, data: int) -> None:
        if events & EPOLLEXCLUSIVE:
            raise LinuxError(EINVAL, "EPOLLEXCLUSIVE is given when a file is added")
        self._check_watched(descriptor, file)
        if self._interests[descriptor, file].events & EPOLLEXCLUSIVE:
            raise LinuxError(EINVAL, f"descriptor {descriptor} is watched with EPOLLEXCLUSIVE")
        self._interests[descriptor, file] = Interest(file, events, data)
        self.changed.wake()

    def remove(self, descriptor: int, file: File) -> None:
        self._check_watched(descriptor, file)
        del self._interests[descriptor, file]

    def _check_watched(self, descriptor: int, file: File) -> None:
        """An interest is in an open file by the name of a descriptor, which may name another one by now."""
        self._forget_closed()
        if (descriptor, file) not in self._interests:
            raise LinuxError(ENOENT, f"descriptor {descriptor} is not watched")

    def _readiness(self, interest: Interest) -> int:
        if interest.disabled:
            return 0
        now = interest.file.poll() & (interest.events & EPOLL_READINESS | POLLERR | POLLHUP)
        if interest.events & EPOLLET:
            interest.seen &= now
            return now if now & ~interest.seen or (now and interest.wakes != interest.file.wakes()) else 0
        return now

    def ready(self) -> bool:
        self._forget_closed()
        return any(self._readiness(interest) for interest in self._interests.values())

    def take(self, limit: int) -> list[tuple[int, int]]:
        """At most `limit` (events, data) of what is ready, which counts as told."""
        self._forget_closed()
        told: list[tuple[int, int]] = []
        for interest in self._interests.values():
            if len(told) == limit:
                break
            events = self._readiness(interest)
            if events:
                told.append((events, interest.data))
                interest.seen, interest.wakes = events, interest.file.wakes()
                interest.disabled = bool(interest.events & EPOLLONESHOT)
        return told

    def poll(self) -> int:
        return POLLIN if self.ready() else 0

    def wait_queues(self) -> tuple[WaitQueue, ...]:
        """Its own, for what it watches, and those of what it watches."""
        self._forget_closed()
        watched = [queue for interest in self._interests.values() for queue in interest.file.wait_queues()]
        return (self.changed, *watched)
