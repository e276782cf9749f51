"""Metric-only: perf stat's ``--metric-only`` output: a column for each metric, a line for each CPU or thread; as
print_metric_only() and print_metric_header() of tools/perf/util/stat-display.c.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from perfemu.scope import Split
from perfemu.statistics.counts import Counts
from perfemu.statistics.metrics import Metric, metrics_of
from perfemu.statistics.text import heading, times

COLUMN_WIDTH = 20  # at least
_HEADINGS = {Split.CPUS: ("cpu",), Split.SOCKETS: ("socket", "cpus"), Split.THREADS: ("thread",)}
_TIME = "#           time "
_RATES = ("/sec", "CPUs utilized")  # which are no metrics


def metrics_alone(
    counts: Counts, separator: str | None, *, as_json: bool, interval: str = "", headed: bool = True
) -> str:
    """As text, or the rows alone by `separator` or in JSON. `interval`: when it ended, if it is one; then only
    `headed` ones have names above them."""
    rows = [("" if label is None else label.text, label, _columns(among)) for label, among in counts.wholes()]
    if as_json:
        return "".join(
            _object([*(label.json if label else ()), *((name, _bare(metric)) for name, metric in columns)], interval)
            for _, label, columns in rows
        )
    if separator is not None:
        time = (["time"], [interval]) if interval else ([], [])
        lines = [
            [*time[0], *(_HEADINGS[label.kind] if label else ()), *dict(columns)]
            for _, label, columns in (rows[:1] if headed else ())
        ]
        lines += [
            [*time[1], *(label.fields if label else ()), *(_bare(metric) for _, metric in columns)]
            for _, label, columns in rows
        ]
        return "".join(separator.join([*line, ""]) + "\n" for line in lines)
    shown = [(text, columns) for text, _, columns in rows]
    if interval:
        return "".join(f"{line}\n" for line in _rows(shown, headed, interval))
    return "".join(f"{line}\n" for line in (*heading(counts), *_rows(shown), "", *times(counts)))


def _columns(counts: Counts) -> list[tuple[str, Metric]]:
    """Each metric under its name; shares of other events under theirs: fixunit()."""
    return [
        (f"{count.name} {metric.unit}" if metric.unit.startswith("of all") else metric.unit, metric)
        for count in counts
        for metric in metrics_of(counts, count)
        if not any(rate in metric.unit for rate in _RATES)
    ]


def _rows(rows: list[tuple[str, list[tuple[str, Metric]]]], headed: bool = True, interval: str = "") -> Iterator[str]:
    indent = max((len(text) for text, _ in rows), default=0)
    time, above = (f"{interval} ", _TIME) if interval else ("", "")
    for number, (text, columns) in enumerate(rows):
        if headed and not number:
            yield above + " " * indent + "".join(f"{name:>{COLUMN_WIDTH}} " for name, _ in columns)
        values = (f"{metric.format % metric.value:>{max(COLUMN_WIDTH, len(name))}} " for name, metric in columns)
        yield f"{time}{text:<{indent}}" + "".join(values)


def _bare(metric: Metric) -> str:
    return (metric.format % metric.value).strip(" %")


def _object(fields: list[tuple[str, str | int]], interval: str) -> str:
    first = [f'"interval" : {interval.lstrip()}'] if interval else []
    rest = (f"{json.dumps(key)} : {json.dumps(value)}" for key, value in fields)
    return "{" + ", ".join([*first, *rest]) + "}\n"
