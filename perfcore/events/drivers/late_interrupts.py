"""LateInterrupts: overflows whose interrupts are not taken at once, as a core's PMU may have it: skid."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from emulator.cpu import Cpu
from perfcore.events.event import PerfEvent

PRECISE = 2  # precise_ip from which on a sample has no skid


class Overflow(NamedTuple):
    """The end of a period, whose sample has yet to be taken."""

    event: PerfEvent
    period: int  # that has ended
    missed: int  # that have ended together with it
    due_cycle: int  # of the CPU


class LateInterrupts:
    """Of the PMU of one CPU: `report` is called so many cycles after an overflow, or as its event is stopped, which is
    when the kernel has been entered: later the program is not interrupted."""

    def __init__(self, cpu: Cpu, cycles: int, report: Callable[[Overflow], None]) -> None:
        """`cycles`: 1 at least."""
        self._cpu, self._cycles, self._report = cpu, cycles, report
        self._waiting: list[Overflow] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, event: PerfEvent, period: int, missed: int) -> None:
        """Its counter has wrapped now."""
        due_cycle = self._cpu.core.cycles + self._cycles
        self._waiting.append(Overflow(event, period, missed, due_cycle))
        event.kernel.add_timer(due_cycle, self._take, self._cpu)

    def come_to_end(self, event: PerfEvent) -> None:
        """It is about to be stopped."""
        own = [overflow for overflow in self._waiting if overflow.event is event]
        self._waiting = [overflow for overflow in self._waiting if overflow.event is not event]
        for overflow in own:
            self._report(overflow)

    def _take(self) -> None:
        now = self._cpu.core.cycles
        while self._waiting and self._waiting[0].due_cycle <= now:
            self._report(self._waiting.pop(0))
