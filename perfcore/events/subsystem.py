"""PerfEvents: one perf_event subsystem of a machine: opens events and moves them with the tasks.

A machine has two: the guest's, behind its syscall, and the tool's own on measuring PMUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from emulator.cpu import Cpu
from emulator.linux.errors import EINVAL, ENODEV, LinuxError
from emulator.linux.process.task import Task
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import OpenFlag, SampleType
from perfcore.events.aux_events import aux_event_for, check_aux, needs_aux_event
from perfcore.events.checks import (
    check_attr,
    check_callchain,
    check_rate,
    check_vectors,
)
from perfcore.events.clocks import clock_of
from perfcore.events.context import PerfEventContext
from perfcore.events.counted_cgroup import CountedCgroup
from perfcore.events.cpu_context import CpuContext
from perfcore.events.event import PerfEvent
from perfcore.events.event_room import EventRoom
from perfcore.events.event_state import EventState
from perfcore.events.exclusive import ExclusivePmus, check_alone
from perfcore.events.grouping import check_group, check_output, check_size
from perfcore.events.inheritance import is_inherited_by, sync_child_event
from perfcore.events.kernel import Linux
from perfcore.events.locked_memory import LockedMemory
from perfcore.events.output import EventOutput
from perfcore.events.permission import check_cpu, check_opening, check_physical, check_target
from perfcore.events.pmu_driver import PmuDriver
from perfcore.events.pmus import Pmus
from perfcore.events.preparations import sampled_registers
from perfcore.events.settings import Settings
from perfcore.events.sideband import Sideband
from perfcore.events.tick import Tick
from perfcore.events.within import Within


class PerfEvents:
    """Opens events on `drivers`, which are asked in order. Make it after its drivers, before tasks run."""

    def __init__(
        self, kernel: Linux, drivers: Sequence[PmuDriver[PerfEvent]], settings: Settings | None = None
    ) -> None:
        self.kernel = kernel
        self.pmus = Pmus(drivers)
        self.settings = settings or Settings()
        self.locked_memory = LockedMemory(self.settings, len(kernel.cpus))
        sampled, self._vectors = sampled_registers(kernel.architecture), kernel.architecture.perf_vectors
        self._registers = sum(1 << bit for bit in sampled) | self._vectors  # that attr may name
        self._exclusive = ExclusivePmus()
        self.room = EventRoom()
        self._next_id = 1
        self._hears_switches = self._hears_moves = self._tells_switches = False
        self._tick = Tick(kernel)
        self._cpus = {cpu.number: CpuContext(cpu, kernel, self._tick.want) for cpu in kernel.cpus}
        self._contexts: dict[Task, PerfEventContext] = {}
        self._within: Within | None = None
        self._sideband = Sideband(self._events_of, lambda number: self._cpus[number].own.events, self._all_events)
        tracepoints = kernel.tracepoints
        tracepoints.task_fork.subscribe(self._task_fork)
        tracepoints.task_exit.subscribe(self._task_exit)
        tracepoints.task_exec.subscribe(self._task_exec)
        tracepoints.task_comm.subscribe(self._sideband.comm)
        tracepoints.mmap.subscribe(self._sideband.mmap)
        tracepoints.cgroup_mkdir.subscribe(self._sideband.cgroup)
        tracepoints.bpf_program.subscribe(
            lambda cpu, *told: self._sideband.bpf_program(cpu, kernel.current(cpu), *told)
        )

    def count_within(self, within: Within) -> None:
        """Events of tasks count inside these alone: elsewhere, as if on no CPU. Before any is open."""
        assert not self._contexts, "an event is open"
        self._within = within
        within.on_moved(self._moved)

    # opening

    def open(
        self,
        attr: PerfEventAttr,
        task: Task | None,
        cpu: int = -1,
        group: PerfEvent | None = None,
        flags: int = 0,
        owner: Task | None = None,
        cgroup: CountedCgroup | None = None,
    ) -> PerfEvent:
        """perf_event_open for `task` (None: all tasks of `cpu`). `attr` is copied. Raises LinuxError as Linux fails.

        With `cgroup`, all of `cpu` that are in that group or below it. `owner` is the guest's task that asks; None is
        the tool, who may do everything.
        """
        attr = attr.copy()
        self.check(attr, owner)
        return self.create(attr, task, cpu, group, flags, owner, None if cgroup is None else lambda: cgroup)

    def open_in_kernel(self, attr: PerfEventAttr, task: Task, handler: Callable[[Cpu], None]) -> PerfEvent:
        """perf_event_create_kernel_counter(): of one task; `handler` hears of each overflow. LinuxError."""
        disabled, attr.disabled = attr.disabled, 1  # until it has its handler
        event = self.create(attr, task, -1, None, 0, None)
        event.overflow_handler = handler
        attr.disabled = disabled
        if not disabled:
            event.enable()
        return event

    def check(self, attr: PerfEventAttr, owner: Task | None) -> None:
        """What Linux checks before it looks at descriptors and tasks."""
        self.check_copied(attr)
        if owner is not None:
            check_opening(attr, owner, self.settings)
        check_rate(attr, self.settings)
        check_physical(attr, owner, self.settings)

    def check_copied(self, attr: PerfEventAttr) -> None:
        """The rules of perf_copy_attr()."""
        check_attr(attr, self.settings, self._registers)

    def create(
        self,
        attr: PerfEventAttr,
        task: Task | None,
        cpu: int,
        group: PerfEvent | None,
        flags: int,
        owner: Task | None,
        connect: Callable[[], CountedCgroup] | None = None,
    ) -> PerfEvent:
        """The rest of perf_event_open, after `check`. Takes `attr` over. `connect` finds the control group to count."""
        output_to = group if flags & OpenFlag.FD_OUTPUT else None
        if flags & OpenFlag.FD_NO_GROUP:
            group = None
        if task is not None and group is not None and group.attr.inherit != attr.inherit:
            raise LinuxError(EINVAL, "inherit must be as the group leader's")
        if cpu not in self._cpus and (task is None or cpu != -1):
            raise LinuxError(EINVAL, f"cpu {cpu}: there are {sorted(self._cpus)}, or -1 with a task")
        event = self._allocate(attr, cpu, owner, group, task, connect=connect)
        try:
            self._install(event, task, group, output_to)
        except LinuxError:
            event.destroyed()
            raise
        return event

    def _install(
        self, event: PerfEvent, task: Task | None, group: PerfEvent | None, output_to: PerfEvent | None
    ) -> None:
        """Into its context, its group, the buffer that it writes."""
        if task is None:
            check_cpu(event.owner, self.settings)
        else:
            check_target(event.attr, event.owner, task)
        if task is not None and task.exit_code is not None:
            raise LinuxError(ENODEV, f"task {task.tid} has ended")
        context = self._cpus[event.cpu].own if task is None else self._context(task)
        if group is not None:
            check_group(event, group, context)
        if output_to is not None:
            self.set_output(event, output_to, context)
        check_size(event, group)
        if needs_aux_event(event.attr):
            event.aux.source = aux_event_for(event, group)
            if event.aux.source is None:
                raise LinuxError(EINVAL, "aux_output, aux_sample_size, aux_action: the leader's unit cannot serve it")
        check_alone(event, context)
        event.output = EventOutput(event, self.kernel, event.driver.is_hardware)
        event.rate.on_throttled = self._tick.want
        context.add(event)

    def _allocate(
        self,
        attr: PerfEventAttr,
        cpu: int,
        owner: Task | None,
        group: PerfEvent | None,
        target: Task | None,
        parent: PerfEvent | None = None,
        connect: Callable[[], CountedCgroup] | None = None,
    ) -> PerfEvent:
        """perf_event_alloc: the event, and the driver that takes it."""
        if attr.sigtrap and target is None:
            raise LinuxError(EINVAL, "sigtrap: an event of whatever a CPU does has no task to tell")
        if attr.inherit and attr.sample_type & (SampleType.READ | SampleType.TID) == SampleType.READ:
            raise LinuxError(EINVAL, "PERF_SAMPLE_READ of an inherited event needs PERF_SAMPLE_TID: it is of one task")
        if not attr.sample_type & SampleType.BRANCH_STACK:
            attr.branch_sample_type = 0
        event = PerfEvent(
            self._next_id,
            attr,
            self.kernel,
            self.settings,
            cpu=cpu,
            owner=owner,
            group_leader=group,
            parent=parent,
            target=target,
        )
        event.driver = self.pmus.driver_of(event)
        try:
            check_aux(event)
            if connect is not None:
                self._connect(event, connect, group)
            self._exclusive.take(event)
            check_vectors(attr, self._vectors, sampled=event.hw.samples_vectors)
            check_callchain(attr, self.settings)
            if attr.use_clockid:
                event.now_ns = clock_of(attr.clockid, self.kernel.clock, any_clock=event.driver.is_called_by_no_nmi)
        except LinuxError:
            event.destroyed()
            raise
        self._next_id += 1
        if attr.context_switch and not self._tells_switches:
            self._tells_switches = True
            self.kernel.tracepoints.sched_switch.subscribe(self._sideband.leaves)
            self.kernel.tracepoints.sched_idle.subscribe(self._sideband.idles)
        if not self._hears_switches:
            self._hears_switches = True
            self.kernel.tracepoints.sched_in.subscribe(self._sched_in)
            self.kernel.tracepoints.sched_out.subscribe(self._sched_out)
        return event

    def _connect(self, event: PerfEvent, connect: Callable[[], CountedCgroup], group: PerfEvent | None) -> None:
        """perf_cgroup_connect()."""
        if not event.driver.counts_tasks:
            raise LinuxError(EINVAL, f"{event.driver.name} cannot tell tasks apart, nor their control groups")
        event.cgroup = connect()
        if group is not None and group.cgroup is not event.cgroup:
            raise LinuxError(EINVAL, "the group leader counts another control group")
        if not self._hears_moves:
            self._hears_moves = True
            self.kernel.tracepoints.cgroup_attach_task.subscribe(self._cgroup_moved)

    def set_output(self, event: PerfEvent, to: PerfEvent | None, context: PerfEventContext | None = None) -> None:
        """PERF_EVENT_IOC_SET_OUTPUT: the records of `event` go to the buffer of `to`; None: nowhere."""
        if to is None:
            event.attach_buffer(None)
            return
        check_output(event, to, context or self._context_of(event))
        event.attach_buffer(to.ring_buffer)

    # PMUs that come and go

    def unregister_pmu(self, driver: PmuDriver[PerfEvent]) -> None:
        """perf_pmu_unregister(): of its events nothing is left but their descriptors."""
        self.pmus.remove(driver)
        for context in (*(cpu.own for cpu in self._cpus.values()), *self._contexts.values()):
            for event in [event for event in context.events if event.driver is driver]:
                event.revoke()

    # contexts

    def _context(self, task: Task) -> PerfEventContext:
        """The task's context; a new one goes at once to the CPU that runs the task."""
        context = self._contexts.get(task)
        if context is None:
            context = self._contexts[task] = PerfEventContext(self.kernel.clock, task)
            for cpu in self.kernel.cpus:
                if self.kernel.current(cpu) is task and self._counts(task):
                    self._cpus[cpu.number].task_in(context)
        return context

    def _counts(self, task: Task) -> bool:
        return self._within is None or task in self._within

    def _moved(self, task: Task) -> None:
        """It has come inside a region, or left it."""
        context = self._contexts.get(task)
        if context is None or self.kernel.current(task.cpu) is not task:
            return
        if not self._counts(task):
            self._cpus[task.cpu.number].task_out()
        elif context.running_on is None:
            self._cpus[task.cpu.number].task_in(context)

    def _context_of(self, event: PerfEvent) -> PerfEventContext:
        task = event.context.task
        return self._cpus[event.cpu].own if task is None else self._context(task)

    def _events_of(self, task: Task) -> Iterator[PerfEvent]:
        """The events that hear of what `task` does: its own and its CPU's."""
        cpu = task.cpu.number
        yield from filter(self._cpus[cpu].cgroups.matches, self._cpus[cpu].own.events)
        context = self._contexts.get(task)
        if context is not None:
            for event in context.events:
                if event.cpu in (-1, cpu):
                    yield event

    def owned_by(self, task: Task) -> list[PerfEvent]:
        """The events that `task` opened: what prctl(PR_TASK_PERF_EVENTS_*) is about."""
        return [event for event in self._all_events() if event.owner is task and not event.parent]

    def _all_events(self) -> Iterator[PerfEvent]:
        for context in (*(cpu.own for cpu in self._cpus.values()), *self._contexts.values()):
            yield from context.events

    # tasks

    def _sched_in(self, task: Task, cpu: Cpu) -> None:
        context = self._contexts.get(task)
        if context is not None and context.running_on is None and self._counts(task):
            self._cpus[cpu.number].task_in(context)
        else:
            self._cpus[cpu.number].go_on()
        if self._hears_moves:
            self._cpus[cpu.number].cgroup_switch(task.cgroup)
        if self._tells_switches:
            self._sideband.comes(task, cpu)

    def _sched_out(self, task: Task, cpu: Cpu, following: Task | None) -> None:
        self._context_out(task, following)
        if self._hears_moves:
            self._cpus[cpu.number].cgroup_switch(task.cgroup.root if following is None else following.cgroup)

    def _cgroup_moved(self, task: Task) -> None:
        """__perf_cgroup_move()."""
        if self.kernel.current(task.cpu) is task:
            self._cpus[task.cpu.number].cgroup_switch(task.cgroup)

    def _context_out(self, task: Task, following: Task | None) -> None:
        context = self._contexts.get(task)
        if context is None or context.running_on is None:
            return
        if following is not None and self._change_places(context, task, following):
            return
        context.running_on.task_out(followed=following is not None)

    def _change_places(self, context: PerfEventContext, task: Task, following: Task) -> bool:
        """perf_event_context_sched_out: equal contexts change their tasks, and no counter is touched."""
        other = self._contexts.get(following)
        if other is None or other.running_on is not None or not context.is_like(other) or not self._counts(following):
            return False
        context.task, other.task = following, task
        self._contexts[task], self._contexts[following] = other, context
        return True

    def _task_exec(self, task: Task) -> None:
        """perf_event_exec: enable_on_exec once, remove_on_exec."""
        context = self._contexts.get(task)
        if context is None:
            return
        for event in list(context.events):
            if event.attr.remove_on_exec or event.attr.enable_on_exec:
                context.changed()
            if event.attr.remove_on_exec:
                context.remove(event)
                self._event_exit(event, task)
            elif event.attr.enable_on_exec:
                event.attr.enable_on_exec = 0
                event.enable()

    def check_fork(self, parent: Task, makes_thread: bool) -> None:
        """ENOMEM: there is no room for the events that the child would inherit."""
        context = self._contexts.get(parent)
        if context is not None:
            self.room.check(sum(is_inherited_by(event, makes_thread) for event in context.events))

    def _task_fork(self, parent: Task, child: Task) -> None:
        """perf_event_init_task: the child gets a copy of each inherited event; then everyone hears of the child."""
        context = self._contexts.get(parent)
        if context is not None:
            copies: dict[PerfEvent, PerfEvent] = {}
            for leader in list(context.groups):
                for event in leader.group():
                    self._inherit(event, child, copies)
            if copies and len(copies) == len(context.events) and context.only_sums_matter:
                self._contexts[child].become_clone_of(context)
        self._sideband.fork(parent, child)

    def _inherit(self, event: PerfEvent, child: Task, copies: dict[PerfEvent, PerfEvent]) -> None:
        attr = event.attr
        if not is_inherited_by(event, makes_thread=child.pid != child.tid):
            return
        leader = copies.get(event.group_leader)
        opened = event.parent or event
        copy = self._allocate(attr.copy(), event.cpu, event.owner, leader, child, opened)
        copy.state = EventState.INACTIVE if event.state >= EventState.INACTIVE else EventState.OFF
        if attr.freq:
            hw = copy.hw
            hw.sample_period = hw.last_period = hw.period_left = event.hw.sample_period
        copy.output = EventOutput(copy, self.kernel, copy.driver.is_hardware)
        copy.rate.on_throttled = self._tick.want
        if event.aux.source is not None:
            copy.aux.source = aux_event_for(copy, leader)
        opened.children[copy] = None
        self.room.take(copy)
        copies[event] = copy
        self._context(child).add(copy)
        if opened.on_inherited is not None:
            opened.on_inherited(copy, child)

    def _task_exit(self, task: Task) -> None:
        """perf_event_exit_task: what inherited events counted goes to those they came from."""
        self._sideband.exit(task)
        context = self._contexts.pop(task, None)
        if context is None:
            return
        if context.running_on is not None:
            context.running_on.task_out()
        context.settle()
        for event in list(context.events):
            self._event_exit(event, task)

    def _event_exit(self, event: PerfEvent, task: Task) -> None:
        """perf_event_exit_event(): it is on no CPU any more. One that was inherited is gone."""
        parent = event.parent
        event.set_state(EventState.EXIT)
        if parent is not None:
            sync_child_event(event, parent, task)
            event.destroyed()
        elif event.ring_buffer is not None:
            event.ring_buffer.poll_ready = True
            event.ring_buffer.readers.wake()
