"""CpuContext: what counts on one CPU, and who goes on when. As struct perf_cpu_context.

As kernel/events/core.c schedules: pinned groups before flexible ones, the CPU's own before the task's, each in the
order of opening until one does not fit. A pinned group that does not is in error; flexible ones take turns by their
PMU's timer (pmu_context). Software events need no counter and always go on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from emulator.cpu import Cpu
from emulator.linux.cgroup.cgroups import Cgroup
from perfcore.events.aux_events import log_itrace_start
from perfcore.events.context import PerfEventContext
from perfcore.events.cpu_cgroups import CpuCgroups
from perfcore.events.event import PerfEvent
from perfcore.events.event_state import EventState
from perfcore.events.kernel import Linux
from perfcore.events.pmu_context import CpuPmuContext, Driver, PmuContext

_ACTIVE, _INACTIVE, _OFF = EventState.ACTIVE, EventState.INACTIVE, EventState.OFF


class CpuContext:
    """The CPU's own events, and those of the task that runs."""

    def __init__(self, cpu: Cpu, kernel: Linux, want_tick: Callable[[PerfEvent], None]) -> None:
        self.cpu = cpu
        self._kernel = kernel
        self._want_tick = want_tick
        self.cgroups = CpuCgroups(kernel.clock, cpu, lambda: kernel.cgroup(cpu))
        self.own = PerfEventContext(kernel.clock, cgroups=self.cgroups)
        self.own.start_time(self)
        self.of_task: PerfEventContext | None = None
        self._pmus: dict[Driver, CpuPmuContext] = {}
        self._standing: dict[Driver, None] = {}  # whose counters stand until the next task is here

    def _pmu(self, driver: Driver) -> CpuPmuContext:
        found = self._pmus.get(driver)
        if found is None:
            found = self._pmus[driver] = CpuPmuContext(driver, self.cpu, self._kernel, self._rotate)
        return found

    def _pmu_contexts(self, driver: Driver) -> tuple[PmuContext | None, PmuContext | None]:
        """The CPU's own, and the task's."""
        return self.own.pmus.get(driver), None if self.of_task is None else self.of_task.pmus.get(driver)

    # one event, one group

    def event_sched_in(self, event: PerfEvent) -> bool:
        if event.state <= _OFF:
            return True
        driver, cpu = event.driver, self.cpu
        event.set_state(_ACTIVE)
        event.on_cpu = cpu
        if driver.aux is not None:
            log_itrace_start(event)
        if not driver.add(event, cpu):
            event.set_state(_INACTIVE)
            event.on_cpu = None
            return False
        if event.rate.wants_tick:
            self._want_tick(event)
        if event.user_page is not None:
            event.update_page()
        return True

    def event_sched_out(self, event: PerfEvent) -> None:
        if event.state is not _ACTIVE:
            return
        event.driver.del_(event)
        if event.group_leader is event:
            pmu, attr = self._group(event), event.attr
            (pmu.pinned_active if attr.pinned else pmu.flexible_active).pop(event, None)
            if attr.exclusive and pmu.driver is not None:
                self._pmu(pmu.driver).exclusive = False
        event.set_state(_INACTIVE)
        event.on_cpu = None
        if event.user_page is not None:
            event.update_page()

    def _group(self, leader: PerfEvent) -> PmuContext:
        context = self.of_task
        return (self.own if context is None or leader.target is None else context).pmu_of[leader]

    def group_sched_in(self, leader: PerfEvent) -> bool:
        """All of the group or nothing."""
        if not leader.siblings.members:
            if not self.event_sched_in(leader):
                return False
        else:
            for event in leader.group():
                if not self.event_sched_in(event):
                    self.group_sched_out(leader)
                    return False
        pmu, attr = self._group(leader), leader.attr
        (pmu.pinned_active if attr.pinned else pmu.flexible_active)[leader] = None
        if attr.exclusive and pmu.driver is not None:
            self._pmu(pmu.driver).exclusive = True
        return True

    def group_sched_out(self, leader: PerfEvent) -> None:
        self.event_sched_out(leader)
        for event in leader.siblings.members:
            self.event_sched_out(event)

    # the groups of one context on one PMU

    def _waits(self, leader: PerfEvent) -> bool:
        return (
            leader.state is _INACTIVE
            and (leader.cpu == -1 or leader.cpu == self.cpu.number)
            and (leader.cgroup is None or self.cgroups.matches(leader))
        )

    def _can_go(self, pmu: PmuContext, leader: PerfEvent) -> bool:
        """group_can_go_on: exclusive groups have a PMU alone."""
        if pmu.driver is None:
            return True
        on = self._pmus.get(pmu.driver)
        if on is not None and on.exclusive:
            return False
        return not (leader.attr.exclusive and pmu.active_like(leader))

    def _pinned_in(self, pmu: PmuContext) -> None:
        """What is pinned does not wait: behind one that does not fit, all are in error."""
        fits = True
        for leader in pmu.pinned:
            if self._waits(leader):
                fits = fits and self._can_go(pmu, leader) and self.group_sched_in(leader)
                if not fits:
                    leader.set_state(EventState.ERROR)

    def _flexible_in(self, pmu: PmuContext) -> None:
        """Nobody goes past one that does not fit: its turn would never come."""
        for leader in pmu.flexible:
            if self._waits(leader) and not (self._can_go(pmu, leader) and self.group_sched_in(leader)):
                if pmu.driver is None:  # a unit's, which has nowhere to write: at the next switch, perhaps
                    continue
                pmu.rotate_necessary = True
                self._pmu(pmu.driver).restart()
                return

    def _pinned_out(self, pmu: PmuContext) -> None:
        for leader in list(pmu.pinned_active):
            self.group_sched_out(leader)

    def _flexible_out(self, pmu: PmuContext) -> None:
        for leader in list(pmu.flexible_active):
            self.group_sched_out(leader)
        pmu.rotate_necessary = False

    # all of them

    def bring_in(self, event: PerfEvent) -> None:
        """`event` has been enabled (__perf_event_enable, __perf_install_in_context)."""
        leader = event.group_leader
        if not self._waits(event) or (event is not leader and leader.state != _ACTIVE):
            return
        pmu = self._group(leader)
        if self._has_room_beside_all(pmu, leader) and (
            self.group_sched_in(leader) if event is leader else self.event_sched_in(event)
        ):
            return
        if pmu.driver is None:  # a unit's, which has nowhere to write: nobody can make room for it
            return
        self._resched(pmu.driver, of_task=leader.of_task, pinned=bool(leader.attr.pinned))

    def _has_room_beside_all(self, pmu: PmuContext, leader: PerfEvent) -> bool:
        """Whether nobody would be elsewhere if all went off and on again, as far as counters suffice."""
        if pmu.driver is None:
            return True
        waiting = any(context is not None and context.rotate_necessary for context in self._pmu_contexts(pmu.driver))
        return not (waiting or leader.attr.exclusive or self._pmu(pmu.driver).exclusive)

    def _resched(self, driver: Driver, *, of_task: bool, pinned: bool) -> None:
        """ctx_resched: what comes behind the new one in the order goes off, and all that fit go on."""
        own, task = self._pmu_contexts(driver)
        driver.pmu_disable(self.cpu)
        if task is not None:
            self._flexible_out(task)
            if pinned:
                self._pinned_out(task)
        if own is not None and (pinned or not of_task):
            self._flexible_out(own)
            if not of_task and pinned:
                self._pinned_out(own)
                self._pinned_in(own)
        if task is not None and pinned:
            self._pinned_in(task)
        if own is not None and (pinned or not of_task):
            self._flexible_in(own)
        if task is not None:
            self._flexible_in(task)
        driver.pmu_enable(self.cpu)

    def _rotate(self, on: CpuPmuContext) -> bool:
        """perf_rotate_context: the first flexible group of each context that waits is the last from now on."""
        own, task = self._pmu_contexts(on.driver)
        task_first = task.next_to_rotate(self.cpu.number) if task is not None and task.rotate_necessary else None
        own_first = own.next_to_rotate(self.cpu.number) if own is not None and own.rotate_necessary else None
        if own_first is None and task_first is None:
            return False
        on.driver.pmu_disable(self.cpu)
        if task is not None:
            self._flexible_out(task)
        if own is not None and own_first is not None:
            self._flexible_out(own)
            own.rotate(own_first)
            self._flexible_in(own)
        if task is not None:
            if task_first is not None:
                task.rotate(task_first)
            self._flexible_in(task)
        on.driver.pmu_enable(self.cpu)
        return True

    # the task

    def _stop(self, pmus: Iterable[Driver | None]) -> None:
        """perf_ctx_disable(): counters stand until `go_on`."""
        standing = self._standing
        for driver in pmus:
            if driver is not None and driver not in standing:
                standing[driver] = None
                driver.pmu_disable(self.cpu)

    def task_in(self, context: PerfEventContext) -> None:
        """The CPU's own flexible groups make way for the task's pinned ones (perf_event_context_sched_in)."""
        pmus: Collection[PmuContext] = context.pmus.values()
        making_way: Collection[PmuContext] = ()
        self._stop(context.pmus)
        if self.own.pmus and any(pmu.pinned for pmu in pmus):
            self._stop(self.own.pmus)
            making_way = self.own.pmus.values()
        for pmu in making_way:
            self._flexible_out(pmu)
        coming = self._restore(context) if context.is_saved and not making_way else pmus
        context.settle()
        self.of_task = context
        context.start_time(self)
        for pmu in coming:
            self._pinned_in(pmu)
        for pmu in making_way:
            self._flexible_in(pmu)
        for pmu in coming:
            self._flexible_in(pmu)
        self.go_on()
        if context.mapped_events:
            self._show_mapped(context, context.mapped_events)

    def task_out(self, *, followed: bool = False) -> None:
        """`followed`: another task comes before anything is executed, by `task_in` or, if nothing counts for it, by
        `go_on`. Counters stand until then: those that go from one task's event to the like of it need not be told."""
        context = self.of_task
        if context is None:
            return
        self._stop(context.pmus)
        for pmu in context.pmus.values():
            if self._save(pmu, context):
                context.is_saved = True
            else:
                self._pinned_out(pmu)
                self._flexible_out(pmu)
        if not followed:
            self.go_on()
        context.stop_time()
        self.of_task = None
        if context.mapped_events:
            self._show_mapped(context, {})

    def go_on(self) -> None:
        """Counters stand no longer."""
        for driver in self._standing:
            driver.pmu_enable(self.cpu)
        self._standing.clear()

    def _save(self, pmu: PmuContext, context: PerfEventContext) -> bool:
        """All that are on may go on together when their context comes back, if nobody looks at them before."""
        last, pmu.restored = pmu.restored, None
        driver = pmu.driver
        if driver is None or pmu.rotate_necessary or context.mapped_events or self._pmu(driver).exclusive:
            return False
        pmu.saved = driver.save(self.cpu, pmu.active_events, last)
        return pmu.saved is not None

    def _restore(self, context: PerfEventContext) -> list[PmuContext]:
        """Put on what has been saved, where that can be. The others."""
        context.is_saved = False
        others = []
        for pmu in context.pmus.values():
            saved, driver = pmu.saved, pmu.driver
            if saved is None or driver is None:
                others.append(pmu)
            elif self._pmu(driver).exclusive or not driver.restore(self.cpu, saved):
                others.append(pmu)
                context.is_saved = True
            else:
                pmu.saved, pmu.restored = None, saved
        return others

    def cgroup_switch(self, cgroup: Cgroup) -> None:
        """perf_cgroup_switch(): a task of another group has the CPU. Of PMUs that count groups all goes on anew."""
        if self.cgroups.current in (None, cgroup):
            return
        pmus = [pmu for pmu in self.own.pmus.values() if pmu.cgroup_groups]
        for pmu in pmus:
            self._pinned_out(pmu)
            self._flexible_out(pmu)
        self.cgroups.enter(cgroup)
        for pmu in pmus:
            self._pinned_in(pmu)
        for pmu in pmus:
            self._flexible_in(pmu)

    def _show_mapped(self, context: PerfEventContext, readable: dict[PerfEvent, None]) -> None:
        """The context comes or goes: the times in its events' pages run or stand, and what user space may read."""
        for event in context.mapped_events:
            event.update_page()
        for driver in {event.driver for event in context.mapped_events}:
            driver.sched_task(self.cpu, readable)
