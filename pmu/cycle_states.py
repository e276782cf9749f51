"""What becomes of dispatch in a cycle: it stands still for one of three reasons, or does not.

Where all that a counter adds in a cycle is one or nothing, and these states tell which, it is the set of states in
which it adds one. Its total is a sum of probes; for some of these sets a probe fires where such a cycle follows another
that is not.
"""

from __future__ import annotations

from emulator.probes import Probe
from pmu.event import Event

FRONTEND, MEMORY, BACKEND, DISPATCHES = 1, 2, 4, 8  # BACKEND: not for memory
EVERY, NEVER = 15, 0
NO_CYCLE = "never: there is no such cycle"
_BEGINS = {
    FRONTEND | MEMORY | BACKEND: Probe.STALL_BEGINS,
    FRONTEND: Probe.STALL_FRONTEND_BEGINS,
    MEMORY | BACKEND: Probe.STALL_BACKEND_BEGINS,
    MEMORY: Probe.STALL_BACKEND_MEMORY_BEGINS,
}

Totals = tuple[tuple[Probe, ...], tuple[Probe, ...]]  # that are added, and taken away


def totals_of(states: int) -> Totals:
    """The cycles in one of these states."""
    if states & DISPATCHES:
        others, too_many = totals_of(EVERY & ~states)
        return (Probe.CYCLES, *too_many), others
    frontend = (Probe.STALL_FRONTEND,) if states & FRONTEND else ()
    if not states & BACKEND:
        return (*frontend, *((Probe.STALL_BACKEND_MEMORY,) if states & MEMORY else ())), ()
    return (*frontend, Probe.STALL_BACKEND), () if states & MEMORY else (Probe.STALL_BACKEND_MEMORY,)


_STATES = {tuple(map(frozenset, totals_of(states))): states for states in range(EVERY + 1)}


def states_of(event: Event) -> int | None:
    """The states in which it happens, once; None: they do not tell."""
    if not event.probes:
        return NEVER if event.note == NO_CYCLE else None  # None: of SW_INCR and CHAIN
    return _STATES.get((frozenset(event.probes), frozenset(event.less)))


def begin_of(states: int) -> Probe | None:
    """What fires in the first of several cycles in a row that are in these states; None: nothing does."""
    return _BEGINS.get(states)
