"""The driver of tracepoint events: what the kernel does, as it is told. As perf_tracepoint in core.c.

An occurrence is of the task that executes where it happens, as in Linux: a wakeup is the waker's. A migration is of
the task that comes to another CPU. Nobody listens to what happens often while nobody counts it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from emulator.cpu import Cpu
from emulator.linux.errors import EEXIST, EINVAL, ENOENT, EOPNOTSUPP, LinuxError
from emulator.linux.process.task import Task, TaskState
from emulator.linux.sched.policies import MOST_REAL_TIME_PRIORITY, REAL_TIME
from emulator.linux.tracepoints import Tracepoint, Tracepoints
from perfcore.abi.constants import PerfType, SampleType
from perfcore.abi.syscall_tracepoints import tracepoints_by_id
from perfcore.abi.tracepoints import (
    FIRST_SYSCALL_ID,
    SCHED_MIGRATE_TASK,
    SCHED_PROCESS_EXEC,
    SCHED_PROCESS_EXIT,
    SCHED_PROCESS_FORK,
    SCHED_STAT_BLOCKED,
    SCHED_STAT_IOWAIT,
    SCHED_STAT_RUNTIME,
    SCHED_STAT_SLEEP,
    SCHED_STAT_WAIT,
    SCHED_SWITCH,
    SCHED_WAKEUP,
    SYS_ENTER,
    SYS_EXIT,
    TASK_PREEMPTED,
    TracepointEvent,
    Value,
    syscall_of,
)
from perfcore.events.drivers.software import count_occurrence, start_software_period
from perfcore.events.drivers.without_counters import CountedAsTold
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux
from perfcore.events.permission import check_tracepoint
from perfcore.events.probes.dynamic_events import DynamicEvents
from perfcore.events.probes.probe_event import ProbeEvent
from perfcore.events.tracepoint_filter import Filter, parse_filter

Told = Callable[..., tuple[Value, ...]]
"""From what a tracepoint tells to the values of the event's fields."""
WhichCpu = Callable[..., Cpu | None]
"""Of the kernel and what a tracepoint tells: the CPU on which it happens, None if it is not one of the event's."""

NORMAL_PRIORITY = 120  # of nice 0; include/linux/sched/prio.h: real-time priorities are 0..98 the other way round
IDLE = ("swapper", 0, NORMAL_PRIORITY)  # the idle task's name, pid and priority
_SLEEPING, _STOPPED, _DEAD, _ZOMBIE = 0x01, 0x04, 0x10, 0x20
_STATES = {TaskState.RUNNABLE: 0, TaskState.SLEEPING: _SLEEPING, TaskState.STOPPED: _STOPPED}


class _Source(NamedTuple):
    """Where an event's occurrences are heard, on which CPU they are, and what they tell."""

    tracepoint: Callable[[Tracepoints], Tracepoint[Any]]
    which_cpu: WhichCpu
    told: Told
    often: bool = True
    in_kernel: bool = True


def _of_the_task(linux: Linux, task: Task, *_: object) -> Cpu:
    return task.cpu


def _that_executes(linux: Linux, *_: object) -> Cpu:
    return linux.executing_cpu


def _that_switches(linux: Linux, cpu: Cpu, *_: object) -> Cpu:
    return cpu


def _on_that_cpu(linux: Linux, task: Task, cpu: Cpu, *_: object) -> Cpu:
    return cpu


def _priority(task: Task) -> int:
    """task_struct.prio."""
    if task.policy in REAL_TIME:
        return MOST_REAL_TIME_PRIORITY - task.priority
    return NORMAL_PRIORITY + task.nice


def _state(task: Task) -> int:
    """Why it leaves its CPU, if it could not go on."""
    if task.exit_code is not None:
        return _ZOMBIE if task is task.process.leader else _DEAD
    return _STATES[task.state]


def _who(task: Task | None) -> tuple[str, int, int]:
    return IDLE if task is None else (task.comm, task.tid, _priority(task))


def _switch(cpu: Cpu, previous: Task | None, following: Task | None, preempted: bool) -> tuple[Value, ...]:
    state = TASK_PREEMPTED if preempted else 0 if previous is None else _state(previous)
    return (*_who(previous), state, *_who(following))


def _delay(task: Task, cpu: Cpu, cycles: int) -> tuple[Value, ...]:
    return task.comm, task.tid, task.kernel.clock.ns(cycles)


