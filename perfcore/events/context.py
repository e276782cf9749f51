"""PerfEventContext, the events of one task or CPU, and CpuContext, which puts them on the PMU of one CPU.

As kernel/events/core.c schedules, without rotation: pinned groups before flexible ones, the CPU's own before the
task's, each in the order of opening. A group that does not fit holds nobody back: Linux makes those behind it wait
because it rotates; here they would wait for ever, and for a counter that only they can use.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.linux.task import Task
from perfcore.events.event import EventState, PerfEvent


class PerfEventContext:
    """All events of one task (`task`), or of one CPU. Its time runs while it is on a CPU."""

    def __init__(self, clock: Clock, task: Task | None = None) -> None:
        self._clock = clock
        self.task = task  # that it counts now: equal contexts change places
        self._generation = 0  # counts changes
        self._clone_of: tuple[PerfEventContext, int] | None = None  # as it was in that generation
        self.groups: list[PerfEvent] = []  # leaders
        self.events: list[PerfEvent] = []  # all, in order of opening
        self.running_on: CpuContext | None = None
        self._time = 0
        self._since = 0  # by the clock of the CPU that it is on

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

    def time(self) -> int:
        if self.running_on is None:
            return self._time
        return self._time + self._clock.at(self.running_on.cpu.core.cycles) - self._since

    def start_time(self, cpu: CpuContext) -> None:
        self._since = self._clock.at(cpu.cpu.core.cycles)
        self.running_on = cpu

    def stop_time(self) -> None:
        self._time = self.time()
        self.running_on = None

    def add(self, event: PerfEvent) -> None:
        """Take in a new event and, if it is enabled, put it on its PMU (perf_install_in_context)."""
        event.context = self
        self.changed()
        event.joined()
        self.events.append(event)
        if event.is_leader:
            self.groups.append(event)
        else:
            event.group_leader.siblings.append(event)
        if event.state == EventState.INACTIVE:
            self.enabled(event)

    def enabled(self, event: PerfEvent) -> None:
        if self.running_on is not None:
            self.running_on.bring_in(event)

    def take_off(self, event: PerfEvent) -> None:
        if self.running_on is None:
            return
        if event.is_leader:
            self.running_on.group_sched_out(event)
        else:
            self.running_on.event_sched_out(event)

    def remove(self, event: PerfEvent) -> None:
        """Siblings of a leader that goes become leaders of their own (perf_group_detach)."""
        if event not in self.events:
            return  # removed before: remove_on_exec
        self.changed()
        cpu = self.running_on
        if cpu is not None:
            cpu.event_sched_out(event)
        self.events.remove(event)
        if not event.is_leader:
            event.group_leader.siblings.remove(event)
            event.group_leader = event
        else:
            position = self.groups.index(event)
            self.groups[position : position + 1] = event.siblings
            for sibling in event.siblings:
                sibling.group_leader = sibling
            event.siblings = []
        if cpu is not None:
            cpu.bring_in_waiting()


def _may_leave_room(group: PerfEvent) -> bool:
    """Whether all of the group is software, which never needs a counter."""
    return all(event.driver.is_software for event in group.group())


class CpuContext:
    """What counts on one CPU: the CPU's own events, and those of the task that runs."""

    def __init__(self, cpu: Cpu, clock: Clock, want_tick: Callable[[PerfEvent], None]) -> None:
        self.cpu = cpu
        self._want_tick = want_tick
        self.own = PerfEventContext(clock)
        self.own.start_time(self)
        self.of_task: PerfEventContext | None = None

    # one event, one group

    def event_sched_in(self, event: PerfEvent) -> bool:
        if event.state <= EventState.OFF:
            return True
        event.set_state(EventState.ACTIVE)
        event.on_cpu = self.cpu
        if not event.driver.add(event, self.cpu):
            event.set_state(EventState.INACTIVE)
            event.on_cpu = None
            return False
        if event.wants_tick:
            self._want_tick(event)
        event.update_page()
        return True

    def event_sched_out(self, event: PerfEvent) -> None:
        if event.state != EventState.ACTIVE:
            return
        event.driver.del_(event)
        event.set_state(EventState.INACTIVE)
        event.on_cpu = None
        event.update_page()

    def group_sched_in(self, leader: PerfEvent) -> bool:
        """All of the group or nothing."""
        if leader.state == EventState.OFF:
            return True
        for event in leader.group():
            if not self.event_sched_in(event):
                self.group_sched_out(leader)
                return False
        return True

    def group_sched_out(self, leader: PerfEvent) -> None:
        for event in leader.group():
            self.event_sched_out(event)

    # all of them

    def _contexts(self) -> tuple[PerfEventContext, ...]:
        return (self.own,) if self.of_task is None else (self.own, self.of_task)

    def _matches(self, event: PerfEvent) -> bool:
        return event.cpu in (-1, self.cpu.number)

    def _groups(self, pinned: bool) -> list[PerfEvent]:
        return [group for context in self._contexts() for group in context.groups if bool(group.attr.pinned) == pinned]

    def _hardware_active(self) -> bool:
        return any(
            group.state == EventState.ACTIVE and not _may_leave_room(group)
            for context in self._contexts()
            for group in context.groups
        )

    def _exclusive_active(self) -> bool:
        return any(
            group.state == EventState.ACTIVE and group.attr.exclusive
            for context in self._contexts()
            for group in context.groups
        )

    def _can_go(self, group: PerfEvent) -> bool:
        """group_can_go_on: exclusive groups are alone among the hardware groups."""
        if _may_leave_room(group):
            return True
        if self._exclusive_active():
            return False
        return not (group.attr.exclusive and self._hardware_active())

    def schedule_in(self) -> None:
        """Put on what is enabled and fits."""
        for pinned in (True, False):
            for group in self._groups(pinned):
                if group.state != EventState.INACTIVE or not self._matches(group):
                    continue
                if _may_leave_room(group):
                    self.group_sched_in(group)
                    continue
                fits = self._can_go(group) and self.group_sched_in(group)
                if pinned and not fits:
                    group.set_state(EventState.ERROR)

    def _schedule_out(self, pinned_too: bool) -> None:
        for context in self._contexts():
            for group in context.groups:
                if pinned_too or not group.attr.pinned:
                    self.group_sched_out(group)

    def bring_in(self, event: PerfEvent) -> None:
        """`event` has been enabled. Only if it does not fit are others disturbed, by the order that all keep."""
        leader = event.group_leader
        if not self._matches(event):
            return
        if event is not leader:
            if leader.state != EventState.ACTIVE or self.event_sched_in(event):
                return
            self.group_sched_out(leader)
        elif self._can_go(leader) and self.group_sched_in(leader):
            return
        self._schedule_out(pinned_too=bool(leader.attr.pinned))
        self.schedule_in()

    def bring_in_waiting(self) -> None:
        """A counter has become free."""
        self.schedule_in()

    # the task

    def task_in(self, context: PerfEventContext) -> None:
        """The CPU's own flexible groups make way for the task's pinned ones."""
        if any(group.attr.pinned for group in context.groups):
            for group in self.own.groups:
                if not group.attr.pinned:
                    self.group_sched_out(group)
        self.of_task = context
        context.start_time(self)
        self.schedule_in()

    def task_out(self) -> None:
        context = self.of_task
        if context is None:
            return
        for group in context.groups:
            self.group_sched_out(group)
        context.stop_time()
        self.of_task = None
        self.schedule_in()
