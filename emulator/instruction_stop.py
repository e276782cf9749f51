"""InstructionStops: calls where a CPU has executed so many instructions. No guest can tell of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from emulator.cpu import Cpu
from emulator.probes import Probe


class InstructionStops:
    """Make it before CPUs execute. For each of `stops`, which ascend, `reached(cpu)` is called once, right behind the
    instruction with which a CPU comes to so many of its own, the first that does. Those of a guest's kernel count, too.
    """

    def __init__(self, cpus: Sequence[Cpu], stops: Sequence[int], reached: Callable[[Cpu], None]) -> None:
        if not stops or stops[0] < 1 or any(later <= stop for stop, later in pairwise(stops)):
            raise ValueError(f"{', '.join(map(str, stops))}: want numbers of instructions that ascend, from 1 on")
        self._left = list(stops)
        self._reached = reached
        self._counters = [_Counter(cpu) for cpu in cpus]
        for cpu, counter in zip(cpus, self._counters, strict=True):
            counter.stop_at(self._left[0])
            cpu.connect_interrupt(counter, partial(self._stop, cpu))

    def _stop(self, cpu: Cpu) -> None:
        del self._left[0]
        for counter in self._counters:
            counter.stop_at(self._left[0] if self._left else None)
        self._reached(cpu)


class _Counter:
    """Of one CPU's instructions; an InterruptSource."""

    def __init__(self, cpu: Cpu) -> None:
        self._core = cpu.core
        self._bank = cpu.core.add_bank(1)

    def stop_at(self, instructions: int | None) -> None:
        self._bank.clear_overflowed(1)
        self._bank.connect(0, 0 if instructions is None else 1 << Probe.INST_RETIRED)
        self._bank.arm(0 if instructions is None else 1)
        if instructions is not None:
            left = instructions - self._core.total(Probe.INST_RETIRED)
            self._bank.write(0, -left & (1 << 64) - 1)

    def interrupt_asserted(self) -> bool:
        return bool(self._bank.overflowed())

    def take_interrupt(self) -> None:
        """`stop_at` ends it."""
