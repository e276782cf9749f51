"""counting: what stat does: open events on a program, run it, read them; as often as asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TextIO

from emulator.linux.errors import LinuxError
from perfcore.events.drivers.hardware import GroupTooLarge
from perfcore.events.event import PerfEvent
from perfemu.ending import Ending
from perfemu.errors import PerfemuError
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
    "instructions",
    "branches",
    "branch-misses",
)
DETAILED_EVENTS = (  # what -d adds, what -dd adds to that, and -ddd; tools/perf/builtin-stat.c
    ("L1-dcache-loads", "L1-dcache-load-misses", "LLC-loads", "LLC-load-misses"),
    ("L1-icache-loads", "L1-icache-load-misses", "dTLB-loads", "dTLB-load-misses", "iTLB-loads", "iTLB-load-misses"),
    ("L1-dcache-prefetches", "L1-dcache-prefetch-misses"),
)


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
    events: Iterable[str],
    *,
    runs: int = 1,
    inherit: bool = True,
    progress: TextIO | None = None,
    after_run: Callable[[Ending], None] | None = None,
) -> Counted:
    """Run the program `runs` times, each on a new machine, and count `events`."""
    session = Session(settings)
    specs = session.parse(events)
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
                with Progress(progress, session.progress):
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
