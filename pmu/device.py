"""Pmu: what a kernel driver and the machine see of a live counting device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from emulator.sysregs import SystemRegisters
from pmu.model import PmuModel
from pmu.register import Register


class Pmu(Protocol):
    """Registers that turn into counter settings, and one interrupt line. A driver has no other way in."""

    @property
    def model(self) -> PmuModel: ...

    @property
    def counters(self) -> int:
        """Event counters, without the fixed ones."""

    def read(self, register: type[Register], index: int = 0) -> int:
        """Read at the kernel's privilege."""

    def write(self, register: type[Register], value: int, index: int = 0) -> None:
        """Write at the kernel's privilege."""

    def reader(self, register: type[Register], index: int = 0) -> Callable[[], int]:
        """`read`, for who reads that register often."""

    def writer(self, register: type[Register], index: int = 0) -> Callable[[int], None]:
        """`write`, for who writes that register often."""

    def reader_of_all(self, registers: Sequence[tuple[type[Register], int]]) -> Callable[[], Sequence[int]]:
        """... for who reads several at once, one after the other: each with its number in a bank."""

    def writer_of_all(self, registers: Sequence[tuple[type[Register], int]]) -> Callable[[Sequence[int]], None]:
        """... who writes them."""

    def interrupt_asserted(self) -> bool:
        """Whether the overflow interrupt is pending now."""

    def take_interrupt(self) -> None:
        """What the hardware does as it delivers the interrupt."""

    def grant_user_access(self, system_registers: SystemRegisters) -> None:
        """Claim what user mode may reach; each access asks the PMU's own permission bits when it happens."""
