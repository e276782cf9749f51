"""Event files: what epoll_create1 and eventfd2 make: an interest list, and a counter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct

from emulator.linux.errors import EAGAIN, EEXIST, EINVAL, ELOOP, ENOENT, EPERM, LinuxError
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_RDWR, POLLERR, POLLHUP, POLLIN, POLLOUT, Caller, File
from emulator.linux.fs.open_files import OpenDirectory, OpenFile
from emulator.linux.sched.waiting import WaitQueue

EPOLLEXCLUSIVE = 1 << 28  # uapi/linux/eventpoll.h: of several instances, one or more are told; here all are
EPOLLWAKEUP = 1 << 29
EPOLLONESHOT = 1 << 30
EPOLLET = 1 << 31
EPOLL_READINESS = 0x0FFF_FFFF  # the bits that say for what; those above say how
EXCLUSIVE_OK = POLLIN | POLLOUT | POLLERR | POLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE  # fs/eventpoll.c
EVENTFD_LIMIT = (1 << 64) - 2


class EventCounter(File):
    """eventfd(2)"""

    writes_each_piece = True

    writes_all = False  # of what is longer than a number the rest is ignored

    def __init__(self, value: int, flags: int, semaphore: bool) -> None:
        super().__init__(O_RDWR | flags, "anon_inode:[eventfd]")
        self._value = value
        self._semaphore = semaphore

    def read(self, task: Caller, destination: Destination) -> int:
        """What does not arrive is counted no more."""
        if destination.left < 8:
            raise LinuxError(EINVAL, f"an eventfd is read into 8 bytes, not {destination.left}")
        if not self._value:
            raise LinuxError(EAGAIN, "the eventfd's counter is 0")
        taken = 1 if self._semaphore else self._value
        self._value -= taken
        self.changed.wake()
        return destination.give_whole(taken.to_bytes(8, "little"))

    def part_of_write(self, size: int, readable: int) -> int:
        """What is too short is refused before it is looked at."""
        return size if size < 8 else 0

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


MOST_NESTED = 4  # fs/eventpoll.c, EP_MAX_NESTS
MOST_WAYS = 1000  # from an instance to those that it watches, and they watch; and so upward


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
        self._descriptors: dict[File, list[int]] = {}  # by which each of the files is watched

    def forget(self, file: File) -> None:
        """It is closed."""
        for descriptor in self._descriptors.pop(file):
            del self._interests[descriptor, file]

    def close(self) -> None:
        for file in self._descriptors:
            if file.watchers is not None:
                file.watchers.pop(self, None)

    def _instances(self) -> list[EventPoll]:
        return [file for file in self._descriptors if isinstance(file, EventPoll)]

    def _watchers(self) -> list[EventPoll]:
        return [watcher for watcher in self.watchers or () if isinstance(watcher, EventPoll)]

    def _check_nesting(self, other: EventPoll) -> None:
        """Whether this instance may watch `other`: no circle, few levels, few ways (fs/eventpoll.c, path_limits)."""
        below, above = _ways(other, EventPoll._instances), _ways(self, EventPoll._watchers)
        if other in above or self in below:
            raise LinuxError(ELOOP, "epoll instances that watch each other")
        if max(levels for levels, _ in below.values()) + max(levels for levels, _ in above.values()) >= MOST_NESTED:
            raise LinuxError(ELOOP, f"epoll instances nested more than {MOST_NESTED} deep")
        if sum(ways for _, ways in below.values()) * sum(ways for _, ways in above.values()) > MOST_WAYS:
            raise LinuxError(EINVAL, f"more than {MOST_WAYS} ways through epoll instances")

    def add(self, descriptor: int, file: File, events: int, data: int) -> None:
        if isinstance(file, OpenFile | OpenDirectory):
            raise LinuxError(EPERM, f"{file.path} is always ready and cannot be watched")
        if file is self:
            raise LinuxError(EINVAL, "an epoll instance cannot watch itself")
        if events & EPOLLEXCLUSIVE and (isinstance(file, EventPoll) or events & ~EXCLUSIVE_OK):
            raise LinuxError(EINVAL, f"EPOLLEXCLUSIVE with events {events:#x}, for {file.path}")
        if isinstance(file, EventPoll):
            self._check_nesting(file)
        if (descriptor, file) in self._interests:
            raise LinuxError(EEXIST, f"descriptor {descriptor} is watched already")
        self._interests[descriptor, file] = Interest(file, events, data)
        self._descriptors.setdefault(file, []).append(descriptor)
        if file.watchers is None:
            file.watchers = {}
        file.watchers[self] = None
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
        self._descriptors[file].remove(descriptor)
        if not self._descriptors[file]:
            del self._descriptors[file]
            if file.watchers is not None:
                file.watchers.pop(self, None)

    def _check_watched(self, descriptor: int, file: File) -> None:
        """An interest is in an open file by the name of a descriptor, which may name another one by now."""
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
        return any(self._readiness(interest) for interest in self._interests.values())

    def take(self, layout: Struct, destination: Destination) -> int:
        """Tell what is ready, as far as there is room: of how many. What does not arrive is told again."""
        told = 0
        for interest in self._interests.values():
            if destination.left < layout.size:
                break
            events = self._readiness(interest)
            if events:
                if destination.put(layout.pack(events, interest.data)) < layout.size:
                    if not told:
                        raise destination.fault()
                    break
                told += 1
                interest.seen, interest.wakes = events, interest.file.wakes()
                interest.disabled = bool(interest.events & EPOLLONESHOT)
        return told

    def poll(self) -> int:
        return POLLIN if self.ready() else 0

    def wait_queues(self) -> tuple[WaitQueue, ...]:
        """Its own, for what it watches, and those of what it watches."""
        watched = [queue for interest in self._interests.values() for queue in interest.file.wait_queues()]
        return (self.changed, *watched)


def _ways(start: EventPoll, following: Callable[[EventPoll], list[EventPoll]]) -> dict[EventPoll, tuple[int, int]]:
    """Each instance that can be come to from `start`: in how many levels at most, and in how many ways."""
    found = {start: (0, 1)}
    level = {start: 1}
    for levels in range(1, MOST_NESTED + 2):
        further: dict[EventPoll, int] = {}
        for instance, ways in level.items():
            for other in following(instance):
                further[other] = further.get(other, 0) + ways
        for other, ways in further.items():
            found[other] = levels, found.get(other, (0, 0))[1] + ways
        level = further
    return found
