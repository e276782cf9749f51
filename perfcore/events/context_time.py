"""ContextTime: how long a context, or a control group, has been on a CPU."""

from __future__ import annotations

from emulator.clock import Clock
from emulator.cpu import Cpu


class ContextTime:
    """A time that runs while something is on a CPU, by the clock of that CPU."""

    __slots__ = ("_clock", "_cpu", "_looked_at", "_now", "_passed", "_since")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cpu: Cpu | None = None
        self._passed = 0
        self._since = 0
        self._looked_at = -1  # cycles of the CPU at which `_now` was the time
        self._now = 0

    def now(self) -> int:
        """In ns."""
        if self._cpu is None:
            return self._passed
        cycles = self._cpu.core.cycles
        if cycles != self._looked_at:  # the clock is looked at once for all events of a switch
            self._looked_at = cycles
            self._now = self._passed + self._clock.at(cycles) - self._since
        return self._now

    def start(self, cpu: Cpu) -> None:
        self._since = self._clock.at(cpu.core.cycles)
        self._cpu = cpu
        self._looked_at = -1

    def stop(self) -> None:
        self._passed = self.now()
        self._cpu = None

    def running_since_boot(self) -> int | None:
        """CLOCK_MONOTONIC of the CPU on which it runs; None if it stands."""
        return None if self._cpu is None else self._clock.monotonic_at(self._cpu.core.cycles)
