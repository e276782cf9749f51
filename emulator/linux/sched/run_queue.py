"""RunQueue: the tasks of one CPU: the one that it executes, those that wait for it, and its timers.

Those that wait are in the order in which they will go: higher real-time priorities first, then by virtual time (see
``policies``), then first come, first served. The queue's own virtual time is the least of its tasks', and never goes
back. Who comes from sleep or from another CPU starts no more than a sleeper's credit away from it: so nobody lives on
what it did not use long ago, and no two CPUs' virtual times are compared.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Protocol

from emulator.clock import Clock
from emulator.cpu import Cpu, Waking
from emulator.linux.process.task import Task
from emulator.linux.sched.policies import (
    SCHED_IDLE,
    SLEEPER_CREDIT_NS,
    WAKEUP_GRANULARITY_NS,
    may_preempt,
    virtual,
)
from emulator.linux.sched.timers import FOREVER, Timers


class Events(Protocol):
    """Who knows when each CPU has something to do (an ``EventQueue``)."""

    def changed(self, queue: RunQueue) -> None:
        """Other tasks are there, or none."""

    def earlier_timer(self, queue: RunQueue) -> None: ...

    def earlier_observer(self, queue: RunQueue) -> None: ...


class RunQueue:
    """One CPU's share of the tasks."""

    def __init__(self, cpu: Cpu, clock: Clock, events: Events) -> None:
        self.cpu = cpu
        self._events = events
        self.timers = Timers(clock, self.cycles, lambda: events.earlier_timer(self))
        self.observers = Timers(clock, self.cycles, lambda: events.earlier_observer(self))  # tasks do not notice them
        self.current: Task | None = None
        self.idles = False
        self.waking = Waking.INTERRUPT  # what gave an idle CPU the task for which it wakes
        self.departing = False  # the current task sleeps, or has to go elsewhere
        self.loaded: Task | None = None  # whose registers are in the core: the current task's, or the last one's
        self.waiting: list[Task] = []
        self.slice_end = 0  # cycle
        self._virtual_cycles = 0
        self._passed = clock.passed
        self._credit_cycles = clock.reference_in(SLEEPER_CREDIT_NS)  # reference cycles, as virtual times
        self._granularity_cycles = clock.reference_in(WAKEUP_GRANULARITY_NS)

    def cycles(self) -> int:
        return self.cpu.core.cycles

    def occupy(self, task: Task | None) -> None:
        """It is on the CPU from now on; None: nobody is."""
        self.current = task
        self._events.changed(self)

    def take_first(self) -> Task:
        """Who goes next waits no longer."""
        self._events.changed(self)
        return self.waiting.pop(0)

    def withdraw(self, task: Task) -> bool:
        """It does not wait here any longer. Whether it did."""
        if task not in self.waiting:
            return False
        self._events.changed(self)
        self.waiting.remove(task)
        return True

    def insert(self, task: Task, *, first: bool = False) -> None:
        """Behind all that go before it, and its equals; with `first` before those."""
        self._events.changed(self)
        waiting = self.waiting
        if not waiting:
            waiting.append(task)
            return
        own = _order(task)
        if not first and _order(waiting[-1]) <= own:
            waiting.append(task)
            return
        place = (bisect_left if first else bisect_right)(waiting, own, key=_order)
        waiting.insert(place, task)

    def arrive(self, task: Task) -> None:
        """... from sleep, from another CPU, or from nowhere."""
        now, credit = self._virtual_now(), self._credit_cycles
        if task.virtual_cycles < now - credit:
            task.virtual_cycles = now - credit
        elif task.virtual_cycles > now + credit:
            task.virtual_cycles = now + credit
        self.insert(task)

    def welcome(self, task: Task) -> None:
        """A new one: it has had as much as the current task, mostly its parent, but inherits no sleeper's credit.

        Else who starts one program after the other, and sleeps until each has ended, leaves little for anybody else.
        """
        now = self._virtual_now()
        task.virtual_cycles = now if self.current is None else max(now, self.virtual_time(self.current))

    def keep_time(self) -> None:
        """The current task is about to leave: the queue's time goes on to what it has had (update_min_vruntime).

        Else that stands still where all arrive after the end of another, as the programs of a shell: each time with the
        same credit.
        """
        self._virtual_now()

    def _virtual_now(self) -> int:
        current = self.current
        if current is None or current.priority:
            return self._virtual_cycles
        least = self.virtual_time(current)
        if self.waiting and self.waiting[0].virtual_cycles < least:
            least = self.waiting[0].virtual_cycles
        if least > self._virtual_cycles:
            self._virtual_cycles = least
        return self._virtual_cycles

    def virtual_time(self, task: Task) -> int:
        """... of one that waits here, or is current."""
        if task is not self.current:
            return task.virtual_cycles
        return task.virtual_cycles + virtual(task, self._passed(task.charged_at, self.cpu.core.cycles))

    def charge(self, task: Task) -> None:
        """The current task pays for what it has executed until now."""
        task.virtual_cycles = self.virtual_time(task)
        task.charged_at = self.cpu.core.cycles

    def preempts(self, woken: Task) -> bool:
        """Whether a task that has just woken takes the CPU before the current one's slice is over."""
        current = self.current
        if current is None or self.departing or not may_preempt(woken, current):
            return False
        if current.policy == SCHED_IDLE != woken.policy:
            return True
        ahead = self.virtual_time(current) - woken.virtual_cycles
        return ahead > virtual(woken, self._granularity_cycles)

    def goes_on(self) -> bool:
        """Whether the current task, whose slice is over, has still had much less than the others."""
        current, first = self.current, self.waiting[0]
        assert current is not None, "an idle CPU has no slice"
        if current.priority or first.priority:
            return False
        return first.virtual_cycles - self.virtual_time(current) > self._granularity_cycles

    def give_way(self) -> None:
        """The current task, if it has no real-time priority, goes behind all others that have none."""
        current = self.current
        if current is None or current.priority or not self.waiting or self.waiting[-1].priority:
            return
        behind = self.waiting[-1].virtual_cycles - self.virtual_time(current)
        current.virtual_cycles += max(behind, 0)

    @property
    def is_idle(self) -> bool:
        return not self.waiting and (self.current is None or self.departing)

    @property
    def waits_for_another(self) -> bool:
        """Whether an idle CPU is to get a task that has yet to leave another one."""
        return self.current is None and bool(self.waiting) and self.waiting[0].ready_at >= FOREVER

    def next_event(self) -> int | None:
        """The cycle at which this CPU has something to do; None where nothing is in sight."""
        now = self.cpu.core.cycles
        if self.current is not None:
            return now
        due = self.timers.next_cycle()
        if self.waiting:
            due = min(due, self.waiting[0].ready_at)
        return max(now, due) if due < FOREVER else None

    def observed_idle_at(self) -> int:
        """The cycle at which somebody observes this CPU while it still idles; FOREVER if nobody does."""
        at = self.observers.next_cycle()
        if at == FOREVER or self.current is not None:
            return FOREVER
        event = self.next_event()
        return at if event is None or at <= event else FOREVER

    def idle_until(self, cycle: int) -> None:
        if cycle > self.cpu.core.cycles:
            self.cpu.idle(cycle - self.cpu.core.cycles)


def _order(task: Task) -> tuple[int, int]:
    return (-task.priority, 0) if task.priority else (0, task.virtual_cycles)
