"""counting: what stat does: open events on a program, run it, read them; as often as asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TextIO, TypedDict, TypeVar, Unpack

from perfemu.counters import Counters, MeasuredRun
from perfemu.ending import Ending
from perfemu.errors import UsageError
from perfemu.events.changes import UNCHANGED, Changes
from perfemu.events.spec import EventSpec
from perfemu.guest import Guest
from perfemu.interruption import Interrupted, Interruption
from perfemu.intervals import Parts, Readings, ShowInterval, Timed
from perfemu.moments import ALWAYS, When
from perfemu.run_times import RunTimes
from perfemu.scope import PROGRAM, Scope
from perfemu.session import Session
from perfemu.statistics.counts import Count, Counts, Label, Part, Reading
from perfemu.statistics.metrics import TOP_DOWN
from pmu.generic_events import HardwareId

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


@dataclass(frozen=True, slots=True)
class Counted:
    """What a counting command gives. `ending` is the last run's, None if a signal to us cut it short."""

    counts: Counts
    ending: Ending | None
    interrupted_by: int | None = None  # signal
    measured: Measured | None = None  # the last run's, by function, if that was wanted


class Timing(TypedDict, total=False):
    """What `count` and `count_runs` know of time."""

    when: When
    on_interval: ShowInterval | None
    on_switch: Callable[[bool], None] | None


class _Runs:
    """What several runs have counted, of one whole or one part."""

    def __init__(self, specs: Sequence[EventSpec]) -> None:
        self._specs = specs
        self._readings: list[list[Reading]] = [[] for _ in specs]

    @classmethod
    def one(cls, specs: Sequence[EventSpec], readings: Iterable[Reading | None]) -> _Runs:
        """Of a single one."""
        made = cls(specs)
        made.add(readings)
        return made

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
    changes: Changes = UNCHANGED,
    **timing: Unpack[Timing],
) -> Counted:
    """Run the program `runs` times, each on a new machine, and count `events` of what `scope` says.

    `attach` makes what watches each run besides, perfemu.functions.FunctionCounter. `metrics` says which of the
    vendor's are wanted; their events are counted behind `events`. `timing`: see `count_runs`.
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
        changes=changes,
        **timing,
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
    changes: Changes = UNCHANGED,
    when: When = ALWAYS,
    on_interval: ShowInterval | None = None,
    on_switch: Callable[[bool], None] | None = None,
) -> Counted:
    """The same of runs that `new_run` makes. `name`: of what is run.

    `when` says when they are counted; `on_interval` hears of its intervals, `on_switch` of each begin and end.
    """
    session = new_run()
    plan = None if metrics is None else metrics(session)
    chosen = [*(events(session) if callable(events) else events)]
    specs = changes.applied(session.parse([*chosen, *(plan.events if plan else ())]))
    whole, parts = _Runs(specs), dict[Label, _Runs]()
    times: list[RunTimes] = []
    ending, interrupted_by = None, None

    def counts(of: _Runs, of_parts: dict[Label, _Runs] | None = None, of_times: Sequence[RunTimes] = times) -> Counts:
        return Counts(
            scope.name or name,
            session.title,
            of.counts(),
            tuple(of_times),
            system_wide=scope.cpus is not None,
            of_ids=scope.title,
            parts=tuple(Part(label, counts(part, {}, of_times)) for label, part in (of_parts or {}).items()),
            counted_by_hits=session.pmu_model.caches_counted_by_hits,
            partly_modelled=session.partly_modelled,
            metrics=plan.metrics if plan else (),
            metrics_asked=len(chosen),
        )

    def of_interval(sums: Readings, by_part: Parts, length: RunTimes) -> Counts:
        made = {label: _Runs.one(specs, readings) for label, readings in by_part}
        return counts(_Runs.one(specs, sums), made, (length,))

    for number in range(runs):
        if number:
            session = new_run()
        session.count_within(scope, inherit=inherit)
        counters = Counters(
            session, specs, scope, inherit or scope.ids is not None, begins_later=when.toggles is not None
        )
        interruption = Interruption()
        beside = None if attach is None else attach(session, specs, scope, interruption)
        timed = Timed(session, counters, when, interruption, of_interval, on_interval, on_switch)
        try:
            with session.showing_progress(progress):
                ending = session.run(interruption)
        except Interrupted as interrupted:
            ending, interrupted_by = None, interrupted.number
        counters.ended()
        times.append(timed.ended(session.times))
        whole.add(counters.sums())
        for label, readings in counters.parts().items():
            parts.setdefault(label, _Runs(specs)).add(readings)
        if interrupted_by is not None:
            break
        if after_run is not None and ending is not None:
            after_run(ending)
        session.check_reached()
    total = counts(whole, parts)
    return Counted(total, ending, interrupted_by, None if beside is None else beside.measured(total))
