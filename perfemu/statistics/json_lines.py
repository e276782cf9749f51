"""JSON lines: perf stat's ``-j`` output, one object per event in perf's order of keys and number formats.

Where there is no metric perf 6.1 prints a zero with a unit that may be "(null)"; here the unit is then empty.
"""

from __future__ import annotations

import json

from perfemu.statistics.counts import Count, Counts, Label
from perfemu.statistics.metrics import metrics_of


def json_report(counts: Counts, interval: str = "") -> str:
    """One line per event; further metrics follow as objects of their own. `interval`: when it ended, if it is one."""
    first = [("interval", interval)] if interval else []
    return "".join(f"{line}\n" for shown in counts.shown() for line in _lines(first, *shown))


def _lines(first: list[tuple[str, str]], label: Label | None, counts: Counts, count: Count) -> list[str]:
    present = count.absence is None
    value = f"{count.spread.mean * count.spec.scale:.6f}" if count.absence is None else count.absence.value
    whose = [*first, *((key, json.dumps(value)) for key, value in (label.json if label else ()))]
    fields = [
        *whose,
        ("counter-value", json.dumps(value)),
        ("unit", json.dumps(count.spec.unit if present else "")),
        ("event", json.dumps(count.name)),
    ]
    if count.spec.cgroup is not None:
        fields.append(("cgroup", json.dumps(count.spec.cgroup)))
    if len(counts.runs) > 1 and count.readings:
        fields.append(("variance", f"{count.spread.percent:.2f}"))
    fields += [("event-runtime", f"{count.running_ns:.0f}"), ("pcnt-running", f"{count.running_percent:.2f}")]
    metrics = [
        [("metric-value", f"{metric.value:.6f}"), ("metric-unit", json.dumps(metric.unit))]
        for metric in metrics_of(counts, count)
    ] or [[("metric-value", "0.000000"), ("metric-unit", '""')]]
    return [_object(fields + metrics[0]), *(_object(whose + further) for further in metrics[1:])]


def _object(fields: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{key}" : {value}' for key, value in fields) + "}"
