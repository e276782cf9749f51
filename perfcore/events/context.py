"""PerfEventContext: the events of one task or CPU. As struct perf_event_context."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.linux.process.task import Task
from perfcore.events.aux_events import leave_aux_event
from perfcore.events.context_time import ContextTime
from perfcore.events.cpu_cgroups import CpuCgroups
from perfcore.events.event import PerfEvent
from perfcore.events.event_state import EventState
from perfcore.events.pmu_context import Driver, PmuContext
from perfcore.events.siblings import Siblings


class _OnCpu(Protocol):
    """Where a context may be (CpuContext), as that sees it."""

    cpu: Cpu

    def bring_in(self, event: PerfEvent) -> None:
        """`event` has been enabled."""

    def group_sched_out(self, leader: PerfEvent) -> None: ...

    def event_sched_out(self, event: PerfEvent) -> None: ...

    def task_out(self, *, followed: bool = False) -> None: ...


class PerfEventContext:
    """All events of one task (`task`), or of one CPU. Its time runs while it is on a CPU."""

    def __init__(self, clock: Clock, task: Task | None = None, cgroups: CpuCgroups | None = None) -> None:
        """`cgroups`: of a CPU's context, whose events may be those of control groups."""
        self._time = ContextTime(clock)
        self._cgroups = cgroups
        self.task = task  # that it counts now: equal contexts change places
        self._generation = 0  # counts changes
        self._clone_of: tuple[PerfEventContext, int] | None = None  # as it was in that generation
        self.pmus: dict[Driver | None, PmuContext] = {}  # by what their groups need counters of
        self.pmu_of: dict[PerfEvent, PmuContext] = {}  # of each leader
        self.events: dict[PerfEvent, None] = {}  # all, in order of opening
        self.mapped_events: dict[PerfEvent, None] = {}  # those whose page a guest has mapped
        self.running_on: _OnCpu | None = None
        self.is_saved = False  # `settle` has something to do

    def changed(self) -> None:
        """It is no longer like any other one."""
        self._generation += 1
        self._clone_of = None

    def become_clone_of(self, context: PerfEventContext) -> None:
        """All events have been inherited from `context`."""
        self._clone_of = context._origin()

    def _origin(self) -> tuple[PerfEventContext, int]:
        return self._clone_of or (self, self._generation)

    def is_like(self, other: PerfEventContext) -> bool:
        """Whether it makes no difference which of both counts a task, since both come to one sum (context_equiv)."""
        return (self._clone_of is not None or other._clone_of is not None) and self._origin() == other._origin()

    @property
    def only_sums_matter(self) -> bool:
        """Whether nobody asks what a single task did: by samples, READ records, or the counter itself."""
        return not any(
            event.is_sampling or event.attr.pinned or event.attr.inherit_stat or event.user_page is not None
            for event in self.events
        )

    def settle(self) -> None:
        """Its events are about to be looked at: those that have lost their counters with its CPU hear of it."""
        if self.is_saved:
            self.is_saved = False
            for pmu in self.pmus.values():
                pmu.settle(self._time.now())

    def time(self) -> int:
        return self._time.now()

    def start_time(self, cpu: _OnCpu) -> None:
        self._time.start(cpu.cpu)
        self.running_on = cpu

    def stop_time(self) -> None:
        self._time.stop()
        self.running_on = None

    def _time_of(self, event: PerfEvent) -> ContextTime:
        if event.cgroup is None:
            return self._time
        assert self._cgroups is not None, "events of control groups are a CPU's"
        return self._cgroups.take_in(event.cgroup)

    @property
    def groups(self) -> Iterator[PerfEvent]:
        """Leaders: pinned ones first, each PMU's in the order in which they go on."""
        for pmu in self.pmus.values():
            yield from pmu.pinned
        for pmu in self.pmus.values():
            yield from pmu.flexible

    def add(self, event: PerfEvent) -> None:
        """Take in a new event and, if it is enabled, put it on its PMU (perf_install_in_context)."""
        event.context = self
        self.changed()
        self.settle()
        event.joined(self._time_of(event))
        self.events[event] = None
        if event.is_leader:
            self._lead(event, self._pmu(None if event.driver.is_software else event.driver))
        else:
            leader = event.group_leader
            moves = self.pmu_of[leader].driver is None and not event.driver.is_software
            if moves:
                self._move(leader, event.driver)
            leader.siblings.add(event)
            if moves:
                event = leader
        if event.state == EventState.INACTIVE:
            self.enabled(event)

    def _pmu(self, driver: Driver | None) -> PmuContext:
        found = self.pmus.get(driver)
        if found is None:
            found = self.pmus[driver] = PmuContext(driver)
        return found

    def _lead(self, leader: PerfEvent, pmu: PmuContext) -> None:
        pmu.add(leader)
        self.pmu_of[leader] = pmu

    def _move(self, leader: PerfEvent, driver: Driver) -> None:
        """A group of software events gets one that needs a counter (``move_group`` of perf_event_open): it is installed
        anew, and each event of it is as its attr says, whatever ioctls have said since; but for those of a child, which
        are as their parent's."""
        self.take_off(leader)
        self.pmu_of[leader].remove(leader)
        self._lead(leader, self._pmu(driver))
        for event in leader.group() if leader.parent is None else ():
            event.set_state(EventState.OFF if event.attr.disabled else EventState.INACTIVE)

    def mapped(self, event: PerfEvent) -> None:
        self.changed()
        self.settle()
        self.mapped_events[event] = None
        self._tell_mapped(event)

    def unmapped(self, event: PerfEvent) -> None:
        self.mapped_events.pop(event, None)
        self._tell_mapped(event)

    def _tell_mapped(self, event: PerfEvent) -> None:
        if self.task is not None and self.running_on is not None:
            event.driver.sched_task(self.running_on.cpu, self.mapped_events)

    def enabled(self, event: PerfEvent) -> None:
        self.settle()
        if self.running_on is not None:
            self.running_on.bring_in(event)

    def take_off(self, event: PerfEvent) -> None:
        self.settle()
        if self.running_on is None:
            return
        if event.is_leader:
            self.running_on.group_sched_out(event)
        else:
            self.running_on.event_sched_out(event)

    def remove(self, event: PerfEvent) -> None:
        """Siblings of a leader that goes become leaders of their own (perf_group_detach).

        Those that are on stay on; the others go on when next something puts on what waits.
        """
        if event not in self.events:
            return  # removed before: remove_on_exec
        self.changed()
        self.settle()
        self.unmapped(event)
        if self.running_on is not None:
            self.running_on.event_sched_out(event)
            for orphan in leave_aux_event(event):
                self.running_on.event_sched_out(orphan)
        del self.events[event]
        if event.cgroup is not None and self._cgroups is not None:
            self._cgroups.let_go(event.cgroup)
        if not event.is_leader:
            event.group_leader.siblings.remove(event)
            event.group_leader = event
            return
        pmu = self.pmu_of.pop(event)
        pmu.remove(event)
        siblings, event.siblings = event.siblings, Siblings()
        for sibling in siblings:
            sibling.group_leader = sibling
            self._lead(sibling, pmu)
            if sibling.state == EventState.ACTIVE:
                pmu.active_like(sibling)[sibling] = None
