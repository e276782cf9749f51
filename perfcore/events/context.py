"""PerfEventContext, the events of one task or CPU, and CpuContext, which puts them on the PMU of one CPU.

As kernel/events/core.c schedules, without rotation: pinned groups before flexible ones, the CPU's own before the
task's, each in the order of opening. A group that does not fit holds nobody back: Linux makes those behind it wait
because it rotates; here they would wait for ever, and for a counter that only they can use.

What is on stays where it is, unless something before it in that order needs its counter. So a change costs what it
changes, and at most one look at those that wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.linux.process.task import Task
from perfcore.events.event import EventState, PerfEvent
from perfcore.events.siblings import Siblings
from perfcore.events.waiting import Place, Waiting


class PerfEventContext:
    """All events of one task (`task`), or of one CPU. Its time runs while it is on a CPU."""

    def __init__(self, clock: Clock, task: Task | None = None) -> None:
        self._clock = clock
        self.task = task  # that it counts now: equal contexts change places
        self._generation = 0  # counts changes
        self._clone_of: tuple[PerfEventContext, int] | None = None  # as it was in that generation
        self.pinned: dict[PerfEvent, int] = {}  # leaders, in the order in which they go on, and their place in it
        self.flexible: dict[PerfEvent, int] = {}
        self._next_place = 0
        self.events: dict[PerfEvent, None] = {}  # all, in order of opening
        self.mapped_events: dict[PerfEvent, None] = {}  # those whose page a guest has mapped
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

    def running_since_boot(self) -> int | None:
        """CLOCK_MONOTONIC of the CPU that it is on."""
        return None if self.running_on is None else self._clock.monotonic_at(self.running_on.cpu.core.cycles)

    @property
    def groups(self) -> Iterator[PerfEvent]:
        """Leaders, in the order in which they go on."""
        yield from self.pinned
        yield from self.flexible

    def groups_like(self, leader: PerfEvent) -> dict[PerfEvent, int]:
        return self.pinned if leader.attr.pinned else self.flexible

    def add(self, event: PerfEvent) -> None:
        """Take in a new event and, if it is enabled, put it on its PMU (perf_install_in_context)."""
        event.context = self
        self.changed()
        event.joined()
        self.events[event] = None
        if event.is_leader:
            self._add_group(event)
        else:
            event.group_leader.siblings.add(event)
            if self.running_on is not None:
                self.running_on.note_leader(event.group_leader)
        if event.state == EventState.INACTIVE:
            self.enabled(event)

    def _add_group(self, leader: PerfEvent) -> None:
        """Behind all others (perf_event_groups_insert)."""
        self.groups_like(leader)[leader] = self._next_place
        self._next_place += 1

    def mapped(self, event: PerfEvent) -> None:
        self.changed()
        self.mapped_events[event] = None
        self._tell_mapped(event)

    def unmapped(self, event: PerfEvent) -> None:
        self.mapped_events.pop(event, None)
        self._tell_mapped(event)

    def _tell_mapped(self, event: PerfEvent) -> None:
        if self.task is not None and self.running_on is not None:
            event.driver.sched_task(self.running_on.cpu, self.mapped_events)

    def enabled(self, event: PerfEvent) -> None:
        if self.running_on is not None:
            self.running_on.bring_in(event)

    def take_off(self, event: PerfEvent) -> None:
        if self.running_on is None:
            return
        if event.is_leader:
            self.running_on.group_sched_out(event)
            self.running_on.waits_no_more(event)
        else:
            self.running_on.event_sched_out(event)

    def room_was_made(self) -> None:
        """An event has been disabled: others may go on its counter."""
        if self.running_on is not None:
            self.running_on.bring_in_waiting()

    def remove(self, event: PerfEvent) -> None:
        """Siblings of a leader that goes become leaders of their own (perf_group_detach)."""
        if event not in self.events:
            return  # removed before: remove_on_exec
        self.changed()
        self.unmapped(event)
        cpu = self.running_on
        if cpu is not None:
            cpu.event_sched_out(event)
            cpu.waits_no_more(event)
        del self.events[event]
        if not event.is_leader:
            event.group_leader.siblings.remove(event)
            event.group_leader = event
        else:
            del self.groups_like(event)[event]
            siblings, event.siblings = event.siblings, Siblings()
            for sibling in siblings:
                sibling.group_leader = sibling
                self._add_group(sibling)
                if cpu is not None:
                    cpu.note_leader(sibling)
            for sibling in siblings:
                if sibling.state == EventState.INACTIVE:  # its leader was off, or the group did not fit
                    self.enabled(sibling)
        if cpu is not None:
            cpu.bring_in_waiting()


def _may_leave_room(group: PerfEvent) -> bool:
    """Whether all of the group is software, which never needs a counter."""
    return group.driver.is_software and not group.siblings.needing_counters


class CpuContext:
    """What counts on one CPU: the CPU's own events, and those of the task that runs."""

    def __init__(self, cpu: Cpu, clock: Clock, want_tick: Callable[[PerfEvent], None]) -> None:
        self.cpu = cpu
        self._want_tick = want_tick
        self.own = PerfEventContext(clock)
        self.own.start_time(self)
        self.of_task: PerfEventContext | None = None
        self._active: dict[PerfEvent, None] = {}  # leaders that are on
        self._on_counters: dict[PerfEvent, None] = {}  # those of them whose groups may not leave room
        self._waiting: Waiting[PerfEvent] = Waiting()  # leaders that are enabled, and did not fit
        self._exclusive = 0  # how many of them are exclusive
        self._counters_in_use = 0
        self._counters_needed = 0  # so many were in use when last nobody waited who could have gone on
        self._looks_at_all = False  # what else kept groups from going on has changed

    # one event, one group

    def event_sched_in(self, event: PerfEvent) -> bool:
        if event.state <= EventState.OFF:
            return True
        if not event.driver.has_room(event, self.cpu):
            return False
        event.set_state(EventState.ACTIVE)
        event.on_cpu = self.cpu
        event.driver.add(event, self.cpu)
        self._counters_in_use += not event.driver.is_software
        self.note_leader(event)
        if event.rate.wants_tick:
            self._want_tick(event)
        event.update_page()
        return True

    def note_leader(self, event: PerfEvent) -> None:
        """If `event` is on and leads, its group is on."""
        if event.state != EventState.ACTIVE or not event.is_leader:
            return
        self._waiting.discard(event)
        if event not in self._active:
            self._active[event] = None
            self._exclusive += event.attr.exclusive
        if not _may_leave_room(event):
            self._on_counters[event] = None

    def waits_no_more(self, leader: PerfEvent) -> None:
        self._waiting.discard(leader)

    def event_sched_out(self, event: PerfEvent) -> None:
        if event.state != EventState.ACTIVE:
            return
        event.driver.del_(event)
        self._counters_in_use -= not event.driver.is_software
        if event in self._active:
            del self._active[event]
            self._on_counters.pop(event, None)
            self._exclusive -= event.attr.exclusive
            self._looks_at_all |= bool(event.attr.exclusive)
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

    def _place(self, leader: PerfEvent) -> Place:
        """Where a group of these contexts stands in the order in which all go on."""
        of_task = leader not in self.own.events
        context = self.of_task if of_task and self.of_task is not None else self.own
        return not leader.attr.pinned, of_task, context.groups_like(leader)[leader]

    def _matches(self, event: PerfEvent) -> bool:
        return event.cpu in (-1, self.cpu.number)

    def _can_go(self, group: PerfEvent) -> bool:
        """group_can_go_on: exclusive groups are alone among the hardware groups."""
        if _may_leave_room(group):
            return True
        if self._exclusive:
            return False
        return not (group.attr.exclusive and any(not _may_leave_room(active) for active in self._on_counters))

    def schedule_in(self) -> None:
        """Put on what waits and fits."""
        for group in self._waiting.groups():
            self._try(group)
        self._settled()

    def _try(self, group: PerfEvent) -> None:
        if self._can_go(group) and self.group_sched_in(group):
            return
        if group.attr.pinned:
            self._fail(group)
        else:
            self._waiting.add(group, self._place(group))

    def _fail(self, group: PerfEvent) -> None:
        """What is pinned does not wait."""
        self._waiting.discard(group)
        group.set_state(EventState.ERROR)

    def _make_way(self, group: PerfEvent) -> None:
        """Off, and back as soon as there is room."""
        self.group_sched_out(group)
        if group.state == EventState.INACTIVE:
            self._waiting.add(group, self._place(group))

    def _settled(self) -> None:
        """Whoever waits could not go on."""
        self._counters_needed = self._counters_in_use
        self._looks_at_all = False

    def bring_in(self, event: PerfEvent) -> None:
        """`event` has been enabled. Only what comes after it in the order makes way, and only if it does not fit."""
        leader = event.group_leader
        if not self._matches(event):
            return
        if event is not leader:
            if leader.state != EventState.ACTIVE or self.event_sched_in(event):
                self._settled()
                return
            self._make_way(leader)
        elif self._can_go(leader) and self.group_sched_in(leader):
            self._settled()
            return
        place = self._place(leader)
        behind = [group for group in self._on_counters if self._place(group) > place and not _may_leave_room(group)]
        for group in behind:
            self._make_way(group)
        self._waiting.add(leader, place)
        if behind or event is not leader:
            self.schedule_in()
        elif leader.attr.pinned:
            self._fail(leader)

    def bring_in_waiting(self) -> None:
        """A counter may have become free. When all that have are taken again, nobody else can go on."""
        if self._looks_at_all:
            self.schedule_in()
            return
        if self._counters_in_use >= self._counters_needed:
            return
        for group in self._waiting.groups():
            if self._counters_in_use >= self._counters_needed:
                return
            self._try(group)
        self._settled()

    # the task

    def task_in(self, context: PerfEventContext) -> None:
        """The CPU's own flexible groups make way for the task's pinned ones."""
        if context.pinned:
            for group in self.own.flexible:
                if group.state == EventState.ACTIVE:
                    self._make_way(group)
        self.of_task = context
        context.start_time(self)
        arriving = [group for group in context.groups if group.state == EventState.INACTIVE and self._matches(group)]
        if context.pinned:  # where the CPU's own may stand between
            for group in arriving:
                self._waiting.add(group, self._place(group))
            self.schedule_in()
        else:
            for group in arriving:
                self._try(group)
            self._settled()
        self._show_mapped(context, context.mapped_events)

    def task_out(self) -> None:
        context = self.of_task
        if context is None:
            return
        for group in context.groups:
            self.group_sched_out(group)
            self._waiting.discard(group)
        context.stop_time()
        self.of_task = None
        self._show_mapped(context, {})
        self.bring_in_waiting()

    def _show_mapped(self, context: PerfEventContext, readable: dict[PerfEvent, None]) -> None:
        """The context comes or goes: the times in its events' pages run or stand, and what user space may read."""
        for event in context.mapped_events:
            event.update_page()
        for driver in {event.driver for event in context.mapped_events}:
            driver.sched_task(self.cpu, readable)
