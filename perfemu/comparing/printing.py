"""printing: a Difference as text, Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from perfemu.comparing.difference import Change, Difference, EventDifference
from perfemu.visible import visible

_COLUMNS = ("old", "new", "difference", "%")


@dataclass(frozen=True, slots=True)
class Shown:
    """How much is printed."""

    rows: int = 20  # of a table, at most
    lines: bool = True
    unchanged: bool = False  # rows, too


@dataclass(frozen=True, slots=True)
class _Table:
    title: str
    rows: Sequence[Change]
    changed: int  # of them, before they were cut


def _tables(event: EventDifference, shown: Shown) -> Iterable[_Table]:
    kinds = [("modules", event.modules), ("functions", event.functions)]
    if shown.lines:
        kinds.append(("lines", event.lines))
    for title, rows in kinds:
        wanted = list(rows) if shown.unchanged else event.changed(rows)
        if wanted:
            yield _Table(title, wanted[: shown.rows], len(wanted))


def _numbers(row: Change) -> tuple[str, str, str, str]:
    percent = f"{row.percent:+.2f}%" if row.percent else ""
    return _count(row.old), _count(row.new), f"{row.difference:+,}" if row.difference else "0", percent


def _count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _label(row: Change) -> str:
    where = f"  {visible(row.module)}" if row.module else ""
    note = f"  ({visible(row.note)})" if row.note else ""
    return f"{visible(row.name)}{where}{note}"


def text(difference: Difference, shown: Shown) -> str:
    """For people."""
    lines = [f"# old: {visible(difference.old)}", f"# new: {visible(difference.new)}"]
    lines += [f"# {visible(remark)}" for remark in difference.remarks]
    for event in difference.events:
        tables = list(_tables(event, shown))
        cells = [_numbers(row) for row in (event.total, *(row for table in tables for row in table.rows))]
        widths = [max(len(title), *(len(row[i]) for row in cells)) for i, title in enumerate(_COLUMNS)]
        head = "  ".join(title.rjust(width) for title, width in zip(_COLUMNS, widths, strict=True))
        lines += ["", f"{head}  {visible(event.name)}", _line(event.total, widths, "total")]
        for table in tables:
            lines += ["", f"{' ' * len(head)}  {table.title}"]
            lines += [_line(row, widths, _label(row)) for row in table.rows]
            if table.changed > len(table.rows):
                lines.append(f"{' ' * len(head)}  and {table.changed - len(table.rows)} more")
    return "".join(f"{line}\n" for line in lines)


def _line(row: Change, widths: Sequence[int], label: str) -> str:
    numbers = "  ".join(cell.rjust(width) for cell, width in zip(_numbers(row), widths, strict=True))
    return f"{numbers}  {label}"


def markdown(difference: Difference, shown: Shown) -> str:
    """For a pull request."""
    lines = [f"`{_code(difference.old)}` → `{_code(difference.new)}`"]
    lines += [f"\n> {_code(remark)}" for remark in difference.remarks]
    for event in difference.events:
        lines += ["", f"**{_code(event.name)}**", "", "| | old | new | difference | % |", "|---|--:|--:|--:|--:|"]
        lines.append(_markdown_row("total", event.total))
        for table in _tables(event, shown):
            kind = table.title[:-1]
            lines += [_markdown_row(f"{kind} `{_code(_label(row))}`", row) for row in table.rows]
            if table.changed > len(table.rows):
                lines.append(f"| and {table.changed - len(table.rows)} more {table.title} | | | | |")
    return "".join(f"{line}\n" for line in lines)


def _markdown_row(label: str, row: Change) -> str:
    return f"| {label} | {' | '.join(_numbers(row))} |"


def _code(text: str) -> str:
    """Fit for a cell, within backticks."""
    return visible(text).replace("`", "'").replace("|", "\\|")


def document(difference: Difference) -> str:
    """All of it, for programs: every row, exact numbers."""
    events = [
        {
            "event": event.name,
            "exact": event.exact,
            "total": _row(event.total),
            "modules": [_row(row) for row in event.modules],
            "functions": [_row(row) for row in event.functions],
            "lines": [_row(row) for row in event.lines],
        }
        for event in difference.events
    ]
    whole = {"old": difference.old, "new": difference.new, "remarks": list(difference.remarks), "events": events}
    return json.dumps(whole, indent=1) + "\n"


def _row(row: Change) -> dict[str, Any]:
    made: dict[str, Any] = {"name": row.name}
    if row.module:
        made["module"] = row.module
    made |= {"old": row.old, "new": row.new, "difference": row.difference}
    if row.old_name:
        made["old_name"] = row.old_name
    return made
