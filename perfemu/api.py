"""api: stat, record, report and run for Python programs and their tests. See docs/api.md."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

from perfcore.perfdata.errors import PerfDataError
from perfemu.annotating import AnnotatedFunction, AnnotatedInstruction, SampledFunctions
from perfemu.attributing import ExactSamples
from perfemu.counting import count, default_events
from perfemu.ending import Ending
from perfemu.errors import EventSyntaxError, PerfemuError, UsageError
from perfemu.events.attributes import DEFAULT_FREQUENCY_HZ, Sampling
from perfemu.functions import FunctionCounter
from perfemu.guest import Guest
from perfemu.interruption import Interrupted
from perfemu.moments import When, read_delay, read_span
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
)
from perfemu.results import Interval, NamedCounts, Recording, RunResult, StatResult, samples
from perfemu.sample_table import SampleTable
from perfemu.scope import of_ids, scope_of_cpus, scope_of_stat
from perfemu.session import Session
from perfemu.streams import Streams
from perfemu.symbols.finder import build_id_of
from pmu.live.access import AccessError
from pmu.live.live_pmu import LivePmu, RegisterValue, open_pmu
from pmu.live.sharing import share_pmu

__all__ = [
    "AccessError",
    "AnnotatedFunction",
    "AnnotatedInstruction",
    "EventReport",
    "EventSyntaxError",
    "Guest",
    "Interval",
    "LivePmu",
    "NamedCounts",
    "PerfemuError",
    "Recording",
    "RegisterValue",
    "ReportResult",
    "ReportRow",
    "RunResult",
    "SampleTable",
    "StatResult",
    "UsageError",
    "annotate",
    "open_pmu",
    "record",
    "report",
    "run",
    "samples",
    "share_pmu",
    "stat",
]


def run(
    guest: Guest | Sequence[str | os.PathLike[str]],
    *,
    input: bytes | None = None,
    capture: bool = False,
    **options: Any,
) -> RunResult:
    """Run a program, a Guest or its arguments alone, to its end. `options` are Guest's: run(["./prog"], core="zen5").

    `input` is its standard input (yours, if not given). With `capture` its output is in the result, not on your
    terminal. Raises PerfemuError if the program cannot be started, UsageError for what cannot be.
    """
    guest = Guest.of(guest, **options)
    with Streams(input, capture) as streams:
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
    per_socket: bool = False,
    per_die: bool = False,
    per_core: bool = False,
    per_thread: bool = False,
    functions: bool = False,
    from_symbol: str | None = None,
    to_symbol: str | None = None,
    marker: int | Literal["any"] | None = None,
    pids: Sequence[int] = (),
    tids: Sequence[int] = (),
    delay: str | None = None,
    interval: str | None = None,
    input: bytes | None = None,
    capture: bool = False,
    **options: Any,
) -> StatResult:
    """Run a program and count `events`, written as for ``perfemu stat -e``; None: those that it counts by itself.

    `repeat` and `functions` are -r and --functions, `all_cpus`, `cpu_list`, `per_cpu`, `per_socket`, `per_die`,
    `per_core` and `per_thread` -a, -C, -A, --per-socket, --per-die, --per-core and --per-thread, `from_symbol`,
    `to_symbol` and `marker` --from-symbol, --to-symbol and --marker, `pids` and `tids` -p and -t, `delay` and
    `interval` -D and -I: "20us", "1000000i". Raises EventSyntaxError for an unknown event. For the rest see `run`.
    """
    if repeat < 1:
        raise ValueError(f"repeat={repeat}: at least one run")
    if interval is not None and repeat > 1:
        raise ValueError("interval, repeat: intervals are of one run")
    intervals: list[Interval] = []
    when = When(
        None if delay is None else read_delay(delay),
        None if interval is None else read_span(interval),
    )
    guest = Guest.of(guest, **options)
    parts = {"per_socket": per_socket, "per_die": per_die, "per_core": per_core}
    scope = scope_of_stat(all_cpus, cpu_list, per_cpu, per_thread, guest.cpus, **parts)
    scope = of_ids(within(scope, from_symbol, to_symbol, marker), pids, tids)
    with Streams(input, capture) as streams:
        counted = count(
            streams.connect(guest),
            partial(default_events, scope=scope) if events is None else events,
            runs=repeat,
            scope=scope,
            after_run=lambda _: streams.rewind(),
            attach=FunctionCounter if functions else None,
            when=when,
            on_interval=None if interval is None else lambda ns, counts: intervals.append(Interval(counts, ns)),
        )
        stdout, stderr = streams.output()
    ending = _ended(counted.ending, counted.interrupted_by)
    return StatResult(
        counted.counts, ending.exit_status, ending.signal, stdout, stderr, counted.measured, tuple(intervals)
    )


def record(
    guest: Guest | Sequence[str | os.PathLike[str]],
    events: Sequence[str] = DEFAULT_RECORDED,
    *,
    output: str | os.PathLike[str] = "perf.data",
    period: int | None = None,
    frequency_hz: int = DEFAULT_FREQUENCY_HZ,
    callchains: bool | Literal["exact", "fp"] = False,
    exact: bool = False,
    all_cpus: bool = False,
    cpu_list: str | None = None,
    from_symbol: str | None = None,
    to_symbol: str | None = None,
    marker: int | Literal["any"] | None = None,
    pids: Sequence[int] = (),
    tids: Sequence[int] = (),
    delay: str | None = None,
    input: bytes | None = None,
    capture: bool = False,
    **options: Any,
) -> Recording:
    """Run a program and write its profile to `output`, a perf.data file.

    There is a sample every `period` events, or else `frequency_hz` in a second; with `exact` one for each instruction,
    whose period is how many events it made: the sum is the count. `callchains` is --call-graph (True is "exact").
    `all_cpus` and `cpu_list` are -a and -C; `from_symbol`, `to_symbol`, `marker`, `pids`, `tids`, `delay` and the rest
    are as for `stat` and `run`.
    """
    guest = Guest.of(guest, **options)
    sampling = Sampling(
        None if period is not None else frequency_hz,
        period,
        callchains=bool(callchains),
        exact_callchains=callchains in (True, "exact"),
    )
    scope = within(scope_of_cpus(all_cpus, cpu_list, guest.cpus), from_symbol, to_symbol, marker)
    path = os.fspath(output)
    with Streams(input, capture) as streams:
        recorded = record_to_file(
            Session(streams.connect(guest)),
            events,
            sampling,
            path,
            command_line=("perfemu", "record", *guest.command),
            build_id_of=build_id_of,
            scope=of_ids(scope, pids, tids),
            when=When(None if delay is None else read_delay(delay)),
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
