"""reporting: what report does: read a perf.data file, and make the tables that are asked for."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from perfcore.abi.sample import Sample
from perfcore.perfdata.reader import PerfDataFile, open_perf_data
from perfemu.collection import uncollected
from perfemu.errors import PerfemuError
from perfemu.formats.stdio import write as write_stdio
from perfemu.profile.histogram import Entry, Histogram
from perfemu.profile.profile import Profile, load_profile
from perfemu.profile.report import Report
from perfemu.symbols.finder import SymbolFinder
from perfemu.symbols.vdso import vdso_file

DEFAULT_FILE = "perf.data"
_STANDARD_INPUT = "-"


def default_input(stdin: BinaryIO) -> str:
    """What perf reads if it is not told: standard input if that is a pipe, else perf.data."""
    try:
        is_pipe = stat.S_ISFIFO(os.fstat(stdin.fileno()).st_mode)
    except (OSError, ValueError):
        is_pipe = False
    return _STANDARD_INPUT if is_pipe else DEFAULT_FILE


def open_profile(name: str) -> PerfDataFile:
    """The file `name`, ``-`` for standard input. Raises PerfemuError and PerfDataError."""
    if name == _STANDARD_INPUT:
        return PerfDataFile(sys.stdin.buffer, "standard input")
    try:
        return open_perf_data(name)
    except OSError as error:
        hint = " (run perfemu record first)" if isinstance(error, FileNotFoundError) and name == DEFAULT_FILE else ""
        raise PerfemuError(f"cannot read {name}: {error.strerror}{hint}") from None


def symbol_finder(file: PerfDataFile, symfs: str, complain: Callable[[str], None]) -> SymbolFinder:
    """For a recording's files, below `symfs`. `complain` hears what is wrong with them."""
    build_ids = {entry.path: entry.build_id for entry in file.features.build_ids}
    from_perf = not file.is_pipe and file.features.command_line[:1] != ("perfemu",)
    jit_files = None if from_perf else {jit.path: jit.contents for jit in file.features.jit_files}
    vdso = "" if from_perf else vdso_file(file.features.architecture or "")
    return SymbolFinder(symfs.rstrip("/"), complain, build_ids, jit_files, vdso)


@uncollected()
def read_profile(
    file: PerfDataFile,
    symfs: str,
    complain: Callable[[str], None],
    *,
    keeps_moments: bool = False,
    takes: Callable[[Sample], bool] | None = None,
) -> Profile:
    """The samples that `takes`, if it is given, says yes to, with their symbols; files are looked for below `symfs`.

    `complain` hears what is wrong with them.
    """
    finder = symbol_finder(file, symfs, complain)
    profile = load_profile(file, finder, keeps_moments=keeps_moments, takes=takes)
    if file.interrupted:
        complain(f"{file.name}: the recorder was killed; read what is there")
    if not any(event.sample_count for event in profile.events):
        complain(f"{file.name} has no samples")
    if profile.lost_records:
        complain(f"{file.name}: {profile.lost_records} records were lost while recording")
    return profile


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One line of a table. `keys` are its texts by sort key: ``row.keys["symbol"]``."""

    keys: dict[str, str]
    samples: int
    period: int
    children_period: int  # with what it called; `period` where there are no callchains
    percent: float  # `period` of the event's
    children_percent: float

    @property
    def symbol(self) -> str:
        """The function's name, without perf's ``[.]``."""
        return self.keys["symbol"].partition("] ")[2]


@dataclass(frozen=True, slots=True)
class EventReport:
    """The table of one event."""

    name: str
    samples: int
    period: int
    rows: tuple[ReportRow, ...]  # heaviest first

    def __iter__(self) -> Iterator[ReportRow]:
        return iter(self.rows)

    def __getitem__(self, symbol: str) -> ReportRow:
        """The heaviest row of the function `symbol`."""
        for row in self.rows:
            if "symbol" in row.keys and row.symbol == symbol:
                return row
        raise KeyError(f"{symbol}: no row of {self.name} has this symbol")


@dataclass(frozen=True, slots=True)
class ReportResult:
    """A profile as tables. ``str()`` is what perfemu report prints."""

    events: tuple[EventReport, ...]  # those that have samples
    lost_samples: int
    complaints: tuple[str, ...]  # about the file and the programs in it
    text: str

    @classmethod
    def of(cls, report: Report, complaints: tuple[str, ...]) -> ReportResult:
        text = io.StringIO()
        write_stdio(report, text)
        events = (_event(table, number) for table in report.tables() for number in range(len(table.events)))
        return cls(tuple(events), report.profile.lost_samples, complaints, text.getvalue())

    def __getitem__(self, name: str) -> EventReport:
        """The table of an event by its name, with or without its modifiers."""
        for event in self.events:
            if name in (event.name, event.name.partition(":")[0]):
                return event
        raise KeyError(f"{name}: not among the events {', '.join(event.name for event in self.events)}")

    def __str__(self) -> str:
        return self.text


def _event(table: Histogram, number: int) -> EventReport:
    event = table.events[number]
    rows = (_row(entry, table, number) for entry in table.entries if entry.totals[number])
    return EventReport(event.name, event.sample_count, event.period, tuple(rows))


def _row(entry: Entry, table: Histogram, number: int) -> ReportRow:
    whole = table.wholes[number] or 1
    own, total = entry.periods[number], entry.totals[number]
    keys = {key.name: key.text(entry.row).strip() for key in table.options.keys}
    return ReportRow(keys, entry.samples[number], own, total, 100.0 * own / whole, 100.0 * total / whole)
