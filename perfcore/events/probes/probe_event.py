"""ProbeEvent: a tracepoint that somebody has defined, of probes that tell the same. As struct trace_probe_event."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from emulator.cpu import Cpu
from emulator.linux.errors import LinuxError
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.task import Task
from emulator.linux.tracepoint import Tracepoint
from perfcore.abi.tracepoints import Field, TracepointEvent, Value
from perfcore.events.probes.fetch_args import Argument
from perfcore.events.probes.fetch_types import ProbeField
from perfcore.events.probes.moment import Moment

MOST_RECORD_BYTES = 8192  # PERF_MAX_TRACE_SIZE
_ANY_ROOM = 1 << 20  # bytes: more than all strings that there may be


class Listening(Protocol):
    """An open perf event."""

    @property
    def target(self) -> Task | None:
        """Of what task; None: of all."""


class Definition(Protocol):
    """What a line says that defines a probe."""

    @property
    def group(self) -> str: ...
    @property
    def event(self) -> str: ...
    @property
    def returns(self) -> bool: ...
    @property
    def arguments(self) -> tuple[Argument, ...]: ...

    @property
    def place(self) -> Hashable:
        """What is probed."""

    @property
    def at(self) -> str:
        """Where, as the line has it."""

    @property
    def line(self) -> str: ...


Defined = TypeVar("Defined", bound=Definition, covariant=True)
Places = tuple[int, ...]
"""The first fields of a record: of the instruction, or of the function and where it has returned to."""


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


class TraceProbe(ABC, Generic[Defined]):
    """One place of an event (struct trace_uprobe, trace_kprobe)."""

    most_bytes: int | None = None  # of arguments and strings, which are cut to that

    def __init__(self, definition: Defined, event: ProbeEvent) -> None:
        self.definition = definition
        self.hits = 0
        self._event = event

    @abstractmethod
    def register(self) -> None:
        """Hear of it from now on. Raises LinuxError."""

    @abstractmethod
    def unregister(self) -> None: ...

    def listeners_changed(self) -> None:
        """Others listen to the event now."""

    def occurred(self, cpu: Cpu, task: Task, places: Places, moment: Moment) -> None:
        """It is hit."""
        if self._event.told and self._event.is_for(task.mm):
            self._event.told.fire(self, cpu, task, places, moment)

    def values(self, places: Places, moment: Moment) -> tuple[Value, ...]:
        """Of the event's fields."""
        arguments = self.definition.arguments
        room = _ANY_ROOM if self.most_bytes is None else self.most_bytes - sum(each.field.size for each in arguments)
        values: list[Value] = list(places)
        for argument in arguments:
            value = argument.fetch(moment, room)
            strings = value if isinstance(value, tuple) else (value,)
            room -= sum(len(string) for string in strings if isinstance(string, bytes))
            values.append(value)
        return tuple(values)

    def fits(self, task: Task, places: Places, moment: Moment) -> bool:
        """Whether perf has room for its record. What is longer does not happen, as far as perf's events know."""
        if self.most_bytes is not None or not any(argument.type.is_string for argument in self.definition.arguments):
            return True
        return len(self._event.described.pack(task.tid, self.values(places, moment))) <= MOST_RECORD_BYTES


class ProbeEvent:
    """One event, its probes, and who has it open."""

    def __init__(self, described: TracepointEvent, in_kernel: bool = False) -> None:
        self.described = described
        self.in_kernel = in_kernel  # where it is hit
        self.probes: list[TraceProbe[Definition]] = []
        self.told: Tracepoint[[TraceProbe[Definition], Cpu, Task, Places, Moment]] = Tracepoint()
        self._open: list[Listening] = []
        self._registered: list[TraceProbe[Definition]] = []

    @property
    def is_busy(self) -> bool:
        return bool(self._open)

    def open(self, listening: Listening) -> None:
        """The first one registers the probes that there are. Raises LinuxError."""
        self._open.append(listening)
        if self._registered:
            self._tell_probes()
            return
        try:
            for probe in self.probes:
                probe.register()
                self._registered.append(probe)
        except LinuxError:
            self.close(listening)
            raise

    def close(self, listening: Listening) -> None:
        self._open.remove(listening)
        if not self._open:
            self._unregister()
        else:
            self._tell_probes()

    def _tell_probes(self) -> None:
        for probe in self._registered:
            probe.listeners_changed()

    def _unregister(self) -> None:
        while self._registered:
            self._registered.pop().unregister()

    def is_for(self, memory: MemoryMap) -> bool:
        """uprobe_perf_filter(): whether anybody listens to processes with this memory."""
        return any(listening.target is None or listening.target.mm is memory for listening in self._open)
