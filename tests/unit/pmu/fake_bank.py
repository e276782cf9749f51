"""FakeBank: a counter bank in Python, for PMU tests without a core. It follows `emulator/_native.pyi`."""

from __future__ import annotations

from emulator.cpu import Level
from emulator.probes import Probe
from pmu.event import LESS_SHIFT

RETIREMENT = 1 << Probe.INST_RETIRED | 1 << Probe.CYCLES


EVERY_LEVEL = 1 << Level.USER | 1 << Level.KERNEL


class FakeBank:
    """Counters that the test drives with `fire`. `stops` counts the overflows that would have stopped the core."""

    def __init__(self, size: int) -> None:
        self._masks = [0] * size
        self._values = [0] * size
        self._widths = [64] * size
        self._wraps = [1 << 64] * size
        self._chained: set[int] = set()
        self._levels = [EVERY_LEVEL] * size
        self._overflowed = 0
        self._armed = 0
        self.stops = 0

    @property
    def size(self) -> int:
        return len(self._values)

    def connect(self, counter: int, probes: int) -> None:
        self._masks[counter] = probes

    def connected(self, counter: int) -> int:
        return self._masks[counter]

    def filter(self, counter: int, levels: int) -> None:
        self._levels[counter] = levels

    def set_width(self, counter: int, bits: int, overflow_bits: int = 0) -> None:
        self._widths[counter] = bits
        self._wraps[counter] = 1 << (overflow_bits or bits)
        self._values[counter] &= (1 << bits) - 1

    def chain(self, counter: int, on: bool) -> None:
        (self._chained.add if on else self._chained.discard)(counter)

    def arm(self, counters: int) -> None:
        self._armed = counters

    def read(self, counter: int) -> int:
        return self._values[counter]

    def write(self, counter: int, value: int) -> None:
        self._values[counter] = value & (1 << self._widths[counter]) - 1

    def add(self, counter: int, amount: int) -> None:
        value = self._values[counter]
        wraps = (value % self._wraps[counter] + amount) // self._wraps[counter]
        self.write(counter, value + amount)
        if wraps:
            self._overflowed |= 1 << counter
            self.stops += self._armed >> counter & 1
            if counter in self._chained:
                self.add(counter + 1, wraps)

    def overflowed(self) -> int:
        return self._overflowed

    def set_overflowed(self, counters: int) -> None:
        self._overflowed |= counters

    def clear_overflowed(self, counters: int) -> None:
        self._overflowed &= ~counters

    def fire(self, probe: Probe, amount: int = 1, level: Level = Level.USER) -> None:
        """The probe fires; on the ideal core, which this is, an instruction is a cycle and a cycle an instruction."""
        fired = RETIREMENT if 1 << probe & RETIREMENT and (level, probe) != (Level.KERNEL, Probe.CYCLES) else 1 << probe
        for counter, mask in enumerate(self._masks):
            if self._levels[counter] >> level & 1:
                self.add(counter, amount * ((mask & fired).bit_count() - (mask >> LESS_SHIFT & fired).bit_count()))
