"""Separated: perf stat's ``-x`` output: value, unit, event[, deviation], running time, percent, metric, its unit."""

from __future__ import annotations

from collections.abc import Iterator

from perfemu.statistics.counts import Count, Counts
from perfemu.statistics.metrics import metrics_of
from perfemu.visible import visible

SUMMARY = f"{'summary':>16}"  # the first field of lines that sum up intervals
_EMPTY_BEFORE_FURTHER_METRICS = 4  # perf does not count the fields of the line above


def separated_report(counts: Counts, separator: str, first: str = "") -> str:
    """One line per event, and one per further metric; `first`: a field before all others."""
    lead = f"{first}{separator}" if first else ""
    return "".join(f"{lead}{separator.join(fields)}\n" for fields in _rows(counts))


def _rows(counts: Counts) -> Iterator[list[str]]:
    for label, among, count in counts.shown():
        whose = [*label.fields] if label else []
        noise = [f"{count.spread.percent:.2f}%"] if len(counts.runs) > 1 and count.readings else []
        cgroup = [] if count.spec.cgroup is None else [visible(count.spec.cgroup)]
        unit = count.spec.unit if count.absence is None else ""
        lead = [*whose, _value(count), unit, count.name, *cgroup, *noise]
        lead += [f"{count.running_ns:.0f}", f"{count.running_percent:.2f}"]
        metrics = [
            [(metric.format % metric.value).strip(" %"), metric.unit] for metric in metrics_of(among, count)
        ] or [["", ""]]
        yield lead + metrics[0]
        for further in metrics[1:]:
            yield whose + [""] * _EMPTY_BEFORE_FURTHER_METRICS + further


def _value(count: Count) -> str:
    if count.absence is not None:
        return count.absence.value
    return f"{count.spread.mean * count.spec.scale:.{2 if count.spec.scale != 1.0 else 0}f}"
