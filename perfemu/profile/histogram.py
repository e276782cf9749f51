"""Histogram: the samples of one event, or of one group of events, as a table of rows, the heaviest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perfemu.profile.call_tree import CallTree
from perfemu.profile.keys import Row, SortKey
from perfemu.profile.places import Place
from perfemu.profile.profile import EventProfile, ProfileSample, Weight
from perfemu.profile.selection import ALL, Selection

MAX_STACK = 127  # frames of a callchain that are looked at


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How a table is made."""

    keys: tuple[SortKey, ...]
    children: bool = False  # a row also has the weight of what it called
    call_trees: bool = False
    caller_first: bool = False  # the order of call trees: callers above callees
    heaviest_with_children: bool = True  # with `children`: rows are sorted by the weight with what they called
    selection: Selection = ALL  # of the samples
    relative: bool = False  # percentages are of the selection, and not of all samples


class Entry:
    """One row. The lists are by event of the group; `totals` are periods with those of what the row called."""

    __slots__ = ("periods", "row", "samples", "totals", "tree")

    def __init__(self, row: Row, events: int) -> None:
        self.row = row
        self.periods = [0] * events
        self.totals = [0] * events
        self.samples = [0] * events
        self.tree = CallTree()


class Histogram:
    """A table; `events` are those of one group, leader first. `group_name` is empty for a group without a name.

    `wholes` are what percentages are of, by event, and `sample_count` says in how many samples.
    """

    def __init__(self, events: Sequence[EventProfile], options: TableOptions, group_name: str = "") -> None:
        self.group_name = group_name
        self.events = tuple(events)
        self.options = options
        self._identities = tuple(key.identity for key in options.keys)
        self._entries: dict[tuple[Any, ...], Entry] = {}
        for number, event in enumerate(events):
            for sample, weight in options.selection.samples(event).items():
                self._add(sample, weight, number)
        self.entries = self._sorted()
        self.wholes = [event.period for event in self.events]
        self.sample_count = sum(event.sample_count for event in self.events)
        if options.relative:
            self.wholes = [sum(entry.periods[number] for entry in self.entries) for number in range(len(self.events))]
            self.sample_count = sum(sum(entry.samples) for entry in self.entries)

    @property
    def has_callchains(self) -> bool:
        return any(event.has_callchains for event in self.events)

    def widths(self) -> list[int]:
        """Of the keys' columns: the widest text or title. As in perf, chosen files get no room for unknown symbols."""
        widths = []
        for key in self.options.keys:
            rows = (entry.row for entry in self.entries)
            plain = key.width is None or (key.name == "dso" and "dso" in self.options.selection.chosen)
            lengths = (len(key.text(row)) for row in rows) if plain or key.width is None else map(key.width, rows)
            widths.append(max([len(key.title), *lengths]))
        return widths

    def _entry(self, row: Row) -> tuple[tuple[Any, ...], Entry]:
        identity = tuple([identity(row) for identity in self._identities])
        entry = self._entries.get(identity)
        if entry is None:
            entry = self._entries[identity] = Entry(row, len(self.events))
        return identity, entry

    def _add(self, sample: ProfileSample, weight: Weight, number: int) -> None:
        place = sample.place
        comm, thread, cpu = sample.comm, sample.thread, sample.cpu
        identity, entry = self._entry(Row(comm, thread, cpu, place, place.offset))
        entry.periods[number] += weight.period
        entry.totals[number] += weight.period
        entry.samples[number] += weight.samples
        options = self.options
        chain: tuple[Place, ...] = ()
        if options.call_trees or options.children:
            chain = sample.chain[:MAX_STACK]
            if options.caller_first:
                chain = chain[::-1]
        if options.call_trees and number == 0:
            entry.tree.add(chain, weight.samples, weight.period)
        if not options.children:
            return
        seen = {identity}
        for index, frame in enumerate(chain):
            identity, entry = self._entry(Row(comm, thread, cpu, frame, frame.address))
            if identity in seen:
                continue
            seen.add(identity)
            entry.totals[number] += weight.period
            if options.call_trees and number == 0:
                entry.tree.add(chain[index:], weight.samples, weight.period)

    def _sorted(self) -> list[Entry]:
        """Heaviest first. Of equals: callers first, then by the keys' order, as perf has it."""
        children, keys = self.options.children and self.options.heaviest_with_children, self.options.keys
        towards = -1 if self.options.caller_first else 1

        def order(item: tuple[tuple[Any, ...], Entry]) -> tuple[Any, ...]:
            identity, entry = item
            weights: list[Any] = []
            if children:
                weights += [-entry.totals[0], towards * entry.tree.depth]
            weights += [-period for period in entry.periods]
            row = entry.row
            return (*weights, *(key.order(row) for key in keys), identity)

        return [entry for _, entry in sorted(self._entries.items(), key=order)]
