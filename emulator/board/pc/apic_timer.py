"""ApicTimer: the timer of a local APIC. Intel SDM volume 3, "APIC Timer": one-shot, periodic, TSC-deadline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

INPUT_HZ = 1_000_000_000  # of what is divided: as QEMU has it, so that a count is a nanosecond
ONE_SHOT, PERIODIC, TSC_DEADLINE = 0, 1, 2
_DIVISORS = (2, 4, 8, 16, 32, 64, 128, 1)  # by bits 3, 1, 0 of the divide configuration


class Time(Protocol):
    """Of one CPU."""

    def ns(self) -> int: ...

    def tsc(self) -> int: ...

    def cycle_at_ns(self, ns: int) -> int:
        """The first cycle at which so much has passed."""

    def cycle_at_tsc(self, tsc: int) -> int:
        """The cycle at which the time stamp counter shows that."""


class ApicTimer:
    """Counts down from when it is told to; in the third mode, waits for the time stamp counter."""

    kept = "_mode", "_divisor", "_initial", "_started_ns", "_fired", "deadline"
    kept_ranges = {"_mode": range(4), "_divisor": range(1, 129)}

    def __init__(self, time: Time, changed: Callable[[], None]) -> None:
        """`changed` is called when it may be due at another time."""
        self._time = time
        self._changed = changed
        self.reset()

    def reset(self) -> None:
        self._mode = ONE_SHOT
        self._divisor = _DIVISORS[0]
        self._initial = 0
        self._started_ns = 0
        self._fired = 0  # periods
        self.deadline = 0  # IA32_TSC_DEADLINE: 0 if none is set
        self._changed()

    def set_mode(self, mode: int) -> None:
        if (mode == TSC_DEADLINE) != (self._mode == TSC_DEADLINE):
            self._initial = self.deadline = 0  # switching disarms it
        self._mode = mode
        self._changed()

    def set_divide(self, value: int) -> None:
        count = self.current_count
        self._divisor = _DIVISORS[value >> 1 & 4 | value & 3]
        if count:  # it goes on from where it is
            self._started_ns = self._time.ns() - (self._initial - count) * self._divisor
            self._fired = 0
        self._changed()

    def set_initial_count(self, value: int) -> None:
        if self._mode == TSC_DEADLINE:
            return
        self._initial = value
        self._started_ns = self._time.ns()
        self._fired = 0
        self._changed()

    def set_deadline(self, value: int) -> None:
        """IA32_TSC_DEADLINE. Ignored in the other modes."""
        if self._mode == TSC_DEADLINE:
            self.deadline = value
            self._changed()

    @property
    def _period_ns(self) -> int:
        return self._initial * self._divisor

    @property
    def current_count(self) -> int:
        if not self._initial or self._mode == TSC_DEADLINE:
            return 0
        passed = (self._time.ns() - self._started_ns) // self._divisor
        if self._mode == PERIODIC:
            return self._initial - passed % self._initial
        return max(self._initial - passed, 0)

    @property
    def due_cycle(self) -> int | None:
        if self._mode == TSC_DEADLINE:
            return self._time.cycle_at_tsc(self.deadline) if self.deadline else None
        if not self._initial or (self._mode != PERIODIC and self._fired):
            return None
        return self._time.cycle_at_ns(self._started_ns + (self._fired + 1) * self._period_ns)

    @property
    def is_overdue(self) -> bool:
        """Whether the time stamp counter has been shown to have passed the deadline: a CPU that is behind others reads
        what they have read."""
        return self._mode == TSC_DEADLINE and bool(self.deadline) and self._time.tsc() >= self.deadline

    def take_expiry(self) -> bool:
        """Whether it has expired since it was asked last; several periods are one."""
        if self._mode == TSC_DEADLINE:
            if not self.is_overdue:
                return False
            self.deadline = 0
            return True
        if not self._initial:
            return False
        periods = (self._time.ns() - self._started_ns) // self._period_ns
        if self._mode != PERIODIC:
            periods = min(periods, 1)
        expired = periods > self._fired
        self._fired = max(periods, self._fired)
        return expired
