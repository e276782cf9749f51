"""The units that the guest of a pc programs besides its CPUs' PMU and branch records: AMD's IBS."""

from __future__ import annotations

from collections.abc import Sequence

from emulator._native import GuestPageTables
from emulator.arch.cpuid import Leaf
from emulator.board.pc.extended_apic import ENTRIES
from emulator.board.pc.pc_unit import PcUnit
from emulator.cpu import Cpu, Level, WalkFault
from emulator.linux.mm.mapping import PAGE_SIZE
from emulator.machine import Hardware
from emulator.sysregs import SystemRegisters
from pmu.amd import ibs
from pmu.model import PmuModel
from pmu.x86_msrs import claim_msrs


class Translation:
    """Physical addresses of a CPU's, as the guest's page tables have them now."""

    def __init__(self, tables: GuestPageTables) -> None:
        self._tables = tables

    def __call__(self, address: int) -> int | None:
        """None where nothing is mapped."""
        page, fault, *_ = self._tables.walk(address, Level.KERNEL)
        return None if page is None or fault != WalkFault.NONE else page[0] * PAGE_SIZE + address % PAGE_SIZE


class BoardIbs:
    """Of one CPU of a pc. It is made when the CPU's page tables are there."""

    kept = ("_device",)

    def __init__(self, model: PmuModel) -> None:
        self._model = model
        self._device: ibs.Ibs | None = None
        self.entry = ENTRIES[0]  # IBS_CTL.LvtOffset

    @property
    def device(self) -> ibs.Ibs:
        assert self._device is not None, "it is attached"
        return self._device

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        return ibs.answer(leaf, plain)

    def attach(self, cpu: Cpu, registers: SystemRegisters, tables: GuestPageTables) -> dict[int, str]:
        self._device = ibs.Ibs(cpu, self._model.events, Translation(tables))
        return claim_msrs(self._device, registers)

    def interrupt_asserted(self) -> bool:
        return self.device.interrupt_asserted()

    def take_interrupt(self) -> None:
        self.device.take_interrupt()

    def pause(self) -> None:
        self.device.pause()

    def resume(self) -> None:
        self.device.resume()


def pc_units(hardware: Hardware, model: PmuModel) -> list[Sequence[PcUnit]]:
    """Of each CPU."""
    return [[BoardIbs(model)] if "ibs" in model.units else [] for _ in hardware.cpus]