def _runtime(task: Task, cpu: Cpu, cycles: int) -> tuple[Value, ...]:
    return *_delay(task, cpu, cycles), task.kernel.clock.ns(task.virtual_cycles)


SOURCES: dict[int, _Source] = {
    SYS_ENTER.id: _Source(lambda points: points.sys_enter, _of_the_task, lambda _, number, args: (number, args)),
    SYS_EXIT.id: _Source(lambda points: points.sys_exit, _of_the_task, lambda _, number, result: (number, result)),
    SCHED_PROCESS_EXEC.id: _Source(
        lambda points: points.sched_process_exec,
        _of_the_task,
        lambda task: (task.process.executable, task.tid, task.tid),
        often=False,
    ),
    SCHED_PROCESS_EXIT.id: _Source(lambda points: points.task_exit, _of_the_task, _who, often=False),
    SCHED_PROCESS_FORK.id: _Source(
        lambda points: points.task_fork,
        _of_the_task,
        lambda parent, child: (parent.comm, parent.tid, child.comm, child.tid),
        often=False,
    ),
    SCHED_MIGRATE_TASK.id: _Source(
        lambda points: points.sched_migrate_task,
        _of_the_task,
        lambda task, old, new: (*_who(task), old.number, new.number),
        often=False,
    ),
    SCHED_STAT_RUNTIME.id: _Source(lambda points: points.sched_stat_runtime, _on_that_cpu, _runtime),
    SCHED_STAT_WAIT.id: _Source(lambda points: points.sched_stat_wait, _on_that_cpu, _delay),
    SCHED_STAT_SLEEP.id: _Source(lambda points: points.sched_stat_sleep, _that_executes, _delay),
    SCHED_STAT_BLOCKED.id: _Source(lambda points: points.sched_stat_blocked, _that_executes, _delay),
    SCHED_STAT_IOWAIT.id: _Source(lambda points: points.sched_stat_iowait, _that_executes, _delay),
    SCHED_SWITCH.id: _Source(lambda points: points.sched_switch, _that_switches, _switch),
    SCHED_WAKEUP.id: _Source(
        lambda points: points.sched_wakeup, _that_executes, lambda task, cpu: (*_who(task), cpu.number)
    ),
}


def _source_of_syscall(id: int) -> _Source:
    """Of syscalls:sys_enter_* and syscalls:sys_exit_*: those of one number. They are told with the caller's registers,
    and so are user mode's."""
    wanted, exits = syscall_of(id)

    def which_cpu(linux: Linux, task: Task, number: int, told: object) -> Cpu | None:
        return task.cpu if number == wanted else None

    if exits:
        return _Source(
            lambda points: points.sys_exit,
            which_cpu,
            lambda _, number, result: (number, result),
            in_kernel=False,
        )
    return _Source(
        lambda points: points.sys_enter,
        which_cpu,
        lambda _, number, arguments: (number, *arguments),
        in_kernel=False,
    )


def _source_of_probe(probe: ProbeEvent) -> _Source:
    """Of one that has been defined, in a program."""
    return _Source(
        lambda points: probe.told,
        lambda linux, hit, cpu, task, places: cpu,
        lambda hit, cpu, task, places: hit.values(cpu, task, places),
        in_kernel=False,
    )


