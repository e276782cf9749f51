"""Links: that a program is attached, for as long as somebody has the link. kernel/bpf/syscall.c."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from emulator.cpu import Cpu
from emulator.linux.errors import ENOENT, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.tracepoint import Tracepoint
from emulator.linux.tracepoints import Tracepoints
from perfcore.abi.bpf import LINK_TYPE_PERF_EVENT, LINK_TYPE_RAW_TRACEPOINT
from perfcore.bpf.objects import Shared
from perfcore.bpf.program import Program
from perfcore.events.event_file import PerfEventFile
from perfcore.events.programs import drop_program, set_program

_TRACEPOINT, _EVENT = 5, 6  # BPF_PERF_EVENT_TRACEPOINT, BPF_PERF_EVENT_EVENT


class Link(Shared):
    """One. What it is attached to keeps it until it ends."""

    type = 0

    def __init__(self, program: Program, on_end: Callable[[Link], None]) -> None:
        self.id = 0
        self.program = program
        self._on_end = on_end
        self._attached = True
        program.retain()

    def end(self) -> None:
        self.detach()
        self._on_end(self)
        self.program.release()

    def detach(self) -> None:
        """BPF_LINK_DETACH: the link stays, and does nothing."""
        if self._attached:
            self._attached = False
            self.let_go()

    def let_go(self) -> None:
        raise NotImplementedError

    can_be_detached = False


class PerfEventLink(Link):
    """To an event: it stays open as long as the link."""

    type = LINK_TYPE_PERF_EVENT

    def __init__(self, program: Program, on_end: Callable[[Link], None], file: PerfEventFile, cookie: int) -> None:
        set_program(file.event, program, cookie)
        super().__init__(program, on_end)
        self._file = file
        file.retain()

    @property
    def event_type(self) -> int:
        """enum bpf_perf_event_type"""
        return _EVENT if self._file.event.driver.programs(self._file.event) is None else _TRACEPOINT

    def let_go(self) -> None:
        drop_program(self._file.event)
        self._file.release()


class Told(NamedTuple):
    """What a raw tracepoint gives to programs: where it happens, and its arguments."""

    tracepoint: Callable[[Tracepoints], Tracepoint[Any]]
    arguments: Callable[..., tuple[Cpu, Sequence[int]]]


RawSources = Mapping[str, Told]


class RawTracepointLink(Link):
    """BPF_RAW_TRACEPOINT_OPEN: the program hears of every occurrence."""

    type = LINK_TYPE_RAW_TRACEPOINT

    def __init__(
        self,
        program: Program,
        on_end: Callable[[Link], None],
        name: str,
        tracepoints: Tracepoints,
        told: Told,
        cookie: int,
    ) -> None:
        super().__init__(program, on_end)
        self.name = name
        self._tracepoint = told.tracepoint(tracepoints)
        self._arguments = told.arguments
        self._cookie = cookie
        self._tracepoint.subscribe(self._occurred)

    def _occurred(self, *told: object) -> None:
        cpu, arguments = self._arguments(*told)
        self.program.on_raw_tracepoint(cpu, self._cookie, arguments)

    def let_go(self) -> None:
        self._tracepoint.unsubscribe(self._occurred)


def raw_sources(registers: Callable[[Cpu, int], int], task_address: Callable[[Task | None], int]) -> RawSources:
    """The tracepoints that there are, by name: TP_PROTO of include/trace/events/{sched,syscalls}.h.

    `registers`: puts those of a CPU in a system call where programs can read them; tasks have addresses alone.
    """
    return {
        "sys_enter": Told(
            lambda points: points.sys_enter,
            lambda task, number, arguments: (task.cpu, (registers(task.cpu, number), number)),
        ),
        "sys_exit": Told(
            lambda points: points.sys_exit,
            lambda task, number, result: (task.cpu, (registers(task.cpu, number), result)),
        ),
        "sched_switch": Told(
            lambda points: points.sched_switch,
            lambda cpu, old, new, preempted: (cpu, (int(preempted), task_address(old), task_address(new), 0)),
        ),
        "sched_process_exit": Told(lambda points: points.task_exit, lambda task: (task.cpu, (task_address(task),))),
        "sched_process_fork": Told(
            lambda points: points.task_fork,
            lambda parent, child: (parent.cpu, (task_address(parent), task_address(child))),
        ),
        "sched_process_exec": Told(
            lambda points: points.sched_process_exec, lambda task: (task.cpu, (task_address(task), task.tid, 0))
        ),
        "sched_wakeup": Told(
            lambda points: points.sched_wakeup, lambda task, cpu: (task.kernel.executing_cpu, (task_address(task),))
        ),
        "sched_migrate_task": Told(
            lambda points: points.sched_migrate_task,
            lambda task, old, new: (new, (task_address(task), new.number)),
        ),
    }


def raw_source(sources: RawSources, name: str) -> Told:
    found = sources.get(name)
    if found is None:
        raise LinuxError(ENOENT, f"there is no raw tracepoint {name!r}, but {', '.join(sorted(sources))}")
    return found
