"""Waiting: what a system call that sleeps waits for, and what wakes it.

A call that may sleep is a generator: it yields a Sleep and gets back a Wake when its task runs again. Its locals are
what a kernel stack holds: nothing is executed twice. Nothing but the scheduler resumes one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias, TypeVar

from emulator.clock import Clock
from emulator.linux.errors import ERESTARTNOHAND, ERESTARTSYS, LinuxError
from emulator.linux.sched.hrtimers import HrTimer


class Wake(Enum):
    """Why a sleeper goes on."""

    READY = 0  # somebody woke a queue that it waits on: it looks again
    TIMEOUT = 1
    SIGNAL = 2  # one that is not blocked
    CONTINUE = 3  # it has not slept: what it does takes long


class Waiter(Protocol):
    """Who is told of a wake: a task that sleeps, or an epoll instance."""

    def wake(self, reason: Wake) -> bool:
        """Whether it slept until now."""


class Sleeper(Waiter, Protocol):
    """Who waits (a ``Task``)."""

    @property
    def clock(self) -> Clock: ...


class WaitQueue:
    """Who waits for one thing, in the order in which they began to."""

    __slots__ = ("_waiters", "wakes")

    def __init__(self) -> None:
        self._waiters: dict[Waiter, None] = {}
        self.wakes = 0  # how often anybody was to be woken: EPOLLET tells each time once

    def __len__(self) -> int:
        return len(self._waiters)

    def add(self, waiter: Waiter) -> None:
        self._waiters[waiter] = None

    def remove(self, waiter: Waiter) -> None:
        self._waiters.pop(waiter, None)

    def wake(self, most: int | None = None) -> int:
        """Wake the first `most` of them, or all; how many."""
        self.wakes += 1
        woken = 0
        for waiter in list(self._waiters):
            if woken == most:
                break
            woken += waiter.wake(Wake.READY)
        return woken


@dataclass(slots=True)
class Sleep:
    """What a call yields: until one of `queues` is woken, the clock shows `until_ns` (elapsed), or a signal comes."""

    queues: tuple[WaitQueue, ...]
    until_ns: int | None
    what: str  # for the user, if nothing can end it
    interruptible: bool = True
    traced: bool = False  # it is stopped for its tracer
    works_cycles: int = 0  # if not 0, the call has work left: it goes on when so many have passed, and keeps its CPU
    timer: HrTimer | None = None  # what tells of `until_ns`; None: no hrtimer


T = TypeVar("T")
Sleeping: TypeAlias = Generator[Sleep, Wake, T]
MakesTimer: TypeAlias = Callable[[], HrTimer]


def wait_until(
    task: Sleeper,
    ready: Callable[[], bool],
    queues: Callable[[], tuple[WaitQueue, ...]],
    what: str,
    until_ns: int | None = None,
    *,
    restart: bool = True,
    timer: MakesTimer | None = None,
) -> Sleeping[bool]:
    """Sleep on `queues()` until `ready()`; False if `until_ns` of the machine's clock came first.

    A signal breaks it off: with `restart` the syscall starts again after a handler with SA_RESTART. Each sleep has a
    `timer` of its own, even if `until_ns` has passed (schedule_hrtimeout_range_clock).
    """
    wake = None
    while not ready():
        may_be_over = timer is None or wake is Wake.TIMEOUT
        if until_ns is not None and may_be_over and task.clock.elapsed_ns() >= until_ns:
            return False
        hrtimer = None if timer is None or until_ns is None else timer()
        wake = yield Sleep(queues(), until_ns, what, timer=hrtimer)
        if wake is Wake.SIGNAL and not ready():  # as in wait_event_interruptible, what has come counts before a signal
            raise LinuxError(ERESTARTSYS if restart else ERESTARTNOHAND, f"{what}: a signal came")
    return True


def work(cycles: int) -> Sleeping[None]:
    """A call that takes long has come so far: what is due happens now, the user's signals and limits first of all."""
    yield Sleep((), None, "a long call", interruptible=False, works_cycles=cycles)


def sleep_until(until_ns: int | None, what: str, timer: HrTimer | None = None) -> Sleeping[bool]:
    """Sleep until the clock shows `until_ns` (None: for ever); False if a signal came first."""
    return (yield Sleep((), until_ns, what, timer=timer)) is Wake.TIMEOUT
