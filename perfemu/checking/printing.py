"""printing: verdicts as text, Markdown, GitHub annotations and JUnit's XML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from perfemu.checking.verdict import EventVerdict, Outcome, Verdict
from perfemu.comparing.difference import Change
from perfemu.visible import visible

MOST_FUNCTIONS = 10  # that changed, of an event that failed


def text(verdicts: Sequence[Verdict]) -> str:
    """A table, below each failure the functions that changed, and a line that sums it up."""
    rows = [(verdict, event, _cells(event)) for verdict in verdicts for event in verdict.events]
    titles = ("benchmark", "event", "baseline", "now", "difference", "%", "outcome")
    names = [(visible(verdict.name), visible(event.event)) for verdict, event, _ in rows]
    lines = []
    cells = [(*name, *row[2]) for name, row in zip(names, rows, strict=True)]
    widths = [max([len(titles[i]), *(len(row[i]) for row in cells)]) for i in range(len(titles))]
    if cells:
        lines.append(_line(titles, widths))
    for verdict in verdicts:
        if verdict.broken:
            lines.append(f"{visible(verdict.name)}: {visible(verdict.why)}")
        for event in verdict.events:
            lines.append(_line((visible(verdict.name), visible(event.event), *_cells(event)), widths))
            lines += [f"    {change}" for change in changed_functions(event)] if event.outcome is Outcome.FAILED else []
        if verdict.why and not verdict.broken:
            lines.append(f"    {visible(verdict.why)}")
    lines.append(summary(verdicts))
    return "".join(f"{line.rstrip()}\n" for line in lines)


def summary(verdicts: Sequence[Verdict]) -> str:
    """How many there are of each outcome, the worst first."""
    counts = {outcome: sum(verdict.outcome is outcome for verdict in verdicts) for outcome in reversed(Outcome)}
    told = ", ".join(f"{count} {outcome.value}" for outcome, count in counts.items() if count)
    return f"{len(verdicts)} benchmark{'s' if len(verdicts) != 1 else ''}: {told}"


def changed_functions(event: EventVerdict, most: int = MOST_FUNCTIONS) -> list[str]:
    """Lines for those that changed most, and how many more there are."""
    rows = [row for row in event.difference.functions if row.difference] if event.difference is not None else []
    shown = rows[:most]
    width = max((len(f"{row.difference:+,}") for row in shown), default=0)
    lines = [f"{row.difference:>+{width},}  {_function(row)}" for row in shown]
    return lines + ([f"and {len(rows) - most} more functions"] if len(rows) > most else [])


def _function(row: Change) -> str:
    note = f"  ({visible(row.note)})" if row.note else ""
    return f"{visible(row.name)}  {visible(row.module)}{note}"


def _cells(event: EventVerdict) -> tuple[str, str, str, str, str]:
    if event.difference is None:
        return "-", f"{event.now:,}", "", "", event.outcome.value
    total = event.difference.total
    percent = f"{total.percent:+.2f}%" if total.percent else ""
    told = event.outcome.value
    if event.outcome is Outcome.FAILED:
        told += f" (more than {event.tolerance})"
    return f"{total.old:,}", f"{total.new:,}", f"{total.difference:+,}" if total.difference else "0", percent, told


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    names = (cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True))
    numbers = (cell.rjust(width) for cell, width in zip(cells[2:-1], widths[2:-1], strict=True))
    return "  ".join((*names, *numbers, cells[-1]))


def markdown(verdicts: Sequence[Verdict]) -> str:
    """For a comment on a pull request."""
    lines = [f"**perfemu check**: {summary(verdicts)}", ""]
    lines += ["| benchmark | event | baseline | now | difference | % | |", "|---|---|--:|--:|--:|--:|---|"]
    for verdict in verdicts:
        if verdict.broken:
            lines.append(f"| {_cell(verdict.name)} | | | | | | {Outcome.BROKEN.value}: {_cell(verdict.why)} |")
        for event in verdict.events:
            row = (_cell(verdict.name), _cell(event.event), *map(_cell, _cells(event)))
            lines.append(f"| {' | '.join(row)} |")
    for verdict, event in _failed(verdicts):
        lines += ["", f"`{_cell(verdict.name)}`, {_cell(event.event)}:", "", "```"]
        lines += [*changed_functions(event), "```"]
    return "".join(f"{line}\n" for line in lines)


def _cell(text: str) -> str:
    return visible(text).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")


def _failed(verdicts: Sequence[Verdict]) -> Iterator[tuple[Verdict, EventVerdict]]:
    return ((verdict, event) for verdict in verdicts for event in verdict.events if event.outcome is Outcome.FAILED)


def github_annotations(verdicts: Sequence[Verdict], file: str) -> str:
    """GitHub's workflow commands, one for each benchmark that failed, at the file that names it."""
    lines = []
    for verdict in verdicts:
        if verdict.outcome.is_failure:
            title = _property(f"perfemu check: {verdict.name}")
            lines.append(f"::error file={_property(file)},title={title}::{_data(_message(verdict))}\n")
    return "".join(lines)


def _message(verdict: Verdict) -> str:
    """Why it failed, in several lines."""
    lines = [visible(verdict.why)] if verdict.why else []
    for event in verdict.events:
        if event.outcome.is_failure and event.difference is not None:
            old, new, difference, percent, told = _cells(event)
            lines.append(f"{event.event}: {old} -> {new}, {difference} {percent}: {told}")
            lines += changed_functions(event)
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(visible(text)).replace(":", "%3A").replace(",", "%2C")


def junit(verdicts: Sequence[Verdict]) -> str:
    """A test suite, a case for each benchmark. Without times: those of the host would be another in each run."""
    failed = [verdict for verdict in verdicts if verdict.outcome.is_failure]
    broken = [verdict for verdict in failed if verdict.broken]
    suite = ElementTree.Element(
        "testsuite",
        name="perfemu check",
        tests=str(len(verdicts)),
        failures=str(len(failed) - len(broken)),
        errors=str(len(broken)),
    )
    for verdict in verdicts:
        case = ElementTree.SubElement(suite, "testcase", classname="perfemu.check", name=visible(verdict.name))
        if verdict.outcome.is_failure:
            kind = "error" if verdict.broken else "failure"
            message = _message(verdict)
            ElementTree.SubElement(case, kind, message=message.partition("\n")[0]).text = message
        else:
            told = "\n".join(f"{event.event}: {event.now:,} ({event.outcome.value})" for event in verdict.events)
            ElementTree.SubElement(case, "system-out").text = told
    ElementTree.indent(suite, " ")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suite, "unicode")}\n'
