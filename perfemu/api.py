"""api: stat, record, report and run for Python programs and their tests. See docs/api.md."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import IO

from perfcore.abi.constants import RecordType, SampleType
from perfcore.abi.sample import Sample
from perfcore.perfdata.errors import PerfDataError
from perfcore.perfdata.reader import open_perf_data
from perfemu.annotating import AnnotatedFunction, AnnotatedInstruction, SampledFunctions
from perfemu.attributing import ExactSamples
from perfemu.comparing.measured import Function, Measured
from perfemu.counting import count, default_events
from perfemu.ending import Ending
from perfemu.errors import EventSyntaxError, PerfemuError, UsageError
from perfemu.events.attributes import Sampling
from perfemu.functions import FunctionCounter
from perfemu.guest import Guest
from perfemu.interruption import Interrupted
from perfemu.profile.keys import DEFAULT_KEYS, sort_key
from perfemu.profile.report import DEFAULT_COLUMNS, Report, ReportOptions
from perfemu.recording import DEFAULT_EVENTS as DEFAULT_RECORDED
from perfemu.recording import record as record_to_file
from perfemu.regions import within
from perfemu.reporting import (
    DEFAULT_FILE,
    EventReport,
    ReportResult,
    ReportRow,
    open_profile,
    read_profile,
    symbol_finder,
)
from perfemu.sample_table import SampleTable, sample_table
from perfemu.scope import scope_of_cpus, scope_of_stat
from perfemu.session import Session
from perfemu.statistics.counts import Counts
from perfemu.statistics.table import compared_rows, comparison, table
from perfemu.statistics.text import text_report
from perfemu.symbols.finder import build_id_of

__all__ = [
    "AnnotatedFunction",
    "AnnotatedInstruction",
    "EventReport",
    "EventSyntaxError",
    "Guest",
    "NamedCounts",
    "PerfemuError",
    "Recording",
    "ReportResult",
    "ReportRow",
    "RunResult",
    "SampleTable",
    "StatResult",
    "UsageError",
    "annotate",
    "record",
    "report",
    "run",
    "samples",
    "stat",
]


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
class StatResult(NamedCounts):
    """All that was counted, and how the program ended."""

    exit_status: int
    signal: int | None
    stdout: bytes | None
    stderr: bytes | None
    measured: Measured | None = None  # by function, if that was wanted

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
        """What each CPU or thread counted, if that was wanted, by perf's names: ``CPU0``, ``comm-1000``."""
        return {part.label.field: NamedCounts(part.counts) for part in self.counts.parts}

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


def run(
    guest: Guest | Sequence[str | os.PathLike[str]],
    *,
    input: bytes | None = None,
    capture: bool = False,
) -> RunResult:
    """Run a program, a Guest or its arguments alone, to its end.

    `input` is its standard input (yours, if not given). With `capture` its output is in the result, not on your
    terminal. Raises PerfemuError if the program cannot be started, UsageError for what cannot be.
    """
    guest = Guest.of(guest)
    with _Streams(input, capture) as streams:
        session = Session(streams.connect(guest))
        ending = session.run()
        stdout, stderr = streams.output()
    return RunResult(
        guest.command,
        ending.exit_status,
        ending.signal,
        stdout,
        stderr,
        session.instructions(),
        session.times.elapsed_ns,
    )


def stat(
    guest: Guest | Sequence[str | os.PathLike[str]],
    events: Iterable[str] | None = None,
    *,
    repeat: int = 1,
    all_cpus: bool = False,
    cpu_list: str | None = None,
    per_cpu: bool = False,
    per_thread: bool = False,
    functions: bool = False,
    from_symbol: str | None = None,
    to_symbol: str | None = None,
    input: bytes | None = None,
    capture: bool = False,
) -> StatResult:
    """Run a program and count `events`, written as for ``perfemu stat -e``; None: those that it counts by itself.

    `repeat` and `functions` are -r and --functions, `all_cpus`, `cpu_list`, `per_cpu` and
    `per_thread` -a, -C, -A and --per-thread, `from_symbol` and `to_symbol` --from-symbol and --to-symbol. Raises
    EventSyntaxError for an unknown event. For the rest see `run`.
    """
    if repeat < 1:
        raise ValueError(f"repeat={repeat}: at least one run")
    guest = Guest.of(guest)
    scope = scope_of_stat(all_cpus, cpu_list, per_cpu, per_thread, guest.cpus)
    scope = within(scope, from_symbol, to_symbol)
    with _Streams(input, capture) as streams:
        counted = count(
            streams.connect(guest),
            partial(default_events, scope=scope) if events is None else events,
            runs=repeat,
            scope=scope,
            after_run=lambda _: streams.rewind(),
            attach=FunctionCounter if functions else None,
        )
        stdout, stderr = streams.output()
    ending = _ended(counted.ending, counted.interrupted_by)
    return StatResult(counted.counts, ending.exit_status, ending.signal, stdout, stderr, counted.measured)


