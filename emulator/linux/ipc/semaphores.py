"""Semaphores: sets of counters that are changed several at a time, or not at all (semop(2)). ipc/sem.c

Who has to wait is served by whoever makes it possible, in the order in which they began to wait.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from emulator.linux.errors import EAGAIN, EFBIG, EIDRM, EINTR, ERANGE, LinuxError
from emulator.linux.ipc.ipc_objects import IPC_NOWAIT, Objects, Permissions
from emulator.linux.sched.waiting import MakesTimer, Sleep, Sleeper, Sleeping, Wake

MOST_SETS, MOST_IN_SET, MOST_IN_ALL, MOST_OPERATIONS = 32_000, 32_000, 1_024_000_000, 500  # SEMMNI MSL MNS OPM
MOST_KEPT = 1 << 20  # semaphores of all sets: what the machine has memory for (ENOSPC)
MOST_VALUE = 32_767  # SEMVMX
SEM_UNDO = 0x1000


class Operation(NamedTuple):
    """struct sembuf"""

    number: int
    change: int
    flags: int


@dataclass(slots=True, eq=False)
class Waiting:
    """Who waits until all its operations are possible."""

    sleeper: Sleeper
    owner: Hashable  # of what is to be undone: a process
    pid: int
    operations: list[Operation]
    blocked_by: Operation
    done: bool = False
    error: int = 0


@dataclass(slots=True, eq=False)
class SemaphoreSet:
    """Some semaphores with one id."""

    permissions: Permissions
    values: list[int]
    changed_s: int
    now_s: Callable[[], int]
    pids: list[int] = field(init=False)  # who changed each last
    id: int = -1
    operated_s: int = 0
    waiting: list[Waiting] = field(default_factory=list)
    undone_at_end: dict[Hashable, dict[int, int]] = field(default_factory=dict)  # by owner and number

    def __post_init__(self) -> None:
        self.pids = [0] * len(self.values)

    def operate(
        self,
        sleeper: Sleeper,
        owner: Hashable,
        pid: int,
        operations: list[Operation],
        until_ns: int | None,
        timer: MakesTimer | None = None,
    ) -> int | Sleeping[int]:
        """All of them, or sleep until they are possible."""
        if any(operation.number >= len(self.values) for operation in operations):
            raise LinuxError(EFBIG, f"semaphore of {len(self.values)}")
        blocked_by = self._try(owner, pid, operations)
        if blocked_by is None:
            self._serve()
            return 0
        if blocked_by.flags & IPC_NOWAIT:
            raise LinuxError(EAGAIN, f"semaphore {blocked_by.number} is {self.values[blocked_by.number]}")
        return self._wait(Waiting(sleeper, owner, pid, operations, blocked_by), until_ns, timer)

    def _wait(self, waiting: Waiting, until_ns: int | None, timer: MakesTimer | None) -> Sleeping[int]:
        self.waiting.append(waiting)
        hrtimer = None if timer is None or until_ns is None else timer()
        try:
            wake = yield Sleep((), until_ns, "a semaphore", timer=hrtimer)
        finally:
            if waiting in self.waiting:
                self.waiting.remove(waiting)
        if waiting.done:
            if waiting.error:
                raise LinuxError(waiting.error, "the semaphores have been removed")
            return 0
        raise LinuxError(EAGAIN if wake is Wake.TIMEOUT else EINTR, "the semaphores were not to be had")

    def _try(self, owner: Hashable, pid: int, operations: list[Operation]) -> Operation | None:
        """Do them all; or the first that is not possible now."""
        values = dict[int, int]()
        undone = dict(self.undone_at_end.get(owner, {}))
        for operation in operations:
            number, change, flags = operation
            value = values.get(number, self.values[number])
            if (not change and value) or value + change < 0:
                return operation
            if value + change > MOST_VALUE:
                raise LinuxError(ERANGE, f"semaphore {number} above {MOST_VALUE}")
            values[number] = value + change
            if flags & SEM_UNDO:
                undone[number] = undone.get(number, 0) - change
                if not -MOST_VALUE - 1 <= undone[number] <= MOST_VALUE:
                    raise LinuxError(ERANGE, f"semaphore {number}: too much to undo")
        for number, value in values.items():
            self.values[number], self.pids[number] = value, pid
        if any(undone.values()):
            self.undone_at_end[owner] = undone
        else:
            self.undone_at_end.pop(owner, None)
        self.operated_s = self.now_s()
        return None

    def _serve(self) -> None:
        """Let those go on whose operations have become possible, from the first on, until none is left."""
        index = 0
        while index < len(self.waiting):
            waiting = self.waiting[index]
            try:
                blocked_by = self._try(waiting.owner, waiting.pid, waiting.operations)
            except LinuxError as error:
                self._end(waiting, error.code)
                continue
            if blocked_by is None:
                self._end(waiting)
                index = 0
            else:
                waiting.blocked_by = blocked_by
                index += 1

    def _end(self, waiting: Waiting, error: int = 0) -> None:
        self.waiting.remove(waiting)
        waiting.done, waiting.error = True, error
        waiting.sleeper.wake(Wake.READY)

    def set(self, values: dict[int, int], pid: int) -> None:
        """SETVAL, SETALL: what anybody had to undo there is forgotten."""
        if any(not 0 <= value <= MOST_VALUE for value in values.values()):
            raise LinuxError(ERANGE, f"a semaphore's value is in 0..{MOST_VALUE}")
        for number, value in values.items():
            self.values[number], self.pids[number] = value, pid
            for undone in self.undone_at_end.values():
                undone.pop(number, None)
        self.changed_s = self.now_s()
        self._serve()

    def count_waiting(self, number: int, *, for_zero: bool) -> int:
        """GETZCNT and GETNCNT"""
        return sum(
            waiting.blocked_by.number == number and (not waiting.blocked_by.change) == for_zero
            for waiting in self.waiting
        )

    def undo(self, owner: Hashable, pid: int) -> None:
        """The owner has ended: what it did with SEM_UNDO is taken back, as far as values go."""
        undone = self.undone_at_end.pop(owner, None)
        if undone is None:
            return
        for number, change in undone.items():
            if change:
                self.values[number] = max(0, min(self.values[number] + change, MOST_VALUE))
                self.pids[number] = pid
        self.operated_s = self.now_s()
        self._serve()

    def give_up(self) -> None:
        """IPC_RMID: who waits is told."""
        for waiting in list(self.waiting):
            self._end(waiting, EIDRM)

    def status(self, *, padded: bool) -> bytes:
        """struct semid64_ds; `padded` as x86-64 has it."""
        times = struct.Struct("<q8xq8x" if padded else "<qq")
        head = self.permissions.pack() + times.pack(self.operated_s, self.changed_s)
        return head + struct.pack("<Q16x", len(self.values))


class Semaphores(Objects[SemaphoreSet]):
    """The sets of one machine."""

    heading = "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n"

    def __init__(self) -> None:
        super().__init__("semaphore set", MOST_SETS)

    @property
    def used(self) -> int:
        """Semaphores of all sets."""
        return sum(len(each.values) for each in self)

    def undo(self, owner: Hashable, pid: int) -> None:
        for each in self:
            each.undo(owner, pid)

    def _columns(self, thing: SemaphoreSet) -> tuple[str, str]:
        return f"{len(thing.values):10}", f"{thing.operated_s:10} {thing.changed_s:10}"
