"""Results: what the Python API returns of programs that have run: what was counted or recorded, and how they ended.

The samples of a recording are those of any perf.data file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfcore.abi.constants import RecordType, SampleType
from perfcore.abi.sample import Sample
from perfcore.perfdata.errors import PerfDataError
from perfcore.perfdata.reader import open_perf_data
from perfemu.comparing.measured import Function, Measured
from perfemu.errors import PerfemuError
from perfemu.reporting import DEFAULT_FILE, open_profile, symbol_finder
from perfemu.sample_table import SampleTable, sample_table
from perfemu.statistics.counts import Counts
from perfemu.statistics.table import compared_rows, comparison, table
from perfemu.statistics.text import text_report


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a program ended, and what it wrote if that was captured."""

    argv: tuple[str, ...]
    exit_status: int  # as a shell's $?: 128 + n for signal n
    signal: int | None
    stdout: bytes | None
    stderr: bytes | None
    instructions: int
    elapsed_ns: int  # guest time


@dataclass(frozen=True, slots=True, repr=False)
class NamedCounts:
    """Counts by the events' names, with or without the ``:u`` that perf prints: ``result["instructions"]``."""

    counts: Counts

    def __getitem__(self, name: str) -> int:
        """The count; the mean of several runs, rounded. KeyError says why where there is no number."""
        for row in self.counts:
            if name in (row.name, row.spec.base_name):
                if row.absence is not None:
                    raise KeyError(f"{row.name}: {row.absence.value}")
                return round(row.spread.mean)
        raise KeyError(f"{name}: not among the events {', '.join(row.name for row in self.counts)}")

    def __contains__(self, name: object) -> bool:
        """Whether there is a number."""
        return any(name in (row.name, row.spec.base_name) and row.absence is None for row in self.counts)

    def __repr__(self) -> str:
        """Short, because pytest prints it where an assertion about it fails."""
        return repr(self.counts)

    def items(self) -> Iterator[tuple[str, int]]:
        """(name as perf prints it, count) of all that were counted."""
        return ((row.name, round(row.spread.mean)) for row in self.counts if row.absence is None)

    def table(self) -> str:
        """An event a line, for a message: what pytest prints below a failing assertion."""
        return table(self.counts)

    def differences(self, other: NamedCounts) -> list[str]:
        """A line for each count, and each other thing, that is not the same in `other`."""
        return list(comparison(self._compared(), other._compared()))

    def _compared(self) -> Iterator[tuple[str, str]]:
        return compared_rows(self.counts)


@dataclass(frozen=True, slots=True, repr=False)
class Interval(NamedCounts):
    """What was counted in one interval of a run."""

    end_ns: int  # since counting began


@dataclass(frozen=True, slots=True, repr=False)
class StatResult(NamedCounts):
    """All that was counted, and how the program ended."""

    exit_status: int
    signal: int | None
    stdout: bytes | None
    stderr: bytes | None
    measured: Measured | None = None  # by function, if that was wanted
    intervals: tuple[Interval, ...] = ()  # those of `stat(interval=...)`; they add up to the counts

    def __repr__(self) -> str:
        return f"{NamedCounts.__repr__(self)[:-1]}; status {self.exit_status}>"

    def _compared(self) -> Iterator[tuple[str, str]]:
        yield from compared_rows(self.counts)
        yield "exit status", str(self.exit_status)
        yield "stdout", _shortened(self.stdout)
        yield "stderr", _shortened(self.stderr)

    def functions(self, event: str) -> Mapping[Function, int]:
        """What `stat(functions=True)` knows: (module, name) -> count. They add up to the event's."""
        if self.measured is None:
            raise KeyError("functions are counted by stat(functions=True)")
        return self.measured.events[event.partition(":")[0]].functions

    @property
    def parts(self) -> Mapping[str, NamedCounts]:
        """What each CPU or thread counted, if that was wanted, by perf's names: ``CPU0``, ``S0``, ``comm-1000``."""
        return {part.label.fields[0]: NamedCounts(part.counts) for part in self.counts.parts}

    @property
    def elapsed_ns(self) -> int:
        """Guest time; the mean of several runs."""
        return round(self.counts.elapsed.mean)

    def __str__(self) -> str:
        """As perfemu stat prints it."""
        return text_report(self.counts)


@dataclass(frozen=True, slots=True)
class Recording:
    """A perf.data file that has been written."""

    path: str
    sample_count: int
    exit_status: int
    signal: int | None
    stdout: bytes | None
    stderr: bytes | None

    def table(self, *, symbols: bool = True, symfs: str | os.PathLike[str] = "") -> SampleTable:
        """All samples as a numpy array, see `perfemu.samples`. Of an exact recording: the counts of instructions."""
        return samples(self.path, symbols=symbols, symfs=symfs)

    def samples(self) -> Iterator[tuple[str, Sample]]:
        """(event's name, sample), in the order of the file."""
        with open_perf_data(self.path) as file:
            for raw in file.records():
                if raw.type == RecordType.SAMPLE:
                    number = file.event_number(raw)
                    sample, attr = file.decode_sample(raw, number), file.events[number].attr
                    if not attr.sample_type & SampleType.PERIOD:
                        sample.period = attr.sample_period
                    yield file.events[number].name, sample


def samples(
    path: str | os.PathLike[str] = DEFAULT_FILE, *, symbols: bool = True, symfs: str | os.PathLike[str] = ""
) -> SampleTable:
    """All samples of a perf.data file, by perfemu or by perf, as a numpy array, and with `symbols` who they are of.

    Raises PerfemuError for a file that cannot be read or is damaged.
    """
    complaints: list[str] = []
    try:
        with open_profile(os.fspath(path)) as file:
            finder = symbol_finder(file, os.fspath(symfs), complaints.append) if symbols else None
            return sample_table(file, finder, lambda: tuple(complaints))
    except PerfDataError as problem:
        raise PerfemuError(str(problem)) from None


def _shortened(output: bytes | None) -> str:
    """Enough of it to be recognized."""
    return repr(output) if output is None or len(output) <= 40 else f"{output[:40]!r}... {len(output)} bytes"
