"""IPC objects: what the segments, semaphores and queues of System V have in common: keys, ids, owners. sysvipc(7)

An id is an index and, above it, how often indices have begun again: an old id does not mean a new object (ipc/util.c).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from emulator.linux.errors import EEXIST, EINVAL, ENOENT, ENOSPC, LinuxError

IPC_PRIVATE = 0
IPC_CREAT, IPC_EXCL, IPC_NOWAIT = 0o1000, 0o2000, 0o4000  # uapi/linux/ipc.h
INDEX_BITS = 15  # IPCMNI_SHIFT
SEQUENCES = 1 << 31 - INDEX_BITS
PERMISSIONS = struct.Struct("<iIIIIIHH4x16x")  # struct ipc64_perm


@dataclass(slots=True)
class Permissions:
    """struct ipc64_perm. The guest is root: what they forbid is not looked at."""

    key: int
    uid: int
    gid: int
    creator_uid: int
    creator_gid: int
    mode: int
    sequence: int = 0

    def pack(self) -> bytes:
        return PERMISSIONS.pack(
            self.key, self.uid, self.gid, self.creator_uid, self.creator_gid, self.mode, self.sequence, 0
        )

    def change(self, data: bytes) -> None:
        """IPC_SET: owner and mode, from what begins as the kind's structure does."""
        _, self.uid, self.gid, _, _, mode, _, _ = PERMISSIONS.unpack_from(data)
        self.mode = self.mode & ~0o777 | mode & 0o777


class Object(Protocol):
    """A segment, a set of semaphores, or a queue."""

    id: int
    permissions: Permissions


Kept = TypeVar("Kept", bound=Object)


class Objects(Generic[Kept]):
    """All objects of one kind, at most `most`."""

    heading: str  # of the kind's file in /proc/sysvipc: the names of its columns

    def __init__(self, kind: str, most: int) -> None:
        self._kind = kind
        self._most = most
        self._by_index: dict[int, Kept] = {}
        self._by_key: dict[int, Kept] = {}
        self._last_index = -1
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._by_index)

    def __iter__(self) -> Iterator[Kept]:
        """In the order of their indices."""
        return iter([self._by_index[index] for index in sorted(self._by_index)])

    @property
    def highest_index(self) -> int:
        return max(self._by_index, default=0)

    def get(self, key: int, flags: int, make: Callable[[], Kept], check: Callable[[Kept], None]) -> int:
        """The id of what has the key, if `check` does not object; or of what `make` makes."""
        found = self._by_key.get(key) if key != IPC_PRIVATE else None
        if found is not None:
            if flags & (IPC_CREAT | IPC_EXCL) == IPC_CREAT | IPC_EXCL:
                raise LinuxError(EEXIST, f"{self._kind} with key {key:#x}")
            check(found)
            return found.id
        if key != IPC_PRIVATE and not flags & IPC_CREAT:
            raise LinuxError(ENOENT, f"no {self._kind} with key {key:#x}")
        if len(self._by_index) >= self._most:
            raise LinuxError(ENOSPC, f"{self._most} objects of this kind: {self._kind}")
        made = make()
        index = next(number for number in range(self._most) if number not in self._by_index)
        if index <= self._last_index:
            self._sequence = (self._sequence + 1) % SEQUENCES
        self._last_index = index
        made.id = self._sequence << INDEX_BITS | index
        made.permissions.sequence = self._sequence
        self._by_index[index] = made
        if key != IPC_PRIVATE:
            self._by_key[key] = made
        return made.id

    def find(self, number: int) -> Kept:
        """What has the id; EINVAL if nothing has."""
        found = self._by_index.get(number & (1 << INDEX_BITS) - 1) if number >= 0 else None
        if found is None or found.id != number:
            raise LinuxError(EINVAL, f"no {self._kind} has the id {number}")
        return found

    def at_index(self, index: int) -> Kept:
        """For who walks through all of them (ipcs)."""
        found = self._by_index.get(index)
        if found is None:
            raise LinuxError(EINVAL, f"no {self._kind} at index {index}")
        return found

    def text(self) -> str:
        """The kind's file in /proc/sysvipc."""
        return self.heading + "".join(map(self._line, self))

    def _line(self, thing: Kept) -> str:
        of = thing.permissions
        own, times = self._columns(thing)
        owners = f"{of.uid:5} {of.gid:5} {of.creator_uid:5} {of.creator_gid:5}"
        return f"{of.key:10} {thing.id:10}  {of.mode:4o} {own} {owners} {times}\n"

    def _columns(self, thing: Kept) -> tuple[str, str]:
        """The kind's own columns before those of the owners, and its times and what is behind them."""
        raise NotImplementedError

    def forget_key(self, thing: Kept) -> None:
        """Nobody finds it by its key any more."""
        if self._by_key.get(thing.permissions.key) is thing:
            del self._by_key[thing.permissions.key]
        thing.permissions.key = IPC_PRIVATE

    def remove(self, thing: Kept) -> None:
        self.forget_key(thing)
        self._by_index.pop(thing.id & (1 << INDEX_BITS) - 1, None)
