"""The units that the guest of a pc programs besides its CPUs' PMU and branch records: AMD's IBS; Intel's PEBS, BTS and
PT, which are parts of the PMU's registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from emulator._native import PhysicalMemory
from emulator.arch.cpuid import Leaf
from emulator.board.pc.apic_timer import INPUT_HZ
from emulator.board.pc.extended_apic import ENTRIES
from emulator.board.pc.pc_unit import PcUnit
from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.machine import Hardware
from emulator.sysregs import SystemRegisters
from emulator.x86_64_system import SystemRegister
from perfemu.board_memory import KernelMemory, Ram
from pmu.amd import ibs
from pmu.intel.bts import BranchTraceStore
from pmu.intel.debug_store import DebugStore
from pmu.intel.pebs import Pebs
from pmu.intel.perfmon import Perfmon
from pmu.intel.pt import IntelPt, capabilities_of
from pmu.model import PmuModel
from pmu.unit_pmu import UnitPmu
from pmu.x86_msrs import claim_msrs

# Of a crystal of 1 GHz: MTCs each 512 ns or more, as with one of 24 MHz they would be each 333 ns.
MTC_PERIODS = 1 << 9 | 1 << 12


class BoardIbs:
    """Of one CPU of a pc. It is made when the CPU's page tables are there."""

    kept = ("_device",)

    def __init__(self, memory: PhysicalMemory, model: PmuModel) -> None:
        self._memory, self._model = memory, model
        self._device: ibs.Ibs | None = None
        self.entry = ENTRIES[0]  # IBS_CTL.LvtOffset

    @property
    def device(self) -> ibs.Ibs:
        assert self._device is not None, "it is attached"
        return self._device

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        return ibs.answer(leaf, plain)

    def attach(self, cpu: Cpu, registers: SystemRegisters) -> dict[int, str]:
        self._device = ibs.Ibs(cpu, self._model.events, KernelMemory(self._memory, cpu).physical)
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
    return [[BoardIbs(hardware.memory, model)] if "ibs" in model.units else [] for _ in hardware.cpus]


def add_debug_store(cpu: Cpu, hardware: Hardware, model: PmuModel, pmu: Perfmon, tell: Callable[[str], None]) -> None:
    """To a guest's PMU, where the core has BTS or PEBS: before its registers are claimed."""
    if not {"bts", "pebs"} & model.units:
        return
    store = DebugStore(KernelMemory(hardware.memory, cpu))
    clock, recording = hardware.clock, None
    if "pebs" in model.units:
        recording = Pebs(cpu, clock, store, model.version)
        recording.tsc_at_start = lambda: tsc_at_start(cpu, clock)
    tracing = BranchTraceStore(cpu, store) if "bts" in model.units else None
    pmu.store_for_guest(store, recording, tracing, tell)


def add_trace(cpu: Cpu, hardware: Hardware, model: PmuModel, pmu: Perfmon) -> None:
    """To a guest's PMU, where the core has Intel PT: before its registers are claimed."""
    source = next((source for source in model.sources if isinstance(source, UnitPmu) and source.unit == "pt"), None)
    if source is None:
        return
    clock, core = hardware.clock, capabilities_of(source.version)
    trace = IntelPt(
        cpu,
        clock,
        replace(core, crystal_hz=INPUT_HZ, mtc_periods=MTC_PERIODS, cr3_filtering=True),
        Ram(hardware.memory),
    )
    trace.tsc_at_start = lambda: tsc_at_start(cpu, clock)
    pmu.trace_for_guest(trace)


def tsc_at_start(cpu: Cpu, clock: Clock) -> int:
    """What the guest's time stamp counter was at cycle 0, or would have been."""
    return cpu.core.read_kernel_register(SystemRegister.TSC) - clock.reference(cpu.core.cycles)
