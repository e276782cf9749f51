"""Verdict: what a measurement is, held against its baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from perfemu.checking.baseline import Entry
from perfemu.checking.tolerance import Tolerance
from perfemu.comparing.difference import Difference, EventDifference
from perfemu.comparing.measured import Measured


class Outcome(Enum):
    """Of one event, or of a whole benchmark: then the worst. In this order, the best first."""

    PASSED = "passed"
    IMPROVED = "improved"  # by more than it might have grown: the baseline should follow
    NEW = "no baseline"
    NOT_COMPARED = "not compared"  # its baseline is of something else
    FAILED = "FAILED"
    BROKEN = "BROKEN"  # the program did not do what it should

    @property
    def is_failure(self) -> bool:
        return self not in (Outcome.PASSED, Outcome.IMPROVED)


_SEVERITY = {outcome: number for number, outcome in enumerate(Outcome)}


@dataclass(frozen=True, slots=True)
class EventVerdict:
    """One event. `difference` is None where there is nothing to compare with."""

    event: str
    outcome: Outcome
    now: int
    tolerance: Tolerance
    difference: EventDifference | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """One benchmark. `why`: what a line says of it, where its counts do not."""

    name: str
    events: tuple[EventVerdict, ...]
    why: str = ""
    broken: bool = False

    @property
    def outcome(self) -> Outcome:
        if self.broken:
            return Outcome.BROKEN
        return max((event.outcome for event in self.events), key=_SEVERITY.__getitem__, default=Outcome.PASSED)


def judge(name: str, now: Measured, baseline: Entry | None, tolerance: Callable[[str], Tolerance]) -> Verdict:
    """Hold `now` against `baseline`, of which None means that there is none yet."""
    if baseline is None:
        return Verdict(name, tuple(_uncompared(now, Outcome.NEW, tolerance)), "it has no baseline yet")
    hindrance = baseline.hindrance(now)
    if hindrance:
        return Verdict(name, tuple(_uncompared(now, Outcome.NOT_COMPARED, tolerance)), hindrance)
    then = replace(baseline.measured, programs=now.programs)
    differences = {event.name: event for event in Difference.of(then, now, most_functions_with_lines=0).events}
    return Verdict(name, tuple(_judged(event, differences, now, tolerance) for event in now.events))


def _judged(
    name: str, differences: dict[str, EventDifference], now: Measured, tolerance: Callable[[str], Tolerance]
) -> EventVerdict:
    allowed, count = tolerance(name), now.events[name].total
    difference = differences.get(name)
    if difference is None:
        return EventVerdict(name, Outcome.NEW, count, allowed)
    old = difference.total.old or 0
    if not allowed.allows(old, count):
        outcome = Outcome.FAILED
    elif not allowed.allows(count, old):
        outcome = Outcome.IMPROVED
    else:
        outcome = Outcome.PASSED
    return EventVerdict(name, outcome, count, allowed, difference)


def _uncompared(now: Measured, outcome: Outcome, tolerance: Callable[[str], Tolerance]) -> Iterator[EventVerdict]:
    return (EventVerdict(event.name, outcome, event.total, tolerance(event.name)) for event in now.events.values())
