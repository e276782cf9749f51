"""functions: what stat --functions prints: exact counts by function."""

from __future__ import annotations

import json

from perfemu.comparing.measured import Measured
from perfemu.visible import visible

MOST_ROWS = 20  # of each event, as text


def function_lines(measured: Measured, big_numbers: bool = True) -> str:
    """The functions of each event that have most of it, as a table each."""
    lines: list[str] = []
    for event in measured.events.values():
        if not event.has_functions:
            continue
        rows = sorted(event.functions.items(), key=lambda row: (-row[1], row[0]))
        lines += ["", f" {visible(event.name)} by function:", ""]
        for function, count in rows[:MOST_ROWS]:
            number = f"{count:,}" if big_numbers else str(count)
            percent = 100 * count / event.total if event.total else 0
            lines.append(f"{number:>18}  {percent:6.2f}%  {visible(function.name)}  {visible(function.module)}")
        if len(rows) > MOST_ROWS:
            lines.append(f"{'':>18}           and {len(rows) - MOST_ROWS} more")
    return "".join(f"{line}\n" for line in (*lines, "") if lines)


def function_objects(measured: Measured) -> str:
    """A JSON object for each function of each event, after perf's keys; their counts add up to the event's."""
    return "".join(
        json.dumps(
            {
                "counter-value": f"{count:.6f}",
                "event": event.name,
                "function": function.name,
                "module": function.module,
            }
        )
        + "\n"
        for event in measured.events.values()
        if event.has_functions
        for function, count in sorted(event.functions.items())
    )
