"""Difference: two measurements, event by event: totals, modules, functions and lines, what changed most first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from perfemu.comparing.matching import matched_functions, matched_modules
from perfemu.comparing.measured import EventCounts, Function, Measured, common_events

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Change:
    """One row. A side on which it is not there has None."""

    name: str
    module: str  # of a function; empty for the rest
    old: int | None
    new: int | None
    old_name: str = ""  # where that is another

    @property
    def difference(self) -> int:
        return (self.new or 0) - (self.old or 0)

    @property
    def percent(self) -> float | None:
        """Of the old count; None where that is nothing."""
        return 100.0 * self.difference / self.old if self.old else None

    @property
    def note(self) -> str:
        """What a reader should know besides the numbers."""
        if self.old is None:
            return "new"
        if self.new is None:
            return "gone"
        return f"was {self.old_name}" if self.old_name else ""


@dataclass(frozen=True, slots=True)
class EventDifference:
    """One event of both sides. Modules and functions add up to the total, and so do their differences."""

    name: str
    total: Change
    exact: bool  # both sides' functions
    modules: tuple[Change, ...]
    functions: tuple[Change, ...]
    lines: tuple[Change, ...]  # of functions that changed, where there are lines

    def changed(self, rows: Iterable[Change]) -> list[Change]:
        return [row for row in rows if row.difference]


@dataclass(frozen=True, slots=True)
class Difference:
    """All of it. `remarks`: what makes the sides hard to compare, or was left out."""

    old: str
    new: str
    events: tuple[EventDifference, ...]
    remarks: tuple[str, ...]

    @classmethod
    def of(cls, old: Measured, new: Measured, most_functions_with_lines: int = 20) -> Difference:
        both, alone = common_events(old, new)
        modules = matched_modules(old, new)
        functions = matched_functions(old, new, modules)
        remarks = list(_remarks(old, new))
        remarks += [f"{name} is only in {old.name if name in old.events else new.name}" for name in alone]
        events = [
            _event(old.events[name], new.events[name], modules, functions, most_functions_with_lines) for name in both
        ]
        remarks += [
            f"{event.name}: functions' counts are samples' weights, not exact" for event in events if not event.exact
        ]
        return cls(old.name, new.name, tuple(events), tuple(remarks))


def _remarks(old: Measured, new: Measured) -> Iterable[str]:
    if old.isa and new.isa and old.isa != new.isa:
        yield f"{old.name} is {old.isa}, {new.name} is {new.isa}: other instructions"
    elif old.core and new.core and old.core != new.core:
        yield f"{old.name} is of {old.core}, {new.name} of {new.core}"


def _event(
    old: EventCounts,
    new: EventCounts,
    modules: dict[str, str],
    functions: dict[Function, Function],
    most_functions_with_lines: int,
) -> EventDifference:
    total = Change(old.name, "", old.total, new.total)
    if not (old.has_functions and new.has_functions):
        return EventDifference(old.name, total, True, (), (), ())
    moved = {name: Function(modules.get(name.module, name.module), name.name) for name in new.functions}
    pairs = list(_pairs(old.functions, new.functions, moved | functions))
    changed = sorted((pair for pair in pairs if pair.difference), key=lambda pair: -abs(pair.difference))
    return EventDifference(
        old.name,
        total,
        old.exact and new.exact,
        _sorted(_module_row(pair) for pair in _pairs(old.modules(), new.modules(), modules)),
        _sorted(_function_row(pair) for pair in pairs),
        _sorted(row for pair in changed[:most_functions_with_lines] for row in _line_rows(pair, old, new)),
    )


def _module_row(pair: _Pair[str]) -> Change:
    return Change(pair.name, "", pair.old, pair.new, "" if pair.was in (None, pair.name) else str(pair.was))


def _function_row(pair: _Pair[Function]) -> Change:
    was = pair.was
    old_name = "" if was is None or was.name == pair.name.name else was.name
    return Change(pair.name.name, pair.name.module, pair.old, pair.new, old_name)


def _line_rows(pair: _Pair[Function], old: EventCounts, new: EventCounts) -> Iterator[Change]:
    olds = old.lines(pair.was) if pair.was is not None else Counter[str]()
    news = new.lines(pair.name) if pair.new is not None else Counter[str]()
    for line in _pairs(olds, news, _renamed_lines(olds, news)):
        was = "" if line.was in (None, line.name) else str(line.was)
        yield Change(line.name, pair.name.name, line.old, line.new, was)


def _renamed_lines(olds: Iterable[str], news: Iterable[str]) -> dict[str, str]:
    """Of one function: lines of the one source file that only the new side has are those of the one that it lost."""
    old_files, new_files = {_file(line) for line in olds}, {_file(line) for line in news}
    gone, come = old_files - new_files, new_files - old_files
    if len(gone) != 1 or len(come) != 1:
        return {}
    (was,), (name,) = gone, come
    return {line: was + line[len(name) :] for line in news if _file(line) == name}


def _file(line: str) -> str:
    return line.rpartition(":")[0]


@dataclass(frozen=True, slots=True)
class _Pair(Generic[Key]):
    """One thing on both sides, by its new name, or the old one of what is gone. `was` is None if it is new."""

    name: Key
    was: Key | None
    old: int | None
    new: int | None

    @property
    def difference(self) -> int:
        return (self.new or 0) - (self.old or 0)


def _pairs(old: Counter[Key], new: Counter[Key], renamed: dict[Key, Key]) -> Iterator[_Pair[Key]]:
    left = dict(old)
    for name, count in new.items():
        was = renamed.get(name, name)
        before = left.pop(was, None)
        yield _Pair(name, None if before is None else was, before, count)
    for name, count in left.items():
        yield _Pair(name, name, count, None)


def _sorted(rows: Iterable[Change]) -> tuple[Change, ...]:
    """What changed most comes first; of equals, what is more."""
    return tuple(sorted(rows, key=lambda row: (-abs(row.difference), -(row.new or row.old or 0), row.module, row.name)))
