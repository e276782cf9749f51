"""Limits: where a board's run ends if the guest does not end it before."""

from __future__ import annotations

from emulator._native import Core
from emulator.machine import Hardware
from emulator.probes import Probe

ITERATIONS = 1000  # of a core's REPs, for each instruction or cycle of a limit: on the ideal core they are neither
MOST_PER_CYCLE = 16  # instructions: no core retires more
FOREVER = 1 << 62  # cycles


class Limits:
    """Of instructions of all CPUs together, and of the machine's time."""

    kept = ("_left",)
    kept_ranges = {"_left": range(-FOREVER, FOREVER + 1)}

    def __init__(self, hardware: Hardware) -> None:
        config = hardware.config
        self._cores = [cpu.core for cpu in hardware.cpus]
        self._instructions = config.most_instructions
        self._cycles = FOREVER if config.most_ns is None else hardware.clock.cycle_at(config.most_ns)
        self._per_cycle = 1 if config.core.model is None else MOST_PER_CYCLE
        self._left = FOREVER if self._instructions is None else self._instructions
        for core in self._cores:
            core.limit_iterations(ITERATIONS * min(self._left, self._cycles, FOREVER // ITERATIONS))

    @property
    def reached(self) -> bool:
        if self._instructions is not None:
            self._left = self._instructions - sum(core.total(Probe.INST_RETIRED) for core in self._cores)
        if self._left <= 0 or max(core.cycles for core in self._cores) >= self._cycles:
            return True
        return any(core.repeats_too_long for core in self._cores)

    def cycle(self, core: Core) -> int:
        """Up to which a core may execute before they are looked at again: the instructions' is exact on the ideal core,
        and within MOST_PER_CYCLE on others."""
        return min(self._cycles, core.cycles + max(self._left // self._per_cycle, 1))
