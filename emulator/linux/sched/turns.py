"""Turns: for how long a CPU executes before another busy one does.

A turn is a quantum, as long as CPUs do not fight for memory. With turns much longer than a line of memory takes from
one CPU to another, a CPU would do in one turn, with the line at hand, what on a machine needs the line many times. So
while lines come back to CPUs that have lost them, turns are halved, down to the time in which a line goes there and
back; when none does, they are doubled.
"""

from __future__ import annotations

from typing import Protocol


class Caches(Protocol):
    """What CPUs share (``SharedCaches``)."""

    @property
    def returns(self) -> int: ...
    @property
    def coherence_latency(self) -> int: ...


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
