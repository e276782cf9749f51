"""PerfMetrics: MSR_PERF_METRICS, where the slots of fixed counter 3 went. Intel SDM volume 3, "Performance Metrics".

Software sees shares of 255, which are made of the exact counts when they are read: so nothing gets lost in between,
as in hardware, which counts on behind the register, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pmu.counter_bank import CounterBank

FIELD_BITS = 8
WHOLE = (1 << FIELD_BITS) - 1


class PerfMetrics:
    """Counters `first` and up of a bank, one a field. `slots`: reads fixed counter 3."""

    kept = ("_counts",)  # besides the bank

    def __init__(self, bank: CounterBank, first: int, probes: Sequence[int], slots: Callable[[], int]) -> None:
        """`probes`: of each field, from the lowest bits up; 0 where nobody here knows it, which then reads as 0."""
        self._bank = bank
        self._probes = dict(enumerate(probes, first))
        self._first = first
        self._slots = slots
        self._counts = False

    def count(self, counts: bool, levels: int) -> None:
        """Whether they count, and where: as fixed counter 3 does."""
        for number, probes in self._probes.items():
            self._bank.filter(number, levels)
            if counts != self._counts:
                self._bank.connect(number, probes if counts else 0)
        self._counts = counts

    def read(self) -> int:
        slots = self._slots()
        value = 0
        for number in self._probes:
            share = (self._bank.read(number) * WHOLE + slots // 2) // slots if slots else 0
            value |= min(share, WHOLE) << FIELD_BITS * (number - self._first)
        return value

    def write(self, value: int) -> None:
        """As software does that begins anew, by zeros, or goes on from what it has read before; after the slots."""
        slots = self._slots()
        for number in self._probes:
            share = value >> FIELD_BITS * (number - self._first) & WHOLE
            self._bank.write(number, (share * slots + WHOLE // 2) // WHOLE)
