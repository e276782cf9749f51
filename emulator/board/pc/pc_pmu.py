"""PcPmu: what a pc's CPU wants of its PMU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from emulator.arch.cpuid import Leaf
from emulator.board.pausable import Pausable
from emulator.sysregs import SystemRegisters


class PcPmu(Pausable, Protocol):
    """The counting unit that the guest programs."""

    tell: Callable[[str], None]  # of what the guest asks it for, and does not get

    @property
    def unavailable(self) -> int:
        """Bits of IA32_MISC_ENABLE: what of the debug store it has not."""

    @property
    def masks_its_vector(self) -> bool:
        """Whether the local APIC masks LVT_PMC as it delivers the interrupt: Intel's do, AMD's do not."""

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        """What CPUID says with it where without it would be `plain`."""

    def claim(self, registers: SystemRegisters) -> dict[int, str]:
        """Its MSRs, and RDPMC. Their names."""

    def interrupt_asserted(self) -> bool: ...

    def take_interrupt(self) -> None:
        """It is delivered."""

    def set_local_vector(self, entry: int) -> None:
        """What the local APIC's LVT_PMC says."""
