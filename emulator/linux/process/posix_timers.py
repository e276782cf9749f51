"""PosixTimers: what timer_create(2) has made for a process. kernel/time/posix-timers.c."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from emulator.linux.sched.hrtimers import HrTimer
from emulator.linux.sched.interval_timers import IntervalTimer
from emulator.linux.signals.signal import SignalInfo

DELAYTIMER_MAX = (1 << 31) - 1


@dataclass(slots=True)
class PosixTimer:
    """What timer_create made."""

    clock: int
    timer: IntervalTimer
    hrtimer: HrTimer | None  # None: it is of CPU time
    overruns: int = 0  # of its latest signal that was dequeued


class PosixTimers:
    """All of a process's, by timer_t."""

    def __init__(self) -> None:
        self._timers: dict[int, PosixTimer] = {}
        self._next_id = 0

    def __len__(self) -> int:
        return len(self._timers)

    def __iter__(self) -> Iterator[int]:
        return iter(self._timers)

    def get(self, number: int) -> PosixTimer | None:
        return self._timers.get(number)

    def timers(self) -> list[IntervalTimer]:
        return [each.timer for each in self._timers.values()]

    def new_id(self) -> int:
        """They go up, and begin again behind the last one (posix_timer_add)."""
        while self._next_id in self._timers:
            self._next_id = (self._next_id + 1) & 0x7FFF_FFFF
        number = self._next_id
        self._next_id = (number + 1) & 0x7FFF_FFFF
        return number

    def add(self, number: int, clock: int, timer: IntervalTimer, hrtimer: HrTimer | None) -> None:
        self._timers[number] = PosixTimer(clock, timer, hrtimer)

    def dequeued(self, info: SignalInfo) -> SignalInfo:
        """The signal of one has been, which goes on if it is periodic (posixtimer_rearm). What is delivered."""
        found = self._timers.get(info.timer_id)
        if found is None or not found.timer.rests:
            return info
        found.timer.go_on()
        found.overruns = min(found.timer.missed, DELAYTIMER_MAX)
        return replace(info, overrun=min(info.overrun + found.overruns, DELAYTIMER_MAX))

    def delete(self, number: int) -> IntervalTimer:
        """It expires no more."""
        timer = self._timers.pop(number).timer
        timer.cancel()
        return timer
