"""SavedCounters: what a CPU's counters held when a task left it.

The registers are saved and restored as they are, as those of the FPU are: the task's events need not hear that they
have been off. Only when somebody looks at them before they are back (`PerfEventContext.settle`), they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from emulator.cpu import Cpu
from perfcore.events.event import PerfEvent
from pmu.device import Pmu
from pmu.register import Register


def count_until(event: PerfEvent, counter: int) -> None:
    """The event's counter holds this: what it has gone up by since it was looked at last has been counted."""
    hw = event.hw
    value = counter & hw.counter_mask
    delta = value - hw.prev_count
    if delta < 0:  # it has wrapped
        delta += hw.counter_mask + 1
    hw.prev_count = value
    event.counted += delta
    hw.period_left -= delta


@dataclass(slots=True)
class SavedCounters:
    """Those of one task's events on one CPU."""

    cpu: Cpu
    holders: dict[int, PerfEvent]  # by counter
    read: Callable[[], Sequence[int]]  # them all, in that order
    write: Callable[[Sequence[int]], None]
    selected: Sequence[tuple[int, int, int, int]]  # of each: which it is, and all that says what it counts
    mask: int  # of them
    others: int = 0  # mask of those that others had then
    values: Sequence[int] = ()  # of each, since then
    changes: int = 0  # of CpuCounters, when they were restored

    @classmethod
    def of(
        cls, events: Sequence[PerfEvent], cpu: Cpu, pmu: Pmu, registers: Sequence[tuple[type[Register], int]]
    ) -> SavedCounters:
        """Of `events`, which are on `cpu`, each in its register of `pmu`."""
        return cls(
            cpu,
            {event.hw.idx: event for event in events},
            pmu.reader_of_all(registers),
            pmu.writer_of_all(registers),
            [(event.hw.idx, event.hw.config, event.attr.exclude_host, event.attr.exclude_guest) for event in events],
            sum(1 << event.hw.idx for event in events),
        )

    def selects_like(self, other: SavedCounters) -> bool:
        """Whether the same counters count the same."""
        if self.selected is not other.selected:
            if self.selected != other.selected:
                return False
            self.selected = other.selected  # tasks that take turns are compared again and again
        return True

    def settle(self) -> None:
        """The events have no counters any more, and have counted what those held."""
        for event, value in zip(self.holders.values(), self.values, strict=True):
            count_until(event, value)
            event.hw.stopped = True
            event.hw.idx = -1
