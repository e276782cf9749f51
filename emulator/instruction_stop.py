"""InstructionStop: calls where a CPU has executed so many instructions. No guest can tell of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from emulator.cpu import Cpu
from emulator.probes import Probe


class InstructionStop:
    """Make it before CPUs execute: `reached(cpu)` is called once, right behind the instruction, of the CPU that is
    there first. Instructions of a guest's own kernel are among them."""

    def __init__(self, cpus: Sequence[Cpu], instructions: int, reached: Callable[[Cpu], None]) -> None:
        if instructions < 1:
            raise ValueError(f"a stop after {instructions} instructions: 1 is the first")
        self._reached = reached
        self._counters = [_Counter(cpu, instructions) for cpu in cpus]
        for cpu, counter in zip(cpus, self._counters, strict=True):
            cpu.connect_interrupt(counter, partial(self._stop, cpu))

    def _stop(self, cpu: Cpu) -> None:
        for counter in self._counters:
            counter.take_interrupt()
        self._reached(cpu)


class _Counter:
    """Of one CPU; an InterruptSource."""

    def __init__(self, cpu: Cpu, instructions: int) -> None:
        self._bank = cpu.core.add_bank(1)
        self._bank.connect(0, 1 << Probe.INST_RETIRED)
        self._bank.write(0, -instructions & (1 << 64) - 1)
        self._bank.arm(1)

    def interrupt_asserted(self) -> bool:
        return bool(self._bank.overflowed())

    def take_interrupt(self) -> None:
        """It has done what it is for."""
        self._bank.connect(0, 0)
        self._bank.arm(0)
        self._bank.clear_overflowed(1)
