"""Which event has which counter, where not every counter counts every event. As perf_assign_events and its callers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from emulator.linux.errors import LinuxError

T = TypeVar("T")


class GroupTooLarge(LinuxError):
    """EINVAL: a group would not fit on an empty PMU."""


def placement(
    holders: Mapping[int, T], counters_of: Callable[[T], Sequence[int]], new: T
) -> list[tuple[T, int]] | None:
    """How `new` gets a counter: (event, counter) in the order in which they are to move there, `new` last.

    `holders`: who has which now; `counters_of`: where an event may be, the best first. None: there is no way. Others
    move only if none of its own is free (an augmenting path of the matching of events and counters).
    """
    return _reach(holders, counters_of, new, set())


def _reach(
    holders: Mapping[int, T], counters_of: Callable[[T], Sequence[int]], event: T, tried: set[int]
) -> list[tuple[T, int]] | None:
    for counter in counters_of(event):
        if counter not in holders:
            return [(event, counter)]
    for counter in counters_of(event):
        if counter in tried:
            continue
        tried.add(counter)
        moves = _reach(holders, counters_of, holders[counter], tried)
        if moves is not None:
            return [*moves, (event, counter)]
    return None
