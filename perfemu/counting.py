"""counting: what stat does: open events on a program, run it, read them; as often as asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TextIO

from emulator.linux.errors import LinuxError
from perfcore.events.drivers.hardware import GroupTooLarge
from perfcore.events.event import PerfEvent
from perfemu.ending import Ending
from perfemu.errors import PerfemuError, UsageError
from perfemu.events.attributes import stat_attr
from perfemu.events.spec import EventSpec
from perfemu.interruption import Interrupted
from perfemu.progress import Progress
from perfemu.session import GuestSettings, Session, cannot_know
from perfemu.statistics.counts import Absence, Count, Counts, Reading, RunTimes

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
    "stalled-cycles-frontend": "PERF_COUNT_HW_STALLED_CYCLES_FRONTEND",
    "stalled-cycles-backend": "PERF_COUNT_HW_STALLED_CYCLES_BACKEND",
}
DETAILED_EVENTS = (  # what -d adds, what -dd adds to that, and -ddd; tools/perf/builtin-stat.c
    ("L1-dcache-loads", "L1-dcache-load-misses", "LLC-loads", "LLC-load-misses"),
    ("L1-icache-loads", "L1-icache-load-misses", "dTLB-loads", "dTLB-load-misses", "iTLB-loads", "iTLB-load-misses"),
    ("L1-dcache-prefetches", "L1-dcache-prefetch-misses"),
)
TOP_DOWN_EVENTS = (  # what level 1 counts, and what level 2 adds
    ("slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"),
    ("topdown-br-mispredict", "topdown-fetch-lat", "topdown-mem-bound"),
)

ChooseEvents = Callable[[Session], Iterable[str]]
"""Events that depend on what the PMU can count."""


def default_events(session: Session) -> list[str]:
    """perf stat's, on this core."""
    known = session.pmu_model.generic_events
    return [event for event in DEFAULT_EVENTS if event not in _ONLY_IF_KNOWN or _ONLY_IF_KNOWN[event] in known]


def top_down_events(session: Session, level: int) -> list[str]:
    """For ``--topdown``. Raises UsageError on a core that has no slots."""
    if "slots" not in session.pmu_model.sysfs_aliases:
        raise UsageError(f"stat --topdown: core {session.core.name} has no pipeline whose slots could be counted")
    return [event for added in TOP_DOWN_EVENTS[:level] for event in added]


@dataclass(frozen=True, slots=True)
class Counted:
    """What a counting command gives. `ending` is the last run's, None if a signal to us cut it short."""

    counts: Counts
    ending: Ending | None
    interrupted_by: int | None = None  # signal


def open_counters(session: Session, specs: Iterable[EventSpec], inherit: bool = True) -> list[PerfEvent | Absence]:
    """One event per spec, or why there is none. A group stands or falls with its leader; what it lacks counters for is
    left out of it."""
    opened: list[PerfEvent | Absence] = []
    leader: PerfEvent | None = None
    for spec in specs:
        if spec.leads:
            leader = None
        event: PerfEvent | Absence = Absence.NOT_SUPPORTED
        if not spec.counts_no_user_mode and (spec.leads or leader is not None):
            try:
                event = session.open(stat_attr(spec, inherit=inherit), leader=leader)
            except GroupTooLarge:
                event = Absence.NOT_COUNTED
            except LinuxError as error:
                if not cannot_know(error):
                    raise PerfemuError(f"{spec.name}: cannot be opened: {error.why or error}") from None
        if spec.leads:
            leader = event if isinstance(event, PerfEvent) else None
        opened.append(event)
    return opened


def count(
    settings: GuestSettings,
    events: Iterable[str] | ChooseEvents = default_events,
    *,
    runs: int = 1,
    inherit: bool = True,
    progress: TextIO | None = None,
    after_run: Callable[[Ending], None] | None = None,
) -> Counted:
    """Run the program `runs` times, each on a new machine, and count `events`."""
    session = Session(settings)
    specs = session.parse(events(session) if callable(events) else events)
    readings: list[list[Reading]] = [[] for _ in specs]
    times: list[RunTimes] = []
    ending, interrupted_by = None, None
    for number in range(runs):
        if number:
            session = Session(settings)
        opened = open_counters(session, specs, inherit)
        try:
            if progress is None:
                ending = session.run()
            else:
                with Progress(progress, session.progress, session.console):
                    ending = session.run()
        except Interrupted as interrupted:
            ending, interrupted_by = None, interrupted.number
        times.append(session.times)
        for row, event in zip(readings, opened, strict=True):
            if isinstance(event, PerfEvent):
                values = event.read_values()
                row.append(Reading(values.value, values.enabled, values.running))
            elif event is Absence.NOT_COUNTED:
                row.append(Reading(0, 0, 0))
        if interrupted_by is not None:
            break
        if after_run is not None and ending is not None:
            after_run(ending)
    rows = tuple(Count(spec, tuple(row)) for spec, row in zip(specs, readings, strict=True))
    counts = Counts(" ".join(settings.argv), session.core.title, rows, tuple(times))
    return Counted(counts, ending, interrupted_by)
