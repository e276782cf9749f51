"""Moments of a run, in simulated time or in instructions of all CPUs together: when it is counted, and how often read.

What perf's -D and -I say, and an ``i`` behind a number of instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from perfemu.quantities import TIME_UNITS, time_ns

if TYPE_CHECKING:
    from perfemu.control import Control, Snapshot, Switch

INSTRUCTIONS = "i"  # behind a number


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """So much of a run: ns, or else instructions."""

    ns: int = 0
    instructions: int = 0

    @property
    def length(self) -> int:
        """In its unit."""
        return self.ns or self.instructions

    def is_like(self, other: Span) -> bool:
        """Whether the two have one unit."""
        return bool(self.ns) == bool(other.ns)


def read_span(text: str) -> Span:
    """``20`` (ms), ``1.5s``, ``10us``, or ``1000000i``. ValueError says what is right."""
    if not text.endswith(INSTRUCTIONS):
        return Span(ns=time_ns(text, TIME_UNITS["ms"]))
    try:
        instructions = int(text.removesuffix(INSTRUCTIONS))
    except ValueError:
        raise ValueError(f"'{text}' is no number of instructions: 1000000i") from None
    if not 0 < instructions < 1 << 62:
        raise ValueError(f"{text} is no number of instructions that could pass")
    return Span(instructions=instructions)


def read_delay(text: str) -> tuple[Span, ...]:
    """What -D says: when counting begins, ends, begins again ...; none at all for -1: the guest says when.

    ``100``, ``1000000i``, ``10-20,30-40``, ``10-20,30``.
    """
    if text == "-1":
        return ()
    pairs = [part.split("-") for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs[:-1]) or len(pairs[-1]) > 2:
        raise ValueError(
            f"'{text}' is not -1, a time (100, in ms; 20us), instructions (1000000i), or ranges: 10-20,30-40"
        )
    toggles = tuple(read_span(part) for pair in pairs for part in pair)
    ascending = all(one.is_like(next_) and one < next_ for one, next_ in pairwise(toggles))
    if not ascending:
        raise ValueError(f"'{text}': ranges are of one unit, and ascend")
    return toggles


@dataclass(frozen=True, slots=True)
class When:
    """When a run is counted: `toggles` as `read_delay` gives them, None for all the time; `every` is an interval, of
    which at most `most` are shown."""

    toggles: tuple[Span, ...] | None = None
    every: Span | None = None
    most: int | None = None
    control: Control | None = None  # by which the guest says it, too


ALWAYS = When()


class Clockwork(Protocol):
    """A run whose moments can be heard (a ``Session``, or a board's)."""

    def every(self, span: Span, call: Callable[[], bool]) -> None:
        """Call it whenever so much has passed since now, until it returns False."""

    def elapsed_ns(self) -> int:
        """Simulated time since the run's beginning, on the CPU that executes."""

    def obey(self, control: Control, switch: Switch, snapshot: Snapshot | None) -> None:
        """Before the run: the guest's orders are heard."""


def at(run: Clockwork, span: Span, call: Callable[[], None]) -> None:
    """Once."""

    def once() -> bool:
        call()
        return False

    run.every(span, once)


def let_switch(
    run: Clockwork,
    when: When,
    switch: Switch,
    tell: Callable[[bool], None] | None,
    snapshot: Snapshot | None = None,
) -> None:
    """Before the run: let `switch` hear whether counting begins or ends, as `when` and the guest say; then `tell`, who
    also hears of one that does not begin at once. `snapshot` is called when the guest says that, if it can."""

    def switched(on: bool, name: str = "") -> None:
        switch(on, name)
        if tell is not None:
            tell(on)

    if when.toggles is not None:
        if tell is not None:
            tell(False)
        for number, moment in enumerate(when.toggles):
            at(run, moment, partial(switched, number % 2 == 0))
    if when.control is not None:
        run.obey(when.control, switched, snapshot)
