"""ProbeEvent: a tracepoint that somebody has defined, of probes that tell the same. As struct trace_probe_event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from emulator.cpu import Cpu
from emulator.linux.errors import LinuxError
from emulator.linux.process.task import Task
from emulator.linux.tracepoints import Tracepoint
from perfcore.abi.tracepoints import Field, TracepointEvent, Value
from perfcore.events.probes.fetch_args import Argument
from perfcore.events.probes.fetch_types import ProbeField
from perfcore.events.probes.moment import UserMoment
from perfcore.events.probes.uprobe_definition import UprobeDefinition
from perfcore.events.probes.uprobes import Uprobes

MOST_BYTES = 4096  # of a record: MAX_UCB_BUFFER_SIZE


class Listening(Protocol):
    """An open perf event."""

    @property
    def target(self) -> Task | None:
        """Of what task; None: of all."""


def described(id: int, group: str, name: str, returns: bool, arguments: Sequence[Argument]) -> TracepointEvent:
    """What its record is, and how it is printed."""
    places = ("__probe_func", "__probe_ret_ip") if returns else ("__probe_ip",)
    fields: list[Field] = [Field("unsigned long", place) for place in places]
    fields += [ProbeField(argument.type.field, argument.name, argument.count) for argument in arguments]
    printed = f"({' <- '.join(['%lx'] * len(places))})" + "".join(f" {argument.print_format}" for argument in arguments)
    values = [f"REC->{place}" for place in places]
    for argument in arguments:
        values += argument.printed
    return TracepointEvent(id, group, name, tuple(fields), ", ".join((f'"{printed}"', *values)), packed=True)


class TraceUprobe:
    """One probe (struct trace_uprobe): a consumer of its place."""

    def __init__(self, definition: UprobeDefinition, event: ProbeEvent) -> None:
        self.definition = definition
        self.hears_returns = definition.returns
        self.semaphore = definition.semaphore
        self.hits = 0
        self._event = event

    def hit(self, cpu: Cpu, task: Task) -> None:
        self._occurred(cpu, task, (cpu.core.pc,))

    def returned(self, cpu: Cpu, task: Task, function: int) -> None:
        self._occurred(cpu, task, (function, cpu.core.pc))

    def _occurred(self, cpu: Cpu, task: Task, places: tuple[int, ...]) -> None:
        if self._event.is_for(task):
            self.hits += 1
            if self._event.told:
                self._event.told.fire(self, cpu, task, places)

    def values(self, cpu: Cpu, task: Task, places: tuple[int, ...]) -> tuple[Value, ...]:
        """Of the event's fields."""
        moment = UserMoment(task.architecture, cpu, task, places[0] - self.definition.offset)
        room = MOST_BYTES
        values: list[Value] = list(places)
        for argument in self.definition.arguments:
            value = argument.fetch(moment, room)
            strings = value if isinstance(value, tuple) else (value,)
            room -= sum(len(string) for string in strings if isinstance(string, bytes))
            values.append(value)
        return tuple(values)


class ProbeEvent:
    """One event, its probes, and who has it open."""

    def __init__(self, described: TracepointEvent) -> None:
        self.described = described
        self.probes: list[TraceUprobe] = []
        self.told: Tracepoint[[TraceUprobe, Cpu, Task, tuple[int, ...]]] = Tracepoint()
        self._open: list[Listening] = []
        self._registered: list[TraceUprobe] = []

    @property
    def is_busy(self) -> bool:
        return bool(self._open)

    def open(self, uprobes: Uprobes, listening: Listening) -> None:
        """The first one registers the probes that there are. Raises LinuxError."""
        if not self._open:
            try:
                for probe in self.probes:
                    uprobes.register(probe.definition.place, probe, probe.definition.file.size)
                    self._registered.append(probe)
            except LinuxError:
                self._unregister(uprobes)
                raise
        self._open.append(listening)

    def close(self, uprobes: Uprobes, listening: Listening) -> None:
        self._open.remove(listening)
        if not self._open:
            self._unregister(uprobes)

    def _unregister(self, uprobes: Uprobes) -> None:
        while self._registered:
            probe = self._registered.pop()
            uprobes.unregister(probe.definition.place, probe)

    def is_for(self, task: Task) -> bool:
        """uprobe_perf_filter(): whether anybody listens to processes with this memory."""
        return any(listening.target is None or listening.target.mm is task.mm for listening in self._open)
