"""ProbeBank: a counter bank without a core. Its probes fire when somebody says so, each by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulator.cpu import Level
from pmu.event import LESS_SHIFT

_EVERY_LEVEL = 1 << Level.USER | 1 << Level.KERNEL

Counts = Callable[[int], bool]
"""Whether a counter, by its number, counts what happens now."""


class ProbeBank:
    """As ``emulator/_native.pyi`` describes a CounterBank; and `happen`."""

    def __init__(self, size: int) -> None:
        self._probes = [0] * size
        self._values = [0] * size
        self._limits = [(1 << 64) - 1] * size  # the bits of a counter
        self._wraps = [1 << 64] * size  # after so many it overflows
        self._chained = [False] * size
        self._levels = [_EVERY_LEVEL] * size
        self._overflowed = 0
        self._armed = 0

    @property
    def size(self) -> int:
        return len(self._values)

    def connect(self, counter: int, probes: int) -> None:
        self._probes[counter] = probes

    def connected(self, counter: int) -> int:
        return self._probes[counter]

    def filter(self, counter: int, levels: int) -> None:
        self._levels[counter] = levels

    def set_width(self, counter: int, bits: int, overflow_bits: int = 0) -> None:
        self._limits[counter] = (1 << bits) - 1
        self._wraps[counter] = 1 << (overflow_bits or bits)
        self._values[counter] &= self._limits[counter]

    def chain(self, counter: int, on: bool) -> None:
        self._chained[counter] = on

    def arm(self, counters: int) -> None:
        self._armed = counters

    def read(self, counter: int) -> int:
        return self._values[counter]

    def write(self, counter: int, value: int) -> None:
        self._values[counter] = value & self._limits[counter]

    def read_each(self, counters: Sequence[int]) -> list[int]:
        return [self.read(counter) for counter in counters]

    def write_each(self, counters: Sequence[int], values: Sequence[int]) -> None:
        for counter, value in zip(counters, values, strict=True):
            if value > self._limits[counter]:
                raise ValueError(f"counter {counter} is too narrow for {value}")
            self.write(counter, value)

    def add(self, counter: int, amount: int) -> None:
        wrap, value = self._wraps[counter], self._values[counter]
        wraps = (value % wrap + amount) // wrap
        self.write(counter, value + amount)
        if wraps:
            self._overflow(counter)
            if self._chained[counter]:
                self.add(counter + 1, wraps)

    def _overflow(self, counter: int) -> None:
        self._overflowed |= 1 << counter

    def overflowed(self) -> int:
        return self._overflowed

    def set_overflowed(self, counters: int) -> None:
        self._overflowed |= counters

    def clear_overflowed(self, counters: int) -> None:
        self._overflowed &= ~counters

    # what happens

    def counts_at(self, level: Level) -> Counts:
        """By its filter."""
        return lambda counter: bool(self._levels[counter] >> level & 1)

    def happen(self, probes: int, times: int, counts: Counts) -> None:
        """Each probe of the mask fires so often, together with the others."""
        for counter in range(self.size):
            if counts(counter):
                self.add(counter, times * self._per_time(counter, probes))

    def until_overflow(self, probes: int, counts: Counts) -> int | None:
        """After how many times an armed counter overflows at the earliest, or one that is chained; None: never."""
        times = []
        for counter, wrap in enumerate(self._wraps):
            matters = self._armed >> counter & 1 or self._chained[counter]
            each = self._per_time(counter, probes) if matters and counts(counter) else 0
            if each > 0:
                times.append(-(-(wrap - self._values[counter] % wrap) // each))
        return min(times, default=None)

    def _per_time(self, counter: int, probes: int) -> int:
        connected = self._probes[counter]
        return (connected & probes).bit_count() - (connected >> LESS_SHIFT & probes).bit_count()