def record(
    guest: Guest | Sequence[str | os.PathLike[str]],
    events: Sequence[str] = DEFAULT_RECORDED,
    *,
    output: str | os.PathLike[str] = "perf.data",
    period: int | None = None,
    frequency_hz: int = 4000,
    callchains: bool = False,
    exact: bool = False,
    all_cpus: bool = False,
    cpu_list: str | None = None,
    from_symbol: str | None = None,
    to_symbol: str | None = None,
    input: bytes | None = None,
    capture: bool = False,
) -> Recording:
    """Run a program and write its profile to `output`, a perf.data file.

    There is a sample every `period` events, or else `frequency_hz` in a second; with `exact` one for each instruction,
    whose period is how many events it made: the sum is the count. `all_cpus` and `cpu_list` are -a and
    -C, `from_symbol` and `to_symbol` as for `stat`. For the rest see `run` and `stat`.
    """
    guest = Guest.of(guest)
    sampling = Sampling(None if period is not None else frequency_hz, period, callchains=callchains)
    path = os.fspath(output)
    with _Streams(input, capture) as streams:
        recorded = record_to_file(
            streams.connect(guest),
            events,
            sampling,
            path,
            command_line=("perfemu", "record", *guest.command),
            build_id_of=build_id_of,
            scope=within(scope_of_cpus(all_cpus, cpu_list, guest.cpus), from_symbol, to_symbol),
            make_exact=ExactSamples if exact else None,
        )
        stdout, stderr = streams.output()
    ending = _ended(recorded.ending, recorded.interrupted_by)
    return Recording(recorded.path, recorded.samples, ending.exit_status, ending.signal, stdout, stderr)


def report(
    path: str | os.PathLike[str] = DEFAULT_FILE,
    *,
    sort: Sequence[str] = DEFAULT_KEYS,
    children: bool = True,
    symfs: str | os.PathLike[str] = "",
) -> ReportResult:
    """The tables of a perf.data file, by perfemu or by perf; `sort`, `children` and `symfs` as perfemu report's.

    Raises PerfemuError for a file that cannot be read or is damaged, ValueError for an unknown sort key.
    """
    complaints: list[str] = []
    keys = tuple(sort_key(name) for name in sort)
    options = ReportOptions(keys, DEFAULT_COLUMNS, children, call_trees=True, caller_first=children)
    try:
        with open_profile(os.fspath(path)) as file:
            profile = read_profile(file, os.fspath(symfs), complaints.append)
    except PerfDataError as problem:
        raise PerfemuError(str(problem)) from None
    return ReportResult.of(Report(profile, options), tuple(complaints))


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


def annotate(
    path: str | os.PathLike[str],
    symbol: str,
    *,
    dso: str = "",
    symfs: str | os.PathLike[str] = "",
) -> AnnotatedFunction:
    """The function `symbol` of a perf.data file with its instructions, and the counts of all events at each of them.

    Where several functions have the name it is the heaviest one, of the file `dso` if that is given. Raises
    PerfemuError: it has no samples, or its code is not to be had.
    """
    complaints: list[str] = []
    try:
        with open_profile(os.fspath(path)) as file:
            profile = read_profile(file, os.fspath(symfs), complaints.append)
    except PerfDataError as problem:
        raise PerfemuError(str(problem)) from None
    functions = SampledFunctions(profile, profile.events)
    try:
        return functions.annotated(functions.named(symbol, [dso] if dso else [])[0])
    except PerfemuError as error:
        raise PerfemuError("; ".join([error.message, *complaints[:1]])) from None


def _ended(ending: Ending | None, interrupted_by: int | None) -> Ending:
    """Python's users expect KeyboardInterrupt."""
    if ending is None:
        raise Interrupted(interrupted_by or 0)
    return ending


class _Streams:
    """The guest's standard streams: temporary files where the caller gives input or wants output."""

    def __init__(self, input: bytes | None, capture: bool) -> None:
        self._input = _temporary(input) if input is not None else None
        self._output = (_temporary(b""), _temporary(b"")) if capture else None

    def __enter__(self) -> _Streams:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._input, *(self._output or ())):
            if file is not None:
                file.close()

    def connect(self, guest: Guest) -> Guest:
        if self._input is not None:
            guest = replace(guest, stdin=self._input.fileno())
        if self._output is not None:
            guest = replace(guest, stdout=self._output[0].fileno(), stderr=self._output[1].fileno())
        return guest

    def rewind(self) -> None:
        """Another run reads the same input."""
        if self._input is not None:
            os.lseek(self._input.fileno(), 0, os.SEEK_SET)

    def output(self) -> tuple[bytes | None, bytes | None]:
        if self._output is None:
            return None, None
        out, err = self._output
        return _contents(out), _contents(err)


def _temporary(contents: bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by _Streams
    file.write(contents)
    file.flush()
    file.seek(0)
    return file


def _shortened(output: bytes | None) -> str:
    """Enough of it to be recognized."""
    return repr(output) if output is None or len(output) <= 40 else f"{output[:40]!r}... {len(output)} bytes"


def _contents(file: IO[bytes]) -> bytes:
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
