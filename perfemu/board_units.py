"""The units that the guest of a virt programs besides its CPUs' PMU: Arm's Statistical Profiling Extension, and the
Branch Record Buffer Extension, which is a part of the PMU's registers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from emulator._native import PhysicalMemory
from emulator.board.generic_timer import NS_PER_TICK
from emulator.board.virt_tree import RAM_BASE
from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.machine import Hardware
from emulator.sysregs import Access, SysReg, SystemRegisters
from perfemu.board_memory import KernelMemory
from pmu.arm.branch_record_buffer import BranchRecordBuffer
from pmu.arm.spe import SpeUnit
from pmu.arm.spe_registers import SpeVersion
from pmu.model import PmuModel
from pmu.unit_pmu import UnitPmu


class BoardSpe:
    """The unit of one CPU of a board. It is made when the CPU's page tables are there."""

    kept = ("_unit",)

    def __init__(self, memory: PhysicalMemory, clock: Clock, version: SpeVersion) -> None:
        self._memory, self._clock, self._version = memory, clock, version
        self._unit: SpeUnit | None = None

    @property
    def identification(self) -> Mapping[SysReg, int]:
        """The fields of ID registers that tell of it: register -> its bits."""
        return SpeUnit.identification_of(self._version)

    def attach(self, cpu: Cpu, registers: SystemRegisters) -> None:
        """Its registers are there from now on. They are of EL1."""
        self._unit = unit = SpeUnit(
            cpu,
            self._version,
            KernelMemory(self._memory, cpu),
            lambda cycle: self._clock.at(cycle) // NS_PER_TICK,
            ram_base=RAM_BASE,
            executes_kernel=True,
        )
        for register in unit.registers():
            read = partial(unit.read, register) if unit.can_read(register) else None
            write = partial(unit.write, register) if unit.can_write(register) else None
            encoding = register.encoding_of()
            assert isinstance(encoding, SysReg), "it is an AArch64 register"
            registers.claim(encoding, Access(read, write))

    def interrupt_asserted(self) -> bool:
        return self._unit is not None and self._unit.interrupt_asserted()

    def pause(self) -> None:
        if self._unit is not None:
            self._unit.pause()

    def resume(self) -> None:
        if self._unit is not None:
            self._unit.resume()


def board_spe(hardware: Hardware, model: PmuModel) -> list[BoardSpe]:
    """One for each CPU; none where the core has none."""
    for source in model.sources:
        if isinstance(source, UnitPmu) and source.unit == "spe":
            version = SpeVersion[source.version.upper()]
            return [BoardSpe(hardware.memory, hardware.clock, version) for _ in hardware.cpus]
    return []


def board_brbe(cpu: Cpu, hardware: Hardware, model: PmuModel) -> BranchRecordBuffer | None:
    """Of a CPU whose core is lent it. Its registers are the PMU's."""
    if "brbe" not in model.units:
        return None
    return BranchRecordBuffer(cpu.core, model.branch_records, lambda: hardware.clock.at(cpu.core.cycles) // NS_PER_TICK)
