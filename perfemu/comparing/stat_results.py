"""stat_results: what stat -j has written, perfemu's or perf's, as one side of a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from perfemu.comparing.measured import EventCounts, Function, Measured
from perfemu.errors import PerfemuError

# Printed with six decimals. Clocks are counted in ns, as in perf.data; of memory's traffic, lines of 64 bytes.
_SCALES = {"msec": 1_000_000, "MiB": (1 << 20) // 64}


def measured_of_stat(name: str, text: str) -> Measured:
    """PerfemuError names the line that is none of stat's."""
    measured = Measured(name, {})
    for row in _rows(name, text):
        event = measured.events.setdefault(row.event, EventCounts(row.event, 0, exact=True))
        if row.function is None:
            event.total += row.amount
        else:
            event.functions[row.function] += row.amount
    if not measured.events:
        raise PerfemuError(f"{name}: no event was counted")
    return measured


class _Row(NamedTuple):
    event: str  # without modifiers
    amount: int
    function: Function | None  # None: the event's total, or a CPU's or thread's part of it


def _rows(name: str, text: str) -> Iterator[_Row]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            row = json.loads(line)
            event, value = row.get("event"), row.get("counter-value")
        except (ValueError, AttributeError):
            raise PerfemuError(f"{name}: line {number} is no object of stat -j") from None
        if event is None or value is None or str(value).startswith("<"):
            continue  # a further metric, or not counted
        try:
            function = Function(str(row["module"]), str(row["function"])) if "function" in row else None
            amount = round(float(value) * _SCALES.get(row.get("unit"), 1))
            yield _Row(str(event).partition(":")[0], amount, function)
        except KeyError:
            raise PerfemuError(f"{name}: line {number}: a function without its module") from None
        except ValueError:
            raise PerfemuError(f"{name}: line {number}: counter-value {value!r} is no number") from None
