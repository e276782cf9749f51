"""counting: what stat does: open events on a program, run it, read them; as often as asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TextIO, TypeVar

from emulator.core_file.core_file import CoreFile
from emulator.linux.errors import LinuxError
from emulator.linux.process.task import Task
from perfcore.abi.attr import PerfEventAttr
from perfcore.events.drivers.hardware import GroupTooLarge
from perfcore.events.event import PerfEvent
from perfemu.ending import Ending
from perfemu.errors import PerfemuError, UsageError
from perfemu.events.attributes import stat_attr
from perfemu.events.spec import EventSpec
from perfemu.guest import Guest
from perfemu.interruption import Interrupted, Interruption
from perfemu.run_times import RunTimes
from perfemu.scope import PROGRAM, Region, Scope, Split
from perfemu.session import Session, cannot_know
from perfemu.statistics.counts import (
    Absence,
    Count,
    Counts,
    Label,
    Part,
    Reading,
    cpu_label,
    socket_label,
    thread_label,
)
from perfemu.statistics.metrics import TOP_DOWN
from pmu.generic_events import HardwareId
from pmu.model import PmuModel

if TYPE_CHECKING:
    from perfemu.comparing.measured import Measured  # brings in a reader of ELF files
    from perfemu.vendor_metrics.plan import MetricPlan

DEFAULT_EVENTS = (
    "task-clock",
    "context-switches",
    "cpu-migrations",
    "page-faults",
    "cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "instructions",
    "branches",
    "branch-misses",
)
_ONLY_IF_KNOWN = {  # of these, what is left out where the PMU cannot know it, as perf does
    generic.names[0]: generic for generic in (HardwareId.STALLED_CYCLES_FRONTEND, HardwareId.STALLED_CYCLES_BACKEND)
}
DETAILED_EVENTS = (  # what -d adds, what -dd adds to that, and -ddd; tools/perf/builtin-stat.c
    ("L1-dcache-loads", "L1-dcache-load-misses", "LLC-loads", "LLC-load-misses"),
    ("L1-icache-loads", "L1-icache-load-misses", "dTLB-loads", "dTLB-load-misses", "iTLB-loads", "iTLB-load-misses"),
    ("L1-dcache-prefetches", "L1-dcache-prefetch-misses"),
)
TOP_DOWN_EVENTS = (  # what level 1 counts, and what level 2 adds
    ("slots", *(name for name, slots in TOP_DOWN.items() if not slots.part_of)),
    tuple(name for name, slots in TOP_DOWN.items() if slots.part_of),
)


class Beside(Protocol):
    """What else is to be known of a run that counts."""

    def measured(self, counts: Counts) -> Measured:
        """After the run."""


class MeasuredRun(Protocol):
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
        self, attr: PerfEventAttr, cpu: int = -1, leader: PerfEvent | None = None, *, system_wide: bool = False
    ) -> PerfEvent: ...
    def count_within(self, region: Region) -> None: ...
    def check_region(self) -> None: ...
    def showing_progress(self, stream: TextIO | None) -> AbstractContextManager[object]: ...
    def run(self, interruption: Interruption | None = None) -> Ending: ...
    def let_cpus_come_to_the_end(self) -> None: ...


R = TypeVar("R", bound=MeasuredRun)

Attach = Callable[[Session, Sequence[EventSpec], Scope, Interruption], Beside]

ChooseEvents = Callable[[MeasuredRun], Iterable[str]]
"""Events that depend on what the PMU can count."""


def default_events(session: MeasuredRun, scope: Scope = PROGRAM) -> list[str]:
    """perf stat's, on this core. A CPU's clock is cpu-clock."""
    known = session.pmu_model.generic_events
    clock = "task-clock" if scope.cpus is None else "cpu-clock"
    events = (clock, *DEFAULT_EVENTS[1:])
    return [event for event in events if event not in _ONLY_IF_KNOWN or _ONLY_IF_KNOWN[event] in known]


def top_down_events(session: MeasuredRun, level: int) -> list[str]:
    """For ``--topdown``. Raises UsageError on a core that has no slots."""
    pmu = session.pmu_model
    if "slots" not in pmu.sysfs_aliases:
        if pmu.one_a_cycle:
            raise UsageError(f"stat --topdown: core {session.core.name} has no pipeline whose slots could be counted")
        raise UsageError(f"stat --topdown: PMU {pmu.name} has no event for slots")
    return [event for added in TOP_DOWN_EVENTS[:level] for event in added]


def enable_groups(events: Iterable[PerfEvent]) -> None:
    """Events that no exec enables count from now on."""
    for event in events:
        if event.is_leader:
            event.enable()


@dataclass(frozen=True, slots=True)
class Counted:
    """What a counting command gives. `ending` is the last run's, None if a signal to us cut it short."""

    counts: Counts
    ending: Ending | None
    interrupted_by: int | None = None  # signal
    measured: Measured | None = None  # the last run's, by function, if that was wanted


