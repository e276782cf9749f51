"""Text: perf stat's own layout; as tools/perf/util/stat-display.c.

Two things differ. Thousands are grouped by commas whatever the locale, because the output must not depend on the host.
With repeated runs every line shows its deviation, also where it is 0.00%: identical runs are what one hopes to see.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from perfemu.run_times import RunTimes
from perfemu.statistics.counts import Count, Counts
from perfemu.statistics.metrics import metrics_of
from perfemu.visible import visible

VALUE_WIDTH = 18
UNIT_WIDTH = 4  # at least
NAME_WIDTH = 32
ABSENT_NAME_WIDTH = 25  # of an event without a number
CGROUP_WIDTH = 16
METRIC_WIDTH = 35
FURTHER_METRIC_INDENT = 49  # perf kept it when it widened the names
_TIME_DIGITS = 9  # of a second


def text_report(counts: Counts, grouping: bool = True) -> str:
    """The whole report, with the empty lines before and after it."""
    return "".join(f"{line}\n" for line in _lines(counts, grouping))


def heading(counts: Counts) -> Iterator[str]:
    runs = len(counts.runs)
    note = f"core {counts.core}" + (f", {runs} runs" if runs > 1 else "")
    yield ""
    whose = counts.of_ids or f"'{visible(counts.command)}'"
    yield f" Performance counter stats for {whose} ({note}):"
    yield ""


def times(counts: Counts) -> Iterator[str]:
    if len(counts.runs) == 1:
        yield from _time_lines(counts.runs[0], counts.system_wide)
    else:
        yield from _elapsed_lines(counts)
    yield ""


def _lines(counts: Counts, grouping: bool) -> Iterator[str]:
    yield from heading(counts)
    yield from event_lines(counts, grouping)
    if counts.events:
        yield ""
    yield from times(counts)


def unit_width(counts: Counts) -> int:
    """Of the column."""
    return max((UNIT_WIDTH, *(len(count.spec.unit) for count in counts)))


def event_lines(counts: Counts, grouping: bool) -> Iterator[str]:
    """Of each event, and each CPU or thread."""
    width = unit_width(counts)
    for label, among, count in counts.shown():
        before, *further = _event_lines(among, count, width, grouping)
        yield (label.text if label else "") + before
        for line in further:
            yield (label.further if label else "") + line


def _event_lines(counts: Counts, count: Count, unit_width: int, grouping: bool) -> Iterator[str]:
    unit = f"{count.spec.unit:<{unit_width}} "
    noise = f"  ( +-{count.spread.percent:6.2f}% )" if len(counts.runs) > 1 and count.readings else ""
    running = f"  ({count.running_percent:.2f}%)" if count.running_ns != count.enabled_ns else ""
    cgroup = cgroup_column(count.spec.cgroup)
    if count.absence is not None:
        metric = " " * METRIC_WIDTH
        width = NAME_WIDTH if cgroup else ABSENT_NAME_WIDTH
        yield f"{count.absence.value:>{VALUE_WIDTH}} {unit}{count.name:<{width}}{cgroup}{metric}{running}"
        return
    lead = f"{_value(count, grouping):>{VALUE_WIDTH}} {unit}{count.name:<{NAME_WIDTH}}{cgroup}"
    first, *others = [f" # {metric.text}" for metric in metrics_of(counts, count)] or [""]
    yield f"{lead}{first:<{METRIC_WIDTH}}{noise}{running}"
    for other in others:
        yield " " * (FURTHER_METRIC_INDENT + len(cgroup)) + f"{other:<{METRIC_WIDTH}}"


def cgroup_column(cgroup: str | None) -> str:
    """As perf 6.12's, behind the event's name; none where nobody has asked for groups."""
    return "" if cgroup is None else f" {visible(cgroup):<{CGROUP_WIDTH}}"


def _value(count: Count, grouping: bool) -> str:
    """Clocks in their unit with two decimals; counts whole."""
    digits = 2 if count.spec.scale != 1.0 else 0
    value = count.spread.mean * count.spec.scale
    return f"{value:,.{digits}f}" if grouping else f"{value:.{digits}f}"


def _time_lines(run: RunTimes, system_wide: bool) -> Iterator[str]:
    yield f" {run.elapsed_ns / 1e9:17.{_TIME_DIGITS}f} seconds time elapsed"
    yield ""
    if system_wide:
        return
    yield f" {run.user_ns / 1e9:17.{_TIME_DIGITS}f} seconds user"
    yield f" {run.system_ns / 1e9:17.{_TIME_DIGITS}f} seconds sys"
    yield ""


def _elapsed_lines(counts: Counts) -> Iterator[str]:
    """Two digits more than the deviation has, as perf does."""
    mean, deviation = counts.elapsed.mean / 1e9, counts.elapsed.deviation / 1e9
    digits = _TIME_DIGITS if not deviation else 2 + (0 if deviation > 1 else math.ceil(-math.log10(deviation)))
    noise = f"  ( +-{counts.elapsed.percent:6.2f}% )"
    yield f" {mean:17.{digits}f} +- {deviation:.{digits}f} seconds time elapsed{noise}"
