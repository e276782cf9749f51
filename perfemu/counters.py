"""Counters: the events that one run is counted by: opened, begun and ended, and read, as a whole or in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Protocol, TextIO

from emulator.core_file.core_file import CoreFile
from emulator.linux.errors import LinuxError
from emulator.linux.process.task import Task
from perfcore.abi.attr import PerfEventAttr
from perfcore.events.drivers.counter_assignment import GroupTooLarge
from perfcore.events.event import PerfEvent
from perfemu.ending import Ending
from perfemu.errors import PerfemuError
from perfemu.events.attributes import stat_attr
from perfemu.events.changes import set_filter
from perfemu.events.spec import EventSpec
from perfemu.interruption import Interruption
from perfemu.moments import Clockwork
from perfemu.run_times import RunTimes
from perfemu.scope import Scope, Split
from perfemu.session import cannot_know
from perfemu.statistics.counts import (
    Absence,
    Label,
    Reading,
    core_label,
    cpu_label,
    die_label,
    socket_label,
    thread_label,
)
from pmu.model import PmuModel


class MeasuredRun(Clockwork, Protocol):
    """One run that is counted: of a program, as Session is, or of a board."""

    times: RunTimes

    @property
    def core(self) -> CoreFile: ...
    @property
    def pmu_model(self) -> PmuModel: ...
    @property
    def title(self) -> str: ...
    @property
    def partly_modelled(self) -> bool: ...
    @property
    def program_task(self) -> Task: ...

    def parse(self, events: Iterable[str]) -> list[EventSpec]: ...
    def open(
        self,
        attr: PerfEventAttr,
        cpu: int = -1,
        leader: PerfEvent | None = None,
        *,
        system_wide: bool = False,
        cgroup: str | None = None,
    ) -> PerfEvent: ...
    def count_within(self, scope: Scope, *, inherit: bool) -> None: ...
    def check_reached(self) -> None: ...
    def showing_progress(self, stream: TextIO | None) -> AbstractContextManager[object]: ...
    def run(self, interruption: Interruption | None = None) -> Ending: ...
    def let_cpus_come_to_the_end(self) -> None: ...


def enable_groups(events: Iterable[PerfEvent]) -> None:
    """Events that no exec enables count from now on."""
    for event in events:
        if event.is_leader:
            event.enable()


def switch_events(events: Iterable[PerfEvent], on: bool, *, groups: bool) -> None:
    """They count from now on, or do not; `groups`: their leaders decide."""
    for event in events:
        if event.is_leader or not groups:
            (event.enable if on else event.disable)()


def open_counters(
    session: MeasuredRun,
    specs: Iterable[EventSpec],
    inherit: bool = True,
    cpu: int | None = None,
    per_thread: bool = False,
    for_all: bool = True,
    begins_later: bool = False,
) -> list[PerfEvent | Absence]:
    """One event per spec, of the program or of all that `cpu` does; or why there is none.

    A group stands or falls with its leader; what it lacks counters for is left out of it. A weak one is then none.
    Events that are counted for all CPUs at once are opened for them, and only with `for_all`."""

    def opened(spec: EventSpec, leader: PerfEvent | None) -> PerfEvent | Absence:
        if spec.counts_nothing or (spec.system_wide and not for_all):
            return Absence.NOT_SUPPORTED
        try:
            system_wide = cpu is not None or spec.system_wide
            attr = stat_attr(spec, inherit=inherit, system_wide=system_wide, per_thread=per_thread)
            attr.enable_on_exec &= not begins_later
            on_cpu = (cpu or 0) if system_wide else -1
            event = session.open(attr, on_cpu, leader, system_wide=system_wide, cgroup=spec.cgroup)
            set_filter(event, spec)
            return event
        except GroupTooLarge:
            return Absence.NOT_COUNTED
        except LinuxError as error:
            if not cannot_know(error):
                raise PerfemuError(f"{spec.name}: cannot be opened: {error.why or error}") from None
            return Absence.NOT_SUPPORTED

    return [event for group in _groups(specs) for event in _opened_group(group, opened)]


def _groups(specs: Iterable[EventSpec]) -> list[list[EventSpec]]:
    groups: list[list[EventSpec]] = []
    for spec in specs:
        if spec.leads:
            groups.append([])
        groups[-1].append(spec)
    return groups


def _opened_group(
    group: Sequence[EventSpec], opened: Callable[[EventSpec, PerfEvent | None], PerfEvent | Absence]
) -> list[PerfEvent | Absence]:
    leader, *members = group
    first = opened(leader, None)
    if not isinstance(first, PerfEvent):
        return [first, *([Absence.NOT_SUPPORTED] * len(members))]
    events = [first, *(opened(member, first) for member in members)]
    if leader.modifiers.weak and Absence.NOT_COUNTED in events:
        for event in events:
            if isinstance(event, PerfEvent):
                event.close()
        return [opened(replace(spec, leads=True, group_size=1), None) for spec in group]
    return events


class Counters:
    """The events of one run, and what they have come to."""

    def __init__(
        self,
        session: MeasuredRun,
        specs: Sequence[EventSpec],
        scope: Scope,
        inherit: bool,
        *,
        begins_later: bool = False,
    ) -> None:
        """`begins_later`: by `switch`, rather than with the program."""
        self._session = session
        self._specs = specs
        self._scope = scope
        self._inherited: dict[Task, dict[int, PerfEvent]] = {}  # by event
        self._of_cpus = scope.cpus is not None or any(spec.system_wide for spec in specs)
        scope.check_shared(spec.name for spec in specs if spec.system_wide)
        by_thread = scope.split is Split.THREADS
        cpus = (None,) if scope.cpus is None else scope.cpus
        self._opened = [
            open_counters(session, specs, inherit, cpu, by_thread, for_all=cpu == cpus[0], begins_later=begins_later)
            for cpu in cpus
        ]
        for opened in self._opened:
            for event, spec in zip(opened, specs, strict=True):
                if isinstance(event, PerfEvent) and (spec.system_wide or scope.cpus is not None) and not begins_later:
                    enable_groups([event])
        if by_thread:
            for number, event in enumerate(self._opened[0]):
                if isinstance(event, PerfEvent):
                    event.on_inherited = partial(self._note, number)

    def _note(self, number: int, copy: PerfEvent, child: Task) -> None:
        self._inherited.setdefault(child, {})[number] = copy

    def switch(self, on: bool, name: str = "") -> None:
        """All of them, or those of this name, begin to count, or end."""
        events = [
            event
            for opened in self._opened
            for event, spec in zip(opened, self._specs, strict=True)
            if isinstance(event, PerfEvent) and name in ("", spec.name, spec.base_name)
        ]
        switch_events(events, on, groups=not name)

    def ended(self) -> None:
        if self._of_cpus:
            self._session.let_cpus_come_to_the_end()

    def sums(self) -> list[Reading | None]:
        """Of each event; None where it is not supported."""
        return [_sum([_reading(event) for event in row]) for row in zip(*self._opened, strict=True)]

    def parts(self) -> dict[Label, list[Reading | None]]:
        match self._scope.split:
            case Split.CPUS | Split.CORES:
                label = cpu_label if self._scope.split is Split.CPUS else core_label
                cpus = self._scope.cpus or ()
                return {
                    label(cpu): [_reading(event) for event in row] for cpu, row in zip(cpus, self._opened, strict=True)
                }
            case Split.SOCKETS:
                return {socket_label(len(self._opened)): self.sums()}
            case Split.DIES:
                return {die_label(len(self._opened)): self.sums()}
            case Split.THREADS:
                opened = self._opened[0]
                first = {number: event for number, event in enumerate(opened) if isinstance(event, PerfEvent)}
                tasks = {self._session.program_task: first, **self._inherited}
                return {
                    thread_label(task.comm, task.tid): [
                        _own_reading(events.get(number), event) for number, event in enumerate(opened)
                    ]
                    for task, events in tasks.items()
                }
        return {}


def _reading(event: PerfEvent | Absence) -> Reading | None:
    if isinstance(event, PerfEvent):
        values = event.read_values()
        return Reading(values.value, values.enabled, values.running)
    return Reading(0, 0, 0) if event is Absence.NOT_COUNTED else None


def _own_reading(own: PerfEvent | None, opened: PerfEvent | Absence) -> Reading | None:
    """Of one thread, whose copy of `opened` is `own`."""
    if own is None:
        return _reading(opened) if isinstance(opened, Absence) else Reading(0, 0, 0)
    values = own.own_values()
    return Reading(values.value, values.enabled, values.running)


def _sum(readings: Sequence[Reading | None]) -> Reading | None:
    present = [reading for reading in readings if reading is not None]
    if not present:
        return None
    return Reading(
        sum(reading.value for reading in present),
        sum(reading.enabled_ns for reading in present),
        sum(reading.running_ns for reading in present),
    )
