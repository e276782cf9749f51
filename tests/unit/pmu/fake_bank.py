"""FakeBank: a counter bank in Python, for PMU tests without a core.

On the ideal core, which this is, an instruction is a cycle and a cycle an instruction.
"""

from __future__ import annotations

from emulator.cpu import Level
from emulator.probes import Probe
from pmu.live.probe_bank import ProbeBank

RETIREMENT = 1 << Probe.INST_RETIRED | 1 << Probe.CYCLES


class FakeBank(ProbeBank):
    """Counters that the test drives with `fire`. `stops` counts the overflows that would have stopped the core."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.stops = 0

    def _overflow(self, counter: int) -> None:
        super()._overflow(counter)
        self.stops += self._armed >> counter & 1

    def fire(self, probe: Probe, amount: int = 1, level: Level = Level.USER) -> None:
        fired = RETIREMENT if 1 << probe & RETIREMENT and (level, probe) != (Level.KERNEL, Probe.CYCLES) else 1 << probe
        self.happen(fired, amount, self.counts_at(level))
