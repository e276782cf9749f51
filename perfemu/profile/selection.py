"""Selection: which samples a report is of: by CPU and time, and by command, file, symbol, process, thread.

As in perf: samples of other CPUs and times are not there at all; those of other commands and so on are in no row, but
part of what percentages are of, unless these are relative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from perfemu.profile.profile import EventProfile, Moment, Profile, ProfileSample, Weight

_MOST_NAMED = 8  # values that a complaint lists


class Filter(NamedTuple):
    """One way to choose. `key` is the sort key whose column says nothing more if one value is chosen; perf's `name`."""

    name: str
    noun: str
    key: str
    values: Callable[[ProfileSample], tuple[Any, ...]]  # of a sample: it is chosen by any of them


FILTERS = {
    row.name: row
    for row in (
        Filter("comm", "command", "comm", lambda sample: (sample.comm,)),
        Filter("dso", "file", "dso", lambda sample: _files(sample)),
        Filter("symbol", "symbol", "symbol", lambda sample: _symbols(sample)),
        Filter("pid", "process", "", lambda sample: (sample.thread.pid,)),
        Filter("tid", "thread", "", lambda sample: (sample.thread.tid,)),
    )
}


def _files(sample: ProfileSample) -> tuple[str, ...]:
    return (sample.place.file_name, sample.place.path) if sample.place.path else ()


def _symbols(sample: ProfileSample) -> tuple[str, ...]:
    return (sample.place.symbol.shown,) if sample.place.symbol else ()


@dataclass(frozen=True, slots=True)
class Selection:
    """`chosen` are values by the names of FILTERS; what is not in it is all chosen."""

    chosen: dict[str, frozenset[Any]] = field(default_factory=dict)

    def shows(self, sample: ProfileSample) -> bool:
        return all(not values.isdisjoint(FILTERS[name].values(sample)) for name, values in self.chosen.items())

    def samples(self, event: EventProfile) -> dict[ProfileSample, Weight]:
        """Those of the event that are chosen."""
        if not self.chosen:
            return event.samples
        return {sample: weight for sample, weight in event.samples.items() if self.shows(sample)}

    def elided(self) -> Iterator[tuple[str, str]]:
        """(sort key, its only value) of columns that say nothing more."""
        for name, values in self.chosen.items():
            if FILTERS[name].key and len(values) == 1:
                yield FILTERS[name].key, str(next(iter(values)))

    def missing(self, profile: Profile) -> Iterator[str]:
        """A line for each chosen value that no sample has."""
        for name, chosen in self.chosen.items():
            row = FILTERS[name]
            values = {row.values(sample) for event in profile.events for sample in event.samples}
            known = sorted({several[0] for several in values if several})
            names = ", ".join(map(str, known[:_MOST_NAMED])) + (", ..." if len(known) > _MOST_NAMED else "")
            for value in sorted(chosen - {value for several in values for value in several}):
                yield f"no sample is of the {row.noun} {value}; there are {names or 'none'}"

    def of(self, profile: Profile) -> Profile:
        """The profile with what is chosen alone."""
        return replace(profile, events=[self._event(event) for event in profile.events]) if self.chosen else profile

    def _event(self, event: EventProfile) -> EventProfile:
        shown = self.samples(event)
        moments: list[Moment] = [moment for moment in event.moments if moment.sample in shown]
        count = sum(weight.samples for weight in shown.values())
        period = sum(weight.period for weight in shown.values())
        return replace(event, samples=shown, moments=moments, sample_count=count, period=period)


ALL = Selection()
