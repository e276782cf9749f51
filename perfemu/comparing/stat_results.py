"""stat_results: what stat -j has written, perfemu's or perf's, as one side of a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator

from perfemu.comparing.measured import Measured, Total, measured_of_totals
from perfemu.errors import PerfemuError


def measured_of_stat(name: str, text: str) -> Measured:
    """PerfemuError names the line that is none of stat's."""
    measured = measured_of_totals(name, _totals(name, text))
    if not measured.events:
        raise PerfemuError(f"{name}: no event was counted")
    return measured


def _totals(name: str, text: str) -> Iterator[Total]:
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
            yield Total(str(event), round(float(value)))
        except ValueError:
            raise PerfemuError(f"{name}: line {number}: counter-value {value!r} is no number") from None
