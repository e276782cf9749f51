"""Futexes: who waits for a word of memory, and who ends the wait. kernel/futex, futex(2).

No CPU executes while the kernel works, so looking at a word and beginning to wait are one step, and nothing is locked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from emulator.linux.errors import (
    EAGAIN,
    EDEADLK,
    EFAULT,
    EINTR,
    EINVAL,
    EPERM,
    ERESTARTNOHAND,
    ERESTARTSYS,
    ESRCH,
    ETIMEDOUT,
    LinuxError,
)
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.sched.hrtimers import HrTimer
from emulator.linux.sched.waiting import Sleep, Sleeping, Wake

ALL_BITS = 0xFFFF_FFFF  # FUTEX_BITSET_MATCH_ANY
# uapi/linux/futex.h: a word that tells its owner, in priority-inheritance and robust mutexes
WAITERS = 0x8000_0000
OWNER_DIED = 0x4000_0000
TID_MASK = 0x3FFF_FFFF
ROBUST_LIST_SIZE = 24  # sizeof(struct robust_list_head): first entry, offset of the word in an entry, pending entry
ROBUST_LIST_LIMIT = 2048  # entries that the kernel looks at

Key = Hashable  # what a word is, in whatever memory it is seen


class Thread(Protocol):
    """Who uses futexes (a ``Task``)."""

    tid: int
    comm: str
    mm: MemoryMap
    clear_child_tid: int
    robust_list: tuple[int, int]

    def wake(self, reason: Wake) -> bool: ...


@dataclass(slots=True, eq=False)
class Waiter:
    """One task that waits for one word."""

    task: Thread
    key: Key
    bitset: int = ALL_BITS
    woken: bool = False
    address: int = 0  # of the word, where it tells its owner


Queues = dict[Key, list[Waiter]]


class Futexes:
    """Who waits, by word, in the order in which they began to. A word that tells its owner has a queue of its own."""

    def __init__(self) -> None:
        self._queues: Queues = {}
        self._owned: Queues = {}

    @staticmethod
    def key(mm: MemoryMap, address: int, private: bool) -> Key:
        """get_futex_key: a file's byte where the mapping is shared, else the address in this memory."""
        if address & 3:
            raise LinuxError(EINVAL, f"a futex at {address:#x}")
        if private:
            return mm, address
        mapping = mm.find(address)
        if mapping is None:
            raise LinuxError(EFAULT, f"a futex at {address:#x}")
        if mapping.shared and mapping.file is not None:
            return mapping.file, mapping.offset + address - mapping.start
        return mm, address, "shared"

    # ---- waiting and waking

    def wait(
        self,
        task: Thread,
        key: Key,
        value: int,
        address: int,
        bitset: int,
        until_ns: int | None,
        timer: HrTimer | None = None,
    ) -> Sleeping[int]:
        """FUTEX_WAIT: sleep as long as nobody wakes `key`, if the word is `value` now."""
        if task.mm.read_u32(address) != value:
            raise LinuxError(EAGAIN, "the futex has changed")
        return self._sleep(self._queues, Waiter(task, key, bitset), until_ns, timer, EINTR)

    def wait_any(
        self, task: Thread, words: list[tuple[Key, int, int]], until_ns: int | None, timer: HrTimer | None
    ) -> Sleeping[int]:
        """futex_waitv(2): (key, value, address) each. Which one was woken, the last of several."""
        waiters: list[Waiter] = []
        for key, value, address in words:
            if task.mm.read_u32(address) != value:
                raise LinuxError(EAGAIN, "a futex has changed")
            waiters.append(Waiter(task, key))
        for waiter in waiters:
            self._queues.setdefault(waiter.key, []).append(waiter)
        try:
            wake = yield Sleep((), until_ns, f"{task.comm}'s futexes", timer=timer)
        finally:
            for waiter in waiters:
                if not waiter.woken:
                    _take(self._queues, waiter)
        woken = [index for index, waiter in enumerate(waiters) if waiter.woken]
        if woken:
            return woken[-1]
        if wake is Wake.TIMEOUT:
            raise LinuxError(ETIMEDOUT, "nobody woke them")
        raise LinuxError(ERESTARTSYS if until_ns is None else EINTR, "a signal came")

    @staticmethod
    def _sleep(
        queues: Queues, waiter: Waiter, until_ns: int | None, timer: HrTimer | None, interrupted: int
    ) -> Sleeping[int]:
        """Until it is woken: 0. `interrupted`: what a signal makes of a wait that has an end."""
        queues.setdefault(waiter.key, []).append(waiter)
        try:
            wake = yield Sleep((), until_ns, f"{waiter.task.comm}'s futex", timer=timer)
        finally:
            if not waiter.woken:
                _take(queues, waiter)
        if waiter.woken:
            return 0
        if wake is Wake.TIMEOUT:
            raise LinuxError(ETIMEDOUT, "nobody woke it")
        raise LinuxError(ERESTARTSYS if until_ns is None else interrupted, "a signal came")

    def wake(self, key: Key, most: int, bitset: int = ALL_BITS) -> int:
        """Wake the first `most` who wait for a bit of `bitset`; how many that were. Below 1 is 1, as in Linux."""
        woken = 0
        for waiter in list(self._queues.get(key, ())):
            if waiter.bitset & bitset:
                self._wake(self._queues, waiter)
                woken += 1
                if woken >= most:
                    break
        return woken

    @staticmethod
    def _wake(queues: Queues, waiter: Waiter) -> None:
        _take(queues, waiter)
        waiter.woken = True
        waiter.task.wake(Wake.READY)

    def requeue(self, key: Key, target: Key, most_woken: int, most_moved: int) -> int:
        """FUTEX_REQUEUE: wake the first, let others wait for `target` instead; how many both were."""
        waiters = list(self._queues.get(key, ()))
        woken, moved = waiters[:most_woken], waiters[most_woken : most_woken + most_moved]
        for waiter in woken:
            self._wake(self._queues, waiter)
        for waiter in moved:
            _take(self._queues, waiter)
            waiter.key = target
            self._queues.setdefault(target, []).append(waiter)
        return len(woken) + len(moved)

    # ---- words that tell their owner (priority inheritance; nobody's priority is raised)

    def lock(
        self,
        task: Thread,
        key: Key,
        address: int,
        until_ns: int | None,
        exists: Callable[[int], bool],
        timer: HrTimer | None = None,
        *,
        wait: bool,
    ) -> Sleeping[int]:
        """FUTEX_LOCK_PI: own the word, or be given it by who unlocks it. Not to wait is FUTEX_TRYLOCK_PI.

        `exists` says whether there is a thread with such a tid.
        """
        mm = task.mm
        word = mm.read_u32(address)
        owner = word & TID_MASK
        if owner == task.tid:
            raise LinuxError(EDEADLK, "the caller owns the futex")
        if not owner and key not in self._owned:
            _write_word(mm, address, word & OWNER_DIED | task.tid)
            return 0
        if not wait:
            raise LinuxError(EAGAIN, f"task {owner} owns the futex")
        if not exists(owner):
            raise LinuxError(ESRCH, f"the owner, task {owner}, does not exist")
        _write_word(mm, address, word | WAITERS)
        waiter = Waiter(task, key, address=address)
        return (yield from self._sleep(self._owned, waiter, until_ns, timer, ERESTARTNOHAND))

    def unlock(self, task: Thread, key: Key, address: int) -> int:
        """FUTEX_UNLOCK_PI: the word becomes that of the first who waits."""
        if task.mm.read_u32(address) & TID_MASK != task.tid:
            raise LinuxError(EPERM, "the caller does not own the futex")
        self._hand_over(task.mm, key, address, 0)
        return 0

    def _hand_over(self, mm: MemoryMap, key: Key, address: int, state: int) -> None:
        waiters = self._owned.get(key)
        if not waiters:
            _write_word(mm, address, state)
            return
        _write_word(mm, address, state | WAITERS | waiters[0].task.tid)
        self._wake(self._owned, waiters[0])

    # ---- the end of a thread

    def forget(self, task: Thread) -> None:
        """A thread has ended, or has another program: what it owned has no owner, and who waits for that is told."""
        for key, waiters in list(self._owned.items()):
            mm, address = waiters[0].task.mm, waiters[0].address
            with suppress(LinuxError, MemoryError):
                if mm.read_u32(address) & TID_MASK == task.tid:
                    self._hand_over(mm, key, address, OWNER_DIED)
        if task.robust_list[0]:
            with suppress(LinuxError, MemoryError):
                self._walk_robust_list(task, task.robust_list[0])
        task.robust_list = 0, 0

    def _walk_robust_list(self, task: Thread, head: int) -> None:
        """exit_robust_list: every word in the list that the thread owned is marked. EFAULT ends the walk."""
        mm = task.mm
        entry, offset, pending = (mm.read_u64(head + 8 * field) for field in range(3))
        for _ in range(ROBUST_LIST_LIMIT):
            if entry & ~1 == head:
                break
            following = mm.read_u64(entry & ~1)
            if entry & ~1 != pending & ~1:
                self._mark_ownerless(task, entry, offset)
            entry = following
        if pending:
            self._mark_ownerless(task, pending, offset)

    def _mark_ownerless(self, task: Thread, entry: int, offset: int) -> None:
        """handle_futex_death. The lowest bit of an entry says that the word is one of priority inheritance."""
        mm, address = task.mm, (entry & ~1) + offset & (1 << 64) - 1
        if address & 3:
            raise LinuxError(EINVAL, f"a futex at {address:#x}")
        word = mm.read_u32(address)
        if word & TID_MASK != task.tid:
            return
        _write_word(mm, address, word & WAITERS | OWNER_DIED)
        if word & WAITERS and not entry & 1:
            self.wake(self.key(mm, address, private=False), 1)

    def clear_tid(self, task: Thread) -> None:
        """CLONE_CHILD_CLEARTID: who joins the thread waits for this word."""
        address, task.clear_child_tid = task.clear_child_tid, 0
        if address:
            with suppress(LinuxError, MemoryError):
                task.mm.write(address, bytes(4))
                self.wake(self.key(task.mm, address, private=False), 1)


def _take(queues: Queues, waiter: Waiter) -> None:
    waiters = queues[waiter.key]
    waiters.remove(waiter)
    if not waiters:
        del queues[waiter.key]


def _write_word(mm: MemoryMap, address: int, word: int) -> None:
    mm.write(address, word.to_bytes(4, "little"))
