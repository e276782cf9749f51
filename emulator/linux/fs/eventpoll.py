"""epoll instances: which files a program watches, and in which order it is told of those that are ready."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct

from emulator.linux.errors import EEXIST, EINVAL, ELOOP, ENOENT, EPERM, LinuxError
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_RDWR, POLLERR, POLLHUP, POLLIN, POLLOUT, File
from emulator.linux.fs.open_files import OpenDirectory, OpenFile
from emulator.linux.sched.waiting import WaitQueue, Wake

EPOLLEXCLUSIVE = 1 << 28  # uapi/linux/eventpoll.h: of several instances, one or more are told; here all are
EPOLLWAKEUP = 1 << 29
EPOLLONESHOT = 1 << 30
EPOLLET = 1 << 31
EPOLL_READINESS = 0x0FFF_FFFF  # the bits that say for what; those above say how
EXCLUSIVE_OK = POLLIN | POLLOUT | POLLERR | POLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE  # fs/eventpoll.c

MOST_NESTED = 4  # fs/eventpoll.c, EP_MAX_NESTS
MOST_WAYS = 1000  # from an instance to those that it watches, and they watch; and so upward


@dataclass(slots=True, eq=False)
class Interest:
    """One file that an epoll instance watches."""

    poll: EventPoll
    file: File
    events: int
    data: int
    seen: int = 0  # EPOLLET: the readiness that has been told,
    wakes: int = -1  # and how often the file had changed then
    disabled: bool = False  # EPOLLONESHOT, after it was told
    queues: tuple[WaitQueue, ...] = ()  # where it waits for the file to become ready

    def watch(self) -> None:
        self.queues = self.file.wait_queues()
        for queue in self.queues:
            queue.add(self)

    def leave(self) -> None:
        for queue in self.queues:
            queue.remove(self)

    def wake(self, reason: Wake) -> bool:
        """ep_poll_callback(): something has happened to the file. Nobody has slept here."""
        self.poll.see(self)
        return False

    def readiness(self) -> int:
        """EPOLL* bits to tell now."""
        if self.disabled:
            return 0
        now = self.file.poll() & (self.events & EPOLL_READINESS | POLLERR | POLLHUP)
        if self.events & EPOLLET:
            self.seen &= now
            return now if now & ~self.seen or (now and self.wakes != self.file.wakes()) else 0
        return now

    def told(self, events: int) -> None:
        self.file.polled()
        self.seen, self.wakes = events, self.file.wakes()
        self.disabled = bool(self.events & EPOLLONESHOT)


class EventPoll(File):
    """epoll(7). Watches what other descriptors have open."""

    def __init__(self) -> None:
        super().__init__(O_RDWR, "anon_inode:[eventpoll]")
        self._interests: dict[tuple[int, File], Interest] = {}
        self._ready: dict[Interest, None] = {}  # rdllist: in the order in which they became so, as far as is known
        self._descriptors: dict[File, list[int]] = {}  # by which each of the files is watched

    def forget(self, file: File) -> None:
        """It is closed."""
        for descriptor in self._descriptors.pop(file):
            self._drop(descriptor, file)

    def _drop(self, descriptor: int, file: File) -> None:
        interest = self._interests.pop((descriptor, file))
        interest.leave()
        self._ready.pop(interest, None)

    def close(self) -> None:
        for interest in self._interests.values():
            interest.leave()
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
        interest = self._interests[descriptor, file] = Interest(self, file, events, data)
        interest.watch()
        self.see(interest)
        self._descriptors.setdefault(file, []).append(descriptor)
        if file.watchers is None:
            file.watchers = {}
        file.watchers[self] = None
        self.changed.wake()

    def modify(self, descriptor: int, file: File, events: int, data: int) -> None:
        if events & EPOLLEXCLUSIVE:
            raise LinuxError(EINVAL, "EPOLLEXCLUSIVE is given when a file is added")
        self._check_watched(descriptor, file)
        interest = self._interests[descriptor, file]
        if interest.events & EPOLLEXCLUSIVE:
            raise LinuxError(EINVAL, f"descriptor {descriptor} is watched with EPOLLEXCLUSIVE")
        interest.events, interest.data = events, data
        interest.seen, interest.wakes, interest.disabled = 0, -1, False
        self.see(interest)
        self.changed.wake()

    def remove(self, descriptor: int, file: File) -> None:
        self._check_watched(descriptor, file)
        self._drop(descriptor, file)
        self._descriptors[file].remove(descriptor)
        if not self._descriptors[file]:
            del self._descriptors[file]
            if file.watchers is not None:
                file.watchers.pop(self, None)

    def _check_watched(self, descriptor: int, file: File) -> None:
        """An interest is in an open file by the name of a descriptor, which may name another one by now."""
        if (descriptor, file) not in self._interests:
            raise LinuxError(ENOENT, f"descriptor {descriptor} is not watched")

    def see(self, interest: Interest) -> None:
        """Behind those that are ready, if this one is and was not."""
        if interest not in self._ready and interest.readiness():
            self._ready[interest] = None

    def ready(self) -> bool:
        """Whether anything is. What is not ready after all loses its place (__ep_eventpoll_poll())."""
        for interest in list(self._ready):
            if interest.readiness():
                return True
            del self._ready[interest]
        return any(interest.readiness() for interest in self._interests.values())

    def take(self, layout: Struct, destination: Destination) -> int:
        """Tell what is ready, as far as there is room: of how many. What does not arrive is told again.

        ep_send_events(): those for which there was no room come first in the next call, and those that stay ready, as
        they are watched for a level, behind them.
        """
        for interest in self._interests.values():
            self.see(interest)  # of what becomes ready without waking anybody
        told: list[Interest] = []
        for interest in list(self._ready):
            if destination.left < layout.size:
                break
            events = interest.readiness()
            if events and destination.put(layout.pack(events, interest.data)) < layout.size:
                if not told:
                    raise destination.fault()
                break
            del self._ready[interest]
            if events:
                interest.told(events)
                told.append(interest)
        self._ready.update((interest, None) for interest in told if not interest.events & (EPOLLET | EPOLLONESHOT))
        return len(told)

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
