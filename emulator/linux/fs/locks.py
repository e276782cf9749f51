"""Locks on files: fcntl(2)'s on ranges of bytes, of a process or of an open file, and flock(2)'s on whole files.

Owners are objects: a process's table of descriptors (Linux's files_struct) or an open file. The two families do not see
each other. Waiting is the system call's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from emulator.linux.errors import ENOLCK, LinuxError
from emulator.linux.sched.waiting import WaitQueue

END_OF_FILE = 1 << 63  # of a range that grows with the file
# Linux has no limits but its memory's.
FEW_LOCKS = 64  # of a file, for which nobody counts those of the others
MOST_LOCKS_OF_FILE = 2048
MOST_LOCKS = 32_768


@dataclass(frozen=True, slots=True)
class Lock:
    """A range of bytes that its owner has for reading, or alone."""

    owner: Hashable
    exclusive: bool
    start: int = 0
    end: int = END_OF_FILE  # the first byte after it
    pid: int = -1  # who asked for it; -1: an open file

    def conflicts(self, other: Lock) -> bool:
        return (
            self.owner is not other.owner
            and (self.exclusive or other.exclusive)
            and self.start < other.end
            and other.start < self.end
        )


class FileLocks:
    """One family's locks of one inode."""

    def __init__(self, room: Callable[[], int]) -> None:
        """`room`: how many locks more there may be in the machine."""
        self._room = room
        self._locks: list[Lock] = []
        self.changed = WaitQueue()  # a lock has gone or become weaker

    def __len__(self) -> int:
        return len(self._locks)

    def conflict(self, wanted: Lock) -> Lock | None:
        """The first lock that keeps `wanted` from being taken: the lowest one."""
        found = [lock for lock in self._locks if lock.conflicts(wanted)]
        return min(found, key=lambda lock: lock.start) if found else None

    def take(self, wanted: Lock) -> bool:
        """Whether it could be taken. What the owner had of the range it has no more. ENOLCK if there are too many."""
        if self.conflict(wanted) is not None:
            return False
        if len(self._locks) >= FEW_LOCKS:
            self._check_room()
        self._cut(wanted)
        self._locks.append(wanted)
        self._merge(wanted)
        self.changed.wake()
        return True

    def _check_room(self) -> None:
        if len(self._locks) >= MOST_LOCKS_OF_FILE or self._room() <= 0:
            raise LinuxError(ENOLCK, f"{len(self._locks)} locks of one file: there is room for no more")

    def give(self, unwanted: Lock) -> None:
        """Unlock a range."""
        if len(self._locks) >= FEW_LOCKS:  # one may become two
            self._check_room()
        self._cut(unwanted)
        self.changed.wake()

    def drop(self, owner: Hashable) -> None:
        """The owner has closed the file."""
        self._locks = [lock for lock in self._locks if lock.owner is not owner]
        self.changed.wake()

    def _cut(self, hole: Lock) -> None:
        left: list[Lock] = []
        for lock in self._locks:
            if lock.owner is not hole.owner or lock.start >= hole.end or hole.start >= lock.end:
                left.append(lock)
                continue
            if lock.start < hole.start:
                left.append(replace(lock, end=hole.start))
            if hole.end < lock.end:
                left.append(replace(lock, start=hole.end))
        self._locks = left

    def _merge(self, new: Lock) -> None:
        """Neighbours of one kind are one lock, as F_GETLK shows them."""
        for lock in [lock for lock in self._locks if lock is not new]:
            same = lock.owner is new.owner and lock.exclusive == new.exclusive
            if same and lock.start <= new.end and new.start <= lock.end:
                merged = replace(new, start=min(lock.start, new.start), end=max(lock.end, new.end))
                self._locks.remove(lock)
                self._locks[self._locks.index(new)] = merged
                new = merged


class Locks:
    """All locks of a machine. A file's are kept by those who own some of them, or wait."""

    def __init__(self) -> None:
        self._ranges: WeakValueDictionary[Hashable, FileLocks] = WeakValueDictionary()
        self._whole: WeakValueDictionary[Hashable, FileLocks] = WeakValueDictionary()
        self.waiting: dict[Hashable, tuple[FileLocks, Lock]] = {}  # what an owner waits for

    def ranges(self, key: Hashable) -> FileLocks:
        """fcntl's, of the file that `File.lock_key` says."""
        return self._ranges.setdefault(key, FileLocks(self._room))

    def whole(self, key: Hashable) -> FileLocks:
        """flock's"""
        return self._whole.setdefault(key, FileLocks(self._room))

    def _room(self) -> int:
        return MOST_LOCKS - sum(map(len, self._ranges.values())) - sum(map(len, self._whole.values()))

    def would_deadlock(self, wanted: Lock, locks: FileLocks) -> bool:
        """Whether who has the range waits for one who waits ... for the owner of `wanted`."""
        seen: list[Hashable] = []
        blocker = locks.conflict(wanted)
        while blocker is not None and blocker.owner not in seen:
            if blocker.owner is wanted.owner:
                return True
            seen.append(blocker.owner)
            following = self.waiting.get(blocker.owner)
            blocker = None if following is None else following[0].conflict(following[1])
        return False
