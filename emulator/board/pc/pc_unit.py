"""PcUnit: what a pc's CPU wants of a unit that observes execution besides its PMU."""

from __future__ import annotations

from typing import Protocol

from emulator.arch.cpuid import Leaf
from emulator.board.pausable import Pausable
from emulator.cpu import Cpu
from emulator.sysregs import SystemRegisters


class PcUnit(Pausable, Protocol):
    """A unit that the guest programs by MSRs."""

    entry: int  # of the local vector table: of its interrupt

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        """What CPUID says with it where without it would be `plain`."""

    def attach(self, cpu: Cpu, registers: SystemRegisters) -> dict[int, str]:
        """Claim its MSRs: their names. Addresses are where the CPU's page tables say, which are there."""

    def interrupt_asserted(self) -> bool: ...

    def take_interrupt(self) -> None:
        """It is delivered."""