class TracepointDriver(CountedAsTold):
    """PERF_TYPE_TRACEPOINT. Make it before the subsystem: a task's end is an occurrence of its own."""

    name = "tracepoint"
    type = int(PerfType.TRACEPOINT)

    def __init__(self, kernel: Linux, probes: DynamicEvents | None = None) -> None:
        """`probes`: events that are defined while the machine runs."""
        self.probes = probes
        self._kernel = kernel
        self._isa = kernel.architecture.isa
        self._active: dict[int, list[PerfEvent]] = {}  # by config
        self._tracepoints = kernel.tracepoints
        self._sources = dict(SOURCES)
        self._listeners: dict[int, Callable[..., None]] = {}
        self._filters: WeakKeyDictionary[PerfEvent, Filter] = WeakKeyDictionary()
        for number, source in SOURCES.items():
            if not source.often:
                source.tracepoint(kernel.tracepoints).subscribe(self._listener(number))

    def event_init(self, event: PerfEvent) -> None:
        attr = event.attr
        probe = None if self.probes is None else self.probes.find(attr.config)
        if attr.type != PerfType.TRACEPOINT:
            raise LinuxError(ENOENT, f"type {attr.type} is no tracepoint's")
        if attr.sample_type & SampleType.BRANCH_STACK:
            raise LinuxError(EOPNOTSUPP, "tracepoints have no branch records")
        if probe is None and attr.config not in tracepoints_by_id(self._isa):
            raise LinuxError(EINVAL, f"config {attr.config} is no tracepoint")
        if event.parent is None:
            anybodys = probe is None and (attr.config >= FIRST_SYSCALL_ID or attr.config in (SYS_ENTER.id, SYS_EXIT.id))
            check_tracepoint(attr, event.owner, event.of_task, anybodys, event.settings)
        if probe is not None:
            self._open_probe(probe, event)

    def _open_probe(self, probe: ProbeEvent, event: PerfEvent) -> None:
        assert self.probes is not None, "the probe is one of them"
        self.probes.open(probe, event)
        event.destroy = lambda closed: self._close_probe(probe, closed)

    def _close_probe(self, probe: ProbeEvent, event: PerfEvent) -> None:
        assert self.probes is not None, "the probe is one of them"
        self.probes.close(probe, event)
        if not probe.is_busy:  # its id may be another's later
            number = probe.described.id
            for kept in (self._sources, self._listeners, self._active):
                kept.pop(number, None)

    def _described(self, number: int) -> TracepointEvent:
        probe = None if self.probes is None else self.probes.find(number)
        return tracepoints_by_id(self._isa)[number] if probe is None else probe.described

    def add(self, event: PerfEvent, cpu: Cpu) -> None:
        start_software_period(event)
        number = event.attr.config
        events = self._active.setdefault(number, [])
        if not events:
            listener = self._listener(number)
            if self._sources[number].often:
                self._sources[number].tracepoint(self._tracepoints).subscribe(listener)
        events.append(event)

    def del_(self, event: PerfEvent) -> None:
        event.hw.stopped = True
        number = event.attr.config
        events = self._active[number]
        events.remove(event)
        if not events and self._sources[number].often:
            self._sources[number].tracepoint(self._tracepoints).unsubscribe(self._listeners[number])

    def _listener(self, number: int) -> Callable[..., None]:
        listener = self._listeners.get(number)
        if listener is None:
            source = self._sources.get(number) or self._sources.setdefault(number, self._found_source(number))
            listener = self._listeners[number] = self._make_listener(number, source)
        return listener

    def _found_source(self, number: int) -> _Source:
        probe = None if self.probes is None else self.probes.find(number)
        return _source_of_syscall(number) if probe is None else _source_of_probe(probe)

    def _make_listener(self, number: int, source: _Source) -> Callable[..., None]:
        def listen(*told: object) -> None:
            events = self._active.get(number)
            cpu = source.which_cpu(self._kernel, *told) if events else None
            if not events or cpu is None:
                return
            occurrence = None
            for event in tuple(events):
                excluded = source.in_kernel and event.attr.exclude_kernel
                if event.on_cpu is not cpu or excluded or event.hw.stopped:
                    continue
                wanted = self._filters.get(event.parent or event) if self._filters else None
                raw = b""
                if wanted is not None or event.attr.sample_type & SampleType.RAW:
                    occurrence = occurrence or self._occurrence(number, cpu, source.told(*told))
                    if wanted is not None and not wanted(occurrence.filtered):
                        continue
                    raw = occurrence.raw if event.attr.sample_type & SampleType.RAW else b""
                count_occurrence(event, cpu, raw=raw)

        return listen

    def _occurrence(self, number: int, cpu: Cpu, told: tuple[Value, ...]) -> _Occurrence:
        described = self._described(number)
        return _Occurrence(described, cpu, self._kernel.current(cpu), told[: len(described.fields)])

    def set_filter(self, event: PerfEvent, text: str) -> None:
        """ftrace_profile_set_filter: once, and for those that are inherited from it, too."""
        if event in self._filters:
            raise LinuxError(EEXIST, "the event has a filter")
        self._filters[event] = parse_filter(text, self._described(event.attr.config))


class _Occurrence:
    """One whose fields somebody wants, each form of them made once."""

    def __init__(self, described: TracepointEvent, cpu: Cpu, task: Task | None, values: tuple[Value, ...]) -> None:
        self._described, self._cpu, self._values = described, cpu, values
        self._tid, self._comm = (0, IDLE[0]) if task is None else (task.tid, task.comm)

    @cached_property
    def raw(self) -> bytes:
        return self._described.pack(self._tid, self._values)

    @cached_property
    def filtered(self) -> dict[str, Value]:
        return self._described.filtered(self._tid, self._comm, self._cpu.number, self._values)
