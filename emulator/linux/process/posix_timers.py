"""PosixTimers: what timer_create(2) has made for a process. kernel/time/posix-timers.c."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from emulator.linux.sched.interval_timers import IntervalTimer


@dataclass(slots=True)
class PosixTimer:
    """What timer_create made."""

    clock: int
    timer: IntervalTimer
    overruns: int = 0  # of its latest signal, which may be pending
    overruns_before: int = 0  # of the one before


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

    def add(self, number: int, clock: int, timer: IntervalTimer) -> PosixTimer:
        made = self._timers[number] = PosixTimer(clock, timer)
        return made

    def delete(self, number: int) -> IntervalTimer:
        """It expires no more."""
        timer = self._timers.pop(number).timer
        timer.cancel()
        return timer
