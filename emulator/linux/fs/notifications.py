"""Notifications: who is told what happens to files (inotify(7)). fs/notify

Told is what the guest does, through whichever process; what happens to the host's files otherwise is not, since it
would come at another moment in each run.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, replace

from emulator.linux.errors import EAGAIN, EEXIST, EINVAL, ENOSPC, ENOTTY, LinuxError
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_RDONLY, POLLIN, Caller, File
from emulator.linux.tty.terminal_requests import FIONREAD

# uapi/linux/inotify.h: what happens
IN_ACCESS, IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_CLOSE_NOWRITE, IN_OPEN = 0x1, 0x2, 0x4, 0x8, 0x10, 0x20
IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF = (
    0x40, 0x80, 0x100, 0x200, 0x400, 0x800,
)  # fmt: skip
IN_ALL_EVENTS = 0xFFF
IN_Q_OVERFLOW, IN_IGNORED, IN_ISDIR = 0x4000, 0x8000, 0x4000_0000
# how a watch behaves
IN_ONLYDIR, IN_DONT_FOLLOW, IN_EXCL_UNLINK = 0x100_0000, 0x200_0000, 0x400_0000
IN_MASK_CREATE, IN_MASK_ADD, IN_ONESHOT = 0x1000_0000, 0x2000_0000, 0x8000_0000
KNOWN_MASK = (
    IN_ALL_EVENTS | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK | IN_MASK_CREATE | IN_MASK_ADD | IN_ONESHOT | IN_ISDIR
)  # what is known besides (IN_Q_OVERFLOW, IN_IGNORED, IN_UNMOUNT) comes without being asked for

EVENT = struct.Struct("<iIII")  # struct inotify_event: wd mask cookie len, then the name
MOST_EVENTS = 16_384  # fs.inotify.max_queued_events
MOST_WATCHES = 65_536  # fs.inotify.max_user_watches
MOST_INSTANCES = 128  # fs.inotify.max_user_instances


@dataclass(slots=True, eq=False)
class Watch:
    """One inode that one instance watches."""

    instance: Inotify
    descriptor: int
    inode: int
    mask: int


@dataclass(frozen=True, slots=True)
class Happening:
    """What is read of an inotify descriptor."""

    descriptor: int
    mask: int
    cookie: int = 0
    name: bytes = b""

    def pack(self) -> bytes:
        padded = self.name.ljust(-(-(len(self.name) + 1) // EVENT.size) * EVENT.size, b"\0") if self.name else b""
        return EVENT.pack(self.descriptor, self.mask, self.cookie, len(padded)) + padded


class Notifications:
    """All watches of a machine, by inode. While there are none, telling costs nothing."""

    def __init__(self) -> None:
        self._watches: dict[int, list[Watch]] = {}
        self._last_cookie = 0
        self.instances = 0
        self.count = 0  # of watches

    def __bool__(self) -> bool:
        """Whether anybody wants to know anything."""
        return bool(self._watches)

    def new_cookie(self) -> int:
        """What the two events of a rename have in common."""
        self._last_cookie += 1
        return self._last_cookie

    def add(self, watch: Watch) -> None:
        if self.count >= MOST_WATCHES:
            raise LinuxError(ENOSPC, f"{MOST_WATCHES} watches: fs.inotify.max_user_watches is reached")
        self._watches.setdefault(watch.inode, []).append(watch)
        self.count += 1

    def remove(self, watch: Watch) -> None:
        watches = self._watches[watch.inode]
        watches.remove(watch)
        self.count -= 1
        if not watches:
            del self._watches[watch.inode]

    def tell(self, inode: int, mask: int, name: bytes = b"", cookie: int = 0, *, nameless: bool = False) -> None:
        """Something happened to an inode, or to what has `name` in it, or had (`nameless`)."""
        for watch in list(self._watches.get(inode, ())):
            if watch.mask & mask & IN_ALL_EVENTS and not (nameless and watch.mask & IN_EXCL_UNLINK):
                watch.instance.put(Happening(watch.descriptor, mask, cookie, name))
                if watch.mask & IN_ONESHOT:
                    watch.instance.drop(watch)

    def gone(self, inode: int) -> None:
        """The inode is no more."""
        self.tell(inode, IN_DELETE_SELF)
        for watch in list(self._watches.get(inode, ())):
            watch.instance.drop(watch)


class Inotify(File):
    """inotify_init(2)"""

    reads_each_piece = True

    def __init__(self, notifications: Notifications, flags: int) -> None:
        super().__init__(O_RDONLY | flags, "anon_inode:inotify")
        self._notifications = notifications
        self._watches: dict[int, Watch] = {}  # by watch descriptor
        self._events: deque[Happening] = deque()
        self._last_descriptor = 0
        notifications.instances += 1

    def watch(self, inode: int, mask: int) -> int:
        """inotify_add_watch(2): the watch's descriptor. An inode has one of an instance."""
        kept = mask & ~(IN_MASK_ADD | IN_MASK_CREATE)
        for watch in self._watches.values():
            if watch.inode == inode:
                if mask & IN_MASK_CREATE:
                    raise LinuxError(EEXIST, "the file is watched already")
                watch.mask = watch.mask | kept if mask & IN_MASK_ADD else kept
                return watch.descriptor
        made = Watch(self, self._last_descriptor + 1, inode, kept)
        self._notifications.add(made)
        self._last_descriptor += 1
        self._watches[made.descriptor] = made
        return made.descriptor

    def unwatch(self, descriptor: int) -> None:
        """inotify_rm_watch(2)"""
        watch = self._watches.get(descriptor)
        if watch is None:
            raise LinuxError(EINVAL, f"nothing is watched as {descriptor}")
        self.drop(watch)

    def drop(self, watch: Watch) -> None:
        """The watch has gone, whyever: that is an event, too."""
        del self._watches[watch.descriptor]
        self._notifications.remove(watch)
        self.put(Happening(watch.descriptor, IN_IGNORED))

    def put(self, event: Happening) -> None:
        """An event that says the same as the last one is left out; when the queue is full, that alone is said."""
        last = self._events[-1] if self._events else None
        if last is not None and not event.mask & IN_IGNORED and replace(last, cookie=event.cookie) == event:
            return
        if len(self._events) >= MOST_EVENTS:
            event = Happening(-1, IN_Q_OVERFLOW)
            if last == event:
                return
        self._events.append(event)
        self.changed.wake()

    def read(self, task: Caller, destination: Destination) -> int:
        """As many whole events as fit. One that does not arrive is lost, and the call fails (inotify_read())."""
        if not self._events:
            raise LinuxError(EAGAIN, "nothing has happened")
        done = 0
        while self._events:
            packed = self._events[0].pack()
            if len(packed) > destination.left:
                break
            self._events.popleft()
            done += destination.give_whole(packed)
        if not done:
            raise LinuxError(EINVAL, f"the next event does not fit into {destination.left} bytes")
        return done

    def poll(self) -> int:
        return POLLIN if self._events else 0

    def ioctl(self, task: Caller, request: int, argument: int) -> int:
        if request != FIONREAD:
            raise LinuxError(ENOTTY, f"{self.path} has no ioctl {request:#x}")
        task.mm.write(argument, sum(len(event.pack()) for event in self._events).to_bytes(4, "little"))
        return 0

    def details(self) -> str:
        return "".join(
            f"inotify wd:{watch.descriptor:x} ino:{watch.inode:x} sdev:0 mask:{watch.mask & IN_ALL_EVENTS:x}"
            " ignored_mask:0\n"
            for watch in self._watches.values()
        )

    def close(self) -> None:
        for watch in self._watches.values():
            self._notifications.remove(watch)
        self._watches.clear()
        self._notifications.instances -= 1
