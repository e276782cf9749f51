"""The driver of tracepoint events: what the kernel does, counted as it is told. As perf_tracepoint in core.c.

An occurrence is of the task that executes where it happens, as in Linux: a wakeup is the waker's. A migration is of
the task that comes to another CPU. Nobody listens to what happens often while nobody counts it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from emulator.cpu import Cpu
from emulator.linux.errors import ENOENT, EOPNOTSUPP, LinuxError
from emulator.linux.tracepoints import Tracepoint, Tracepoints
from perfcore.abi.constants import PerfType, SampleType
from perfcore.abi.tracepoints import TracepointId
from perfcore.events.drivers.software import CountedAsTold, count_occurrence, start_software_period
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux

WhichCpu = Callable[..., Cpu | None]


class _Source(NamedTuple):
    """Where an event's occurrences are heard, and on which CPU they are, by what is told there; None: not this one."""

    tracepoint: Callable[[Tracepoints], Tracepoint[Any]]
    which_cpu: Callable[[Linux], WhichCpu]
    often: bool = True


def _of_the_task(linux: Linux) -> WhichCpu:
    return lambda task, *_: task.cpu


def _of_who_execs(linux: Linux) -> WhichCpu:
    """Heard as the name that exec gives: by then events with enable_on_exec count."""
    return lambda task, by_exec: task.cpu if by_exec else None


def _that_executes(linux: Linux) -> WhichCpu:
    return lambda *_: linux.executing_cpu


def _that_switches(linux: Linux) -> WhichCpu:
    return lambda cpu, *_: cpu


SOURCES: dict[TracepointId, _Source] = {
    TracepointId.SYS_ENTER: _Source(lambda points: points.sys_enter, _of_the_task),
    TracepointId.SYS_EXIT: _Source(lambda points: points.sys_exit, _of_the_task),
    TracepointId.SCHED_PROCESS_EXEC: _Source(lambda points: points.task_comm, _of_who_execs, often=False),
    TracepointId.SCHED_PROCESS_EXIT: _Source(lambda points: points.task_exit, _of_the_task, often=False),
    TracepointId.SCHED_PROCESS_FORK: _Source(lambda points: points.task_fork, _of_the_task, often=False),
    TracepointId.SCHED_MIGRATE_TASK: _Source(lambda points: points.sched_migrate_task, _of_the_task, often=False),
    TracepointId.SCHED_SWITCH: _Source(lambda points: points.sched_switch, _that_switches),
    TracepointId.SCHED_WAKEUP: _Source(lambda points: points.sched_wakeup, _that_executes),
}


class TracepointDriver(CountedAsTold):
    """PERF_TYPE_TRACEPOINT. Make it before the subsystem: a task's end is an occurrence of its own."""

    name = "tracepoint"
    type = int(PerfType.TRACEPOINT)

    def __init__(self, kernel: Linux) -> None:
        self._active: dict[int, list[PerfEvent]] = {}  # by config
        self._tracepoints = kernel.tracepoints
        self._listeners = {number: self._listener(number, row.which_cpu(kernel)) for number, row in SOURCES.items()}
        for number, row in SOURCES.items():
            if not row.often:
                row.tracepoint(kernel.tracepoints).subscribe(self._listeners[number])

    def event_init(self, event: PerfEvent) -> None:
        attr = event.attr
        if attr.type != PerfType.TRACEPOINT or attr.config not in SOURCES:
            raise LinuxError(ENOENT, f"type {attr.type} config {attr.config} is no tracepoint")
        if event.is_sampling and attr.sample_type & (SampleType.RAW | SampleType.BRANCH_STACK):
            raise LinuxError(EOPNOTSUPP, "what a tracepoint tells (PERF_SAMPLE_RAW) is not modelled: it can be counted")

    def add(self, event: PerfEvent, cpu: Cpu) -> bool:
        start_software_period(event)
        number = TracepointId(event.attr.config)
        events = self._active.setdefault(number, [])
        if not events and SOURCES[number].often:
            SOURCES[number].tracepoint(self._tracepoints).subscribe(self._listeners[number])
        events.append(event)
        return True

    def del_(self, event: PerfEvent) -> None:
        event.hw.stopped = True
        number = TracepointId(event.attr.config)
        events = self._active[number]
        events.remove(event)
        if not events and SOURCES[number].often:
            SOURCES[number].tracepoint(self._tracepoints).unsubscribe(self._listeners[number])

    def _listener(self, number: TracepointId, which_cpu: WhichCpu) -> Callable[..., None]:
        def listen(*told: object) -> None:
            cpu = which_cpu(*told)
            for event in tuple(self._active.get(number, ())):
                if event.on_cpu is cpu and cpu is not None and not event.attr.exclude_kernel and not event.hw.stopped:
                    count_occurrence(event, cpu)

        return listen
