"""Stamps: the simulated time before each line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.clock import Clock
from emulator.linux.structures import NANOSECONDS

_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Times:
    """Nanoseconds: since the program's start, since the line before, since 1970."""

    elapsed: int
    passed: int
    real: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """What stands before a line."""

    text: Callable[[Times], str]


def _seconds(ns: int, digits: int) -> str:
    seconds, rest = divmod(ns, NANOSECONDS)
    return f"{seconds}.{rest // 10 ** (9 - digits):0{digits}}"


def _time_of_day(ns: int) -> str:
    hours, rest = divmod(ns // NANOSECONDS % _DAY_SECONDS, 3600)
    return f"{hours:02}:{rest // 60:02}:{rest % 60:02}"


NO_STAMP = Stamp(lambda times: "")
ELAPSED = Stamp(lambda times: f"{_seconds(times.elapsed, 9):>13} ")
RELATIVE = Stamp(lambda times: f"{_seconds(times.passed, 6):>12} ")  # -r
SECONDS = Stamp(lambda times: f"{_time_of_day(times.real)} ")  # -t, UTC
MICROSECONDS = Stamp(lambda times: f"{_time_of_day(times.real)}.{times.real % NANOSECONDS // 1000:06} ")  # -tt
EPOCH = Stamp(lambda times: f"{_seconds(times.real, 6)} ")  # -ttt


class Stamper:
    """Remembers the line before."""

    def __init__(self, clock: Clock, stamp: Stamp) -> None:
        self._clock = clock
        self._stamp = stamp
        self._before_ns: int | None = None

    def text(self, now_ns: int) -> str:
        """`now_ns` as Clock.elapsed_ns gives it."""
        before = now_ns if self._before_ns is None else self._before_ns
        self._before_ns = now_ns
        real = self._clock.realtime_ns() - self._clock.elapsed_ns() + now_ns
        return self._stamp.text(Times(now_ns, max(now_ns - before, 0), real))
