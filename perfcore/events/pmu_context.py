"""PmuContext: the groups of one context on one PMU; CpuPmuContext: a PMU of one CPU, and the timer of its turns.

As struct perf_event_pmu_context and perf_cpu_pmu_context. Where more groups are enabled than a PMU has counters for,
flexible ones take turns: whenever the timer fires, the first of those that are on goes behind all others, and all go
on again in their order, until one does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from emulator.cpu import Cpu
from perfcore.events.event import PerfEvent
from perfcore.events.event_state import EventState
from perfcore.events.kernel import Linux
from perfcore.events.pmu_driver import PmuDriver, Saved

Driver = PmuDriver[PerfEvent]
Groups = dict[PerfEvent, None]
"""Leaders, in the order in which they go on: who comes is last."""


@dataclass(eq=False, slots=True)
class PmuContext:
    """Groups of one context; `driver` None: those of software events alone, which always fit."""

    driver: Driver | None
    pinned: Groups = field(default_factory=dict)
    flexible: Groups = field(default_factory=dict)
    pinned_active: Groups = field(default_factory=dict)  # in the order in which they went on
    flexible_active: Groups = field(default_factory=dict)
    cgroup_groups: int = 0  # those of control groups
    rotate_necessary: bool = False  # a flexible one did not fit
    saved: Saved | None = None  # while the context is on no CPU: of those that are still active for all they know
    restored: Saved | None = None  # ... of those that went on again when it came

    def like(self, leader: PerfEvent) -> Groups:
        return self.pinned if leader.attr.pinned else self.flexible

    def active_like(self, leader: PerfEvent) -> Groups:
        return self.pinned_active if leader.attr.pinned else self.flexible_active

    def active_events(self) -> list[PerfEvent] | None:
        """Of all groups that are on; None: events of other PMUs are among them."""
        events = []
        for leader in (*self.pinned_active, *self.flexible_active):
            if not leader.siblings.members:
                events.append(leader)
                continue
            for event in leader.group():
                if event.driver is not self.driver:
                    return None
                if event.state is EventState.ACTIVE:
                    events.append(event)
        return events

    def settle(self, now: int) -> None:
        """Those that have been saved hear of it: they are off, since the context's time has been `now`."""
        if self.saved is None:
            return
        events = self.active_events()
        assert events is not None, "who joins a group has settled it before"
        self.saved.settle()
        self.saved = None
        for event in events:
            event.times.ran_until(now)
            event.state = EventState.INACTIVE
            event.on_cpu = None
        self.pinned_active.clear()
        self.flexible_active.clear()

    def add(self, leader: PerfEvent) -> None:
        """Behind all others (perf_event_groups_insert)."""
        self.like(leader)[leader] = None
        self.cgroup_groups += leader.cgroup is not None

    def remove(self, leader: PerfEvent) -> None:
        del self.like(leader)[leader]
        self.cgroup_groups -= leader.cgroup is not None
        self.active_like(leader).pop(leader, None)

    def rotate(self, leader: PerfEvent) -> None:
        """rotate_ctx: to the end."""
        del self.flexible[leader]
        self.flexible[leader] = None

    def next_to_rotate(self, cpu: int) -> PerfEvent | None:
        """ctx_event_to_rotate: the first that is on, else the first of all, those of any CPU before this one's."""
        self.rotate_necessary = False
        first = next(iter(self.flexible_active), None)
        for number in (-1, cpu) if first is None else ():
            first = next((leader for leader in self.flexible if leader.cpu == number), None)
            if first is not None:
                break
        return first


class CpuPmuContext:
    """A PMU of one CPU: whether somebody has it alone, and the timer by which groups take turns."""

    def __init__(self, driver: Driver, cpu: Cpu, kernel: Linux, rotate: Callable[[CpuPmuContext], bool]) -> None:
        """`rotate` says whether anybody still waits."""
        self.driver = driver
        self.exclusive = False
        self._cpu = cpu
        self._kernel = kernel
        self._rotate = rotate
        self._armed = False

    def restart(self) -> None:
        """perf_mux_hrtimer_restart: at the next multiple of the interval, if it does not run."""
        if self._armed:
            return
        clock = self._kernel.clock
        interval = self.driver.mux_interval_ns
        next_ns = (clock.at(self._cpu.core.cycles) // interval + 1) * interval
        self._kernel.add_timer(clock.cycle_at(next_ns), self._fire, self._cpu)
        self._armed = True

    def _fire(self) -> None:
        """perf_mux_hrtimer_handler."""
        self._armed = False
        if self._rotate(self):
            self.restart()