def open_counters(
    session: MeasuredRun,
    specs: Iterable[EventSpec],
    inherit: bool = True,
    cpu: int | None = None,
    per_thread: bool = False,
    for_all: bool = True,
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
            return session.open(attr, (cpu or 0) if system_wide else -1, leader, system_wide=system_wide)
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


class _Counters:
    """The events of one run, and what they have come to."""

    def __init__(self, session: MeasuredRun, specs: Sequence[EventSpec], scope: Scope, inherit: bool) -> None:
        self._session = session
        self._scope = scope
        self._inherited: dict[Task, dict[int, PerfEvent]] = {}  # by event
        self._of_cpus = scope.cpus is not None or any(spec.system_wide for spec in specs)
        scope.check_shared(spec.name for spec in specs if spec.system_wide)
        by_thread = scope.split is Split.THREADS
        cpus = (None,) if scope.cpus is None else scope.cpus
        self._opened = [open_counters(session, specs, inherit, cpu, by_thread, for_all=cpu == cpus[0]) for cpu in cpus]
        for opened in self._opened:
            for event, spec in zip(opened, specs, strict=True):
                if isinstance(event, PerfEvent) and (spec.system_wide or scope.cpus is not None):
                    enable_groups([event])
        if by_thread:
            for number, event in enumerate(self._opened[0]):
                if isinstance(event, PerfEvent):
                    event.on_inherited = partial(self._note, number)

    def _note(self, number: int, copy: PerfEvent, child: Task) -> None:
        self._inherited.setdefault(child, {})[number] = copy

    def ended(self) -> None:
        if self._of_cpus:
            self._session.let_cpus_come_to_the_end()

    def sums(self) -> list[Reading | None]:
        """Of each event; None where it is not supported."""
        return [_sum([_reading(event) for event in row]) for row in zip(*self._opened, strict=True)]

    def parts(self) -> dict[Label, list[Reading | None]]:
        match self._scope.split:
            case Split.CPUS:
                cpus = self._scope.cpus or ()
                return {
                    cpu_label(cpu): [_reading(event) for event in row]
                    for cpu, row in zip(cpus, self._opened, strict=True)
                }
            case Split.SOCKETS:
                return {socket_label(len(self._opened)): self.sums()}
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


class _Runs:
    """What several runs have counted, of one whole or one part."""

    def __init__(self, specs: Sequence[EventSpec]) -> None:
        self._specs = specs
        self._readings: list[list[Reading]] = [[] for _ in specs]

    def add(self, readings: Iterable[Reading | None]) -> None:
        for row, reading in zip(self._readings, readings, strict=True):
            if reading is not None:
                row.append(reading)

    def counts(self) -> tuple[Count, ...]:
        return tuple(Count(spec, tuple(row)) for spec, row in zip(self._specs, self._readings, strict=True))


def count(
    guest: Guest,
    events: Iterable[str] | ChooseEvents = default_events,
    *,
    runs: int = 1,
    inherit: bool = True,
    scope: Scope = PROGRAM,
    progress: TextIO | None = None,
    after_run: Callable[[Ending], None] | None = None,
    attach: Attach | None = None,
    metrics: Callable[[MeasuredRun], MetricPlan] | None = None,
) -> Counted:
    """Run the program `runs` times, each on a new machine, and count `events` of what `scope` says.

    `attach` makes what watches each run besides, perfemu.functions.FunctionCounter. `metrics` says which of the
    vendor's are wanted; their events are counted behind `events`.
    """
    return count_runs(
        partial(Session, guest),
        " ".join(guest.command),
        events,
        runs=runs,
        inherit=inherit,
        scope=scope,
        progress=progress,
        after_run=after_run,
        attach=attach,
        metrics=metrics,
    )


def count_runs(
    new_run: Callable[[], R],
    name: str,
    events: Iterable[str] | Callable[[R], Iterable[str]],
    *,
    runs: int = 1,
    inherit: bool = True,
    scope: Scope = PROGRAM,
    progress: TextIO | None = None,
    after_run: Callable[[Ending], None] | None = None,
    attach: Callable[[R, Sequence[EventSpec], Scope, Interruption], Beside] | None = None,
    metrics: Callable[[MeasuredRun], MetricPlan] | None = None,
) -> Counted:
    """The same of runs that `new_run` makes. `name`: of what is run."""
    session = new_run()
    plan = None if metrics is None else metrics(session)
    chosen = events(session) if callable(events) else events
    specs = session.parse([*chosen, *(plan.events if plan else ())])
    whole, parts = _Runs(specs), dict[Label, _Runs]()
    times: list[RunTimes] = []
    ending, interrupted_by = None, None
    for number in range(runs):
        if number:
            session = new_run()
        if scope.region is not None:
            session.count_within(scope.region)
        counters = _Counters(session, specs, scope, inherit)
        interruption = Interruption()
        beside = None if attach is None else attach(session, specs, scope, interruption)
        try:
            with session.showing_progress(progress):
                ending = session.run(interruption)
        except Interrupted as interrupted:
            ending, interrupted_by = None, interrupted.number
        times.append(session.times)
        counters.ended()
        whole.add(counters.sums())
        for label, readings in counters.parts().items():
            parts.setdefault(label, _Runs(specs)).add(readings)
        if interrupted_by is not None:
            break
        if after_run is not None and ending is not None:
            after_run(ending)
        session.check_region()
    named = scope.name or name

    def counts(of: _Runs, shown: tuple[Part, ...] = ()) -> Counts:
        return Counts(
            named,
            session.title,
            of.counts(),
            tuple(times),
            system_wide=scope.cpus is not None,
            parts=shown,
            counted_by_hits=session.pmu_model.caches_counted_by_hits,
            partly_modelled=session.partly_modelled,
            metrics=plan.metrics if plan else (),
            metric_events=plan.number_of_events if plan else 0,
        )

    shown = tuple(Part(label, counts(of)) for label, of in parts.items())
    total = counts(whole, shown)
    return Counted(total, ending, interrupted_by, None if beside is None else beside.measured(total))
