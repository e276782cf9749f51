"""Metric-only: perf stat's ``--metric-only`` output: a column for each metric, a line for each CPU or thread; as
print_metric_only() and print_metric_header() of tools/perf/util/stat-display.c.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from perfemu.scope import Split
from perfemu.statistics.counts import Counts, Label
from perfemu.statistics.metrics import Metric, metrics_of
from perfemu.statistics.text import cgroup_column, heading, times
from perfemu.visible import visible

COLUMN_WIDTH = 20  # at least
_HEADINGS = {
    Split.CPUS: ("cpu",),
    Split.SOCKETS: ("socket", "cpus"),
    Split.DIES: ("die", "cpus"),
    Split.CORES: ("core", "cpus"),
    Split.THREADS: ("thread",),
}
_TIME = "#           time "
_RATES = ("/sec", "CPUs utilized")  # which are no metrics


def metrics_alone(
    counts: Counts, separator: str | None, *, as_json: bool, interval: str = "", headed: bool = True
) -> str:
    """As text, or the rows alone by `separator` or in JSON. `interval`: when it ended, if it is one; then only
    `headed` ones have names above them."""
    rows = [
        (("" if label is None else label.text) + cgroup_column(cgroup), _Whose.of(label, cgroup), _columns(among))
        for label, cgroup, among in counts.wholes()
    ]
    if as_json:
        return "".join(
            _object([*whose.json, *((name, _bare(metric)) for name, metric in columns)], interval)
            for _, whose, columns in rows
        )
    if separator is not None:
        time = (["time"], [interval]) if interval else ([], [])
        names = _names(columns for _, _, columns in rows)
        lines = [[*time[0], *whose.heading, *dict.fromkeys(names)] for _, whose, _ in (rows[:1] if headed else ())]
        lines += [
            [*time[1], *whose.fields, *("" if metric is None else _bare(metric) for metric in _below(names, columns))]
            for _, whose, columns in rows
        ]
        return "".join(separator.join([*line, ""]) + "\n" for line in lines)
    shown = [(text, columns) for text, _, columns in rows]
    if interval:
        return "".join(f"{line}\n" for line in _rows(shown, headed, interval))
    return "".join(f"{line}\n" for line in (*heading(counts), *_rows(shown), "", *times(counts)))


class _Whose(NamedTuple):
    """Of what CPU, thread or control group a row is."""

    heading: tuple[str, ...]
    fields: tuple[str, ...]
    json: tuple[tuple[str, str | int], ...]

    @classmethod
    def of(cls, label: Label | None, cgroup: str | None) -> _Whose:
        names = () if cgroup is None else (visible(cgroup),)
        return cls(
            (*(_HEADINGS[label.kind] if label else ()), *(("cgroup",) if names else ())),
            (*(label.fields if label else ()), *names),
            (*(label.json if label else ()), *(("cgroup", name) for name in names)),
        )


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
    names = _names(columns for _, columns in rows)
    if headed:
        yield above + " " * indent + "".join(f"{name:>{COLUMN_WIDTH}} " for name in names)
    for text, columns in rows:
        values = (
            f"{metric.format % metric.value if metric else '':>{max(COLUMN_WIDTH, len(name))}} "
            for name, metric in zip(names, _below(names, columns), strict=True)
        )
        yield f"{time}{text:<{indent}}" + "".join(values)


def _names(rows: Iterable[list[tuple[str, Metric]]]) -> list[str]:
    """Above the columns: where something was not counted, a row has less of them than others."""
    return [name for name, _ in max(rows, key=len, default=[])]


def _below(names: list[str], columns: list[tuple[str, Metric]]) -> list[Metric | None]:
    if len(columns) == len(names):
        return [metric for _, metric in columns]
    by_name = dict(columns)
    return [by_name.get(name) for name in names]


def _bare(metric: Metric) -> str:
    return (metric.format % metric.value).strip(" %")


def _object(fields: list[tuple[str, str | int]], interval: str) -> str:
    first = [f'"interval" : {interval.lstrip()}'] if interval else []
    rest = (f"{json.dumps(key)} : {json.dumps(value)}" for key, value in fields)
    return "{" + ", ".join([*first, *rest]) + "}\n"
