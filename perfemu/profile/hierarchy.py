"""hierarchy: the rows of a table below one another: of each sort key within those before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perfemu.profile.histogram import Entry, Histogram
from perfemu.profile.keys import SortKey


@dataclass(frozen=True, slots=True)
class Node:
    """A row of one key; `entry` has the sums of all below, and a call tree if nothing is below."""

    depth: int
    key: SortKey
    entry: Entry
    below: tuple[Node, ...]  # heaviest first


def hierarchy(table: Histogram) -> tuple[Node, ...]:
    """The rows of the first key. The table is one without what functions have called."""
    return _nodes(table.entries, table.options.keys, len(table.events), 0)


def _nodes(entries: Iterable[Entry], keys: Sequence[SortKey], events: int, depth: int) -> tuple[Node, ...]:
    if depth == len(keys):
        return ()
    key = keys[depth]
    groups: dict[Any, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(key.identity(entry.row), []).append(entry)
    nodes = [_node(group, keys, events, depth) for group in groups.values()]
    nodes.sort(key=lambda node: ([-period for period in node.entry.periods], key.order(node.entry.row)))
    return tuple(nodes)


def _node(group: list[Entry], keys: Sequence[SortKey], events: int, depth: int) -> Node:
    below = _nodes(group, keys, events, depth + 1)
    if not below:
        (leaf,) = group
        return Node(depth, keys[depth], leaf, ())
    made = Entry(group[0].row, events)
    for entry in group:
        for number in range(events):
            made.periods[number] += entry.periods[number]
            made.totals[number] += entry.totals[number]
            made.samples[number] += entry.samples[number]
    return Node(depth, keys[depth], made, below)


def walk(nodes: Iterable[Node]) -> Iterator[Node]:
    """Each before what is below it."""
    for node in nodes:
        yield node
        yield from walk(node.below)
