"""RunQueue: the tasks of one CPU: the one that it executes, those that wait for it, and its timers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.linux.policies import rank
from emulator.linux.task import Task
from emulator.linux.timers import FOREVER, Timers


class RunQueue:
    """One CPU's share of the tasks."""

    def __init__(self, cpu: Cpu, clock: Clock, on_earlier: Callable[[], None]) -> None:
        self.cpu = cpu
        self.timers = Timers(clock, self.cycles, on_earlier)
        self.current: Task | None = None
        self.departing = False  # the current task sleeps, or has to go elsewhere
        self.loaded: Task | None = None  # whose registers are in the core: the current task's, or the last one's
        self.waiting: deque[Task] = deque()
        self.slice_end = 0  # cycle

    def cycles(self) -> int:
        return self.cpu.core.cycles

    def insert(self, task: Task, *, first: bool = False) -> None:
        """Behind all of its rank and of higher ones, or before those of its rank."""
        waiting, own = self.waiting, rank(task)
        if not first and (not waiting or rank(waiting[-1]) >= own):
            waiting.append(task)
            return
        place = sum(rank(other) > own or (not first and rank(other) == own) for other in waiting)
        waiting.insert(place, task)

    @property
    def is_idle(self) -> bool:
        return not self.waiting and (self.current is None or self.departing)

    def next_event(self) -> int | None:
        """The cycle at which this CPU has something to do; None where nothing is in sight."""
        now = self.cpu.core.cycles
        if self.current is not None:
            return now
        due = self.timers.next_cycle()
        if self.waiting:
            due = min(due, self.waiting[0].ready_at)
        return max(now, due) if due < FOREVER else None
