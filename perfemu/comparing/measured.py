"""Measured: what one side of a comparison is: how much of each event, in all and in each function."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from perfcore.abi.tracepoints import COMM_BYTES
from perfemu.events.attributes import is_exact
from perfemu.profile.places import Place
from perfemu.profile.profile import EventProfile, Profile

NO_INSTRUCTION = "[no instruction]"  # the module and function of what no instruction made: exceptions, say
UNKNOWN = "[unknown]"  # the function of all addresses of a module that have no symbol


class Function(NamedTuple):
    """One function, by what it is known by in another build, too. Not its address."""

    module: str  # the file's name without its directory, or perf's name for what is no file
    name: str


@dataclass(slots=True)
class EventCounts:
    """How much of one event: in all, and by function, which add up to that. No functions: only the total is known."""

    name: str  # without modifiers
    total: int
    exact: bool  # False: functions' counts are the weights of samples
    functions: Counter[Function] = field(default_factory=Counter)
    places: dict[Function, list[tuple[Place, int]]] = field(default_factory=dict)  # where lines can be looked up

    @property
    def has_functions(self) -> bool:
        """Whether more is known than the total."""
        return any(function.module != NO_INSTRUCTION for function in self.functions)

    def add_unattributed(self, count: int) -> None:
        """So many more, which were of no instruction."""
        self.total += count
        self.functions[Function(NO_INSTRUCTION, NO_INSTRUCTION)] += count

    def modules(self) -> Counter[str]:
        sums = Counter[str]()
        for function, count in self.functions.items():
            sums[function.module] += count
        return sums

    def lines(self, function: Function) -> Counter[str]:
        """By source line, ``file.c:12``; what has none is left out."""
        sums = Counter[str]()
        for place, count in self.places.get(function, ()):
            line = place.file.line(place.offset) if place.file else None
            if line:
                sums[f"{os.path.basename(line[0])}:{line[1]}"] += count
        return sums


@dataclass(slots=True)
class Measured:
    """One side. Sizes are bytes of code, 0 where nobody knows."""

    name: str  # the file, or the command
    events: dict[str, EventCounts]
    isa: str = ""  # as uname has it; empty where the file does not say
    core: str = ""  # as the file describes its CPU
    region: str = ""  # what of the program it is of; empty: the whole, or a file that does not say
    sizes: dict[Function, int] = field(default_factory=dict)
    programs: frozenset[str] = frozenset()  # the modules that are programs, not libraries


def measured_of(profile: Profile, name: str = "") -> Measured:
    """What a perf.data file holds. An event that stands twice is one."""
    sizes: dict[Function, int] = {}
    comms: set[str] = set()
    modules: set[str] = set()
    events: dict[str, EventCounts] = {}
    for event in profile.events:
        counts = _counts(event, sizes)
        comms.update(sample.comm for sample in event.samples)
        modules.update(function.module for function in counts.functions)
        known = events.get(counts.name)
        if known is None and (counts.total or counts.exact):
            events[counts.name] = counts
    features = profile.features
    core = (features.cpu_description or "").removeprefix("perfemu core ")
    programs = frozenset(module for module in modules if module[: COMM_BYTES - 1] in comms)
    return Measured(name or profile.path, events, features.architecture or "", core, sizes=sizes, programs=programs)


def _counts(event: EventProfile, sizes: dict[Function, int]) -> EventCounts:
    by_function = Counter[Function]()
    places: defaultdict[Function, list[tuple[Place, int]]] = defaultdict(list)
    for sample, weight in event.samples.items():
        place = sample.place
        symbol = place.symbol
        function = Function(place.file_name, UNKNOWN if symbol is None else symbol.shown)
        by_function[function] += weight.period
        places[function].append((place, weight.period))
        if symbol is not None:
            sizes[function] = symbol.end - symbol.start
    exact = is_exact(event.description.attr)
    return EventCounts(event.name.partition(":")[0], event.period, exact, by_function, dict(places))


def common_events(old: Measured, new: Measured) -> tuple[list[str], list[str]]:
    """Events of both, in the order of `old`; and those of only one, which cannot be compared."""
    both = [name for name in old.events if name in new.events]
    alone = [*_missing(old, new), *_missing(new, old)]
    return both, alone


def _missing(of: Measured, other: Measured) -> Iterator[str]:
    return (name for name in of.events if name not in other.events)
