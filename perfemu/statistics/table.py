"""Tables for people whose test fails: what was counted in a line an event, and where two results differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perfemu.statistics.counts import Counts
from perfemu.visible import visible


def table(counts: Counts) -> str:
    """The program, and every event with its count: the kernel's numbers, so ns for clocks."""
    rows = [(count.value_text, count.name) for count in counts]
    width = max((len(value) for value, _ in rows), default=0)
    title = f"{visible(counts.command)} (core {counts.core})"
    return "\n".join([title, *(f"  {value:>{width}}  {name}" for value, name in rows)])


def comparison(left: Iterable[tuple[str, str]], right: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The rows (what, its value) that are not the same on both sides, and how many are."""
    ours, theirs = dict(left), dict(right)
    rows = [(name, ours.get(name, "-"), theirs.get(name, "-")) for name in {**ours, **theirs}]
    different = [row for row in rows if row[1] != row[2]]
    widths = [max((len(row[column]) for row in different), default=0) for column in range(3)]
    for name, one, other in different:
        yield f"{name:<{widths[0]}}  {one:>{widths[1]}} != {other:>{widths[2]}}"
    if len(rows) > len(different):
        yield f"the same in both: {len(rows) - len(different)} more"


def compared_rows(counts: Counts) -> Iterator[tuple[str, str]]:
    """The first of two events with one name stands for both, as where a result is asked for it."""
    named: dict[str, str] = {}
    for count in counts:
        named.setdefault(count.name, count.value_text)
    yield from named.items()
    yield "elapsed ns", f"{counts.elapsed.mean:,.0f}"
    yield "program", visible(counts.command)
    yield "core", counts.core
