"""Turns: for how long a CPU executes before another busy one does.

A turn is a quantum, as long as CPUs do not fight for memory. With turns much longer than a line of memory takes from
one CPU to another, a CPU would do in one turn, with the line at hand, what on a machine needs the line many times. So
while lines come back to CPUs that have lost them, turns are halved, down to the time in which a line goes there and
back; when none does, they are doubled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from emulator.linux.sched.run_queue import RunQueue

DECIDED_ANEW = -1  # no version of an event queue


class Caches(Protocol):
    """What CPUs share (``SharedCaches``)."""

    @property
    def returns(self) -> int: ...
    @property
    def coherence_latency(self) -> int: ...


@dataclass(slots=True)
class Turn:
    """One CPU executes until a cycle, if nothing happens before; who observes may interrupt it."""

    queue: RunQueue
    until: int
    at_any_exit: bool = True  # whether after any exit it is decided anew, and not only when something has happened
    version: int = DECIDED_ANEW  # of the event queue: while that is the same, it goes on
    observations: int = 0  # ... and as long as these are, until then:
    pause: int = 0
    over: bool = False  # its pause, or its end, has come
    goes_on: bool = False  # it has been interrupted, and that has changed nothing


class Turns:
    """Lengths in cycles. They depend on what has been executed alone."""

    def __init__(self, quantum_cycles: int, caches: Caches | None) -> None:
        self._most = self._cycles = quantum_cycles
        self._caches = caches
        self._least = min(quantum_cycles, caches.coherence_latency) if caches is not None else quantum_cycles
        self._returns = 0

    def next_cycles(self) -> int:
        """Of the turn that begins."""
        if self._caches is None:
            return self._most
        returns = self._caches.returns
        if returns != self._returns:
            self._returns = returns
            self._cycles = max(self._cycles // 2, self._least)
        else:
            self._cycles = min(self._cycles * 2, self._most)
        return self._cycles
