"""The units that the guest of a pc programs besides its CPUs' PMU and branch records: AMD's IBS; Intel's PEBS, BTS and
PT, which are parts of the PMU's registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from emulator._native import GuestPageTables, PhysicalMemory
from emulator.arch.cpuid import Leaf
from emulator.board.pc.apic_timer import INPUT_HZ
from emulator.board.pc.extended_apic import ENTRIES
from emulator.board.pc.pc_unit import PcUnit
from emulator.clock import Clock
from emulator.cpu import Cpu, Level, WalkFault
from emulator.linux.mm.mapping import PAGE_SIZE, PROT_WRITE
from emulator.machine import Hardware
from emulator.sysregs import SystemRegisters
from emulator.x86_64_system import SystemRegister
from pmu.amd import ibs
from pmu.intel.bts import BranchTraceStore
from pmu.intel.debug_store import DebugStore
from pmu.intel.pebs import Pebs
from pmu.intel.perfmon import Perfmon
from pmu.intel.pt import IntelPt, capabilities_of
from pmu.model import PmuModel
from pmu.unit_pmu import UnitPmu
from pmu.x86_msrs import claim_msrs

LAST_ADDRESS = (1 << 64) - 1
# Of a crystal of 1 GHz: MTCs each 512 ns or more, as with one of 24 MHz they would be each 333 ns.
MTC_PERIODS = 1 << 9 | 1 << 12


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


class LinearMemory:
    """pmu.intel.debug_store.StoreMemory: RAM at linear addresses of a CPU's kernel, as its page tables have it now."""

    def __init__(self, memory: PhysicalMemory, cpu: Cpu) -> None:
        self._memory, self._cpu = memory, cpu

    def find(self, address: int, size: int) -> memoryview | None:
        """None where it is not mapped to be written, nor where its pages are not side by side in RAM: as Linux
        allocates its stores, they are."""
        tables = self._cpu.guest_tables
        assert tables is not None, "its kernel executes"
        first, offset = None, address % PAGE_SIZE
        pages = -(-(offset + size) // PAGE_SIZE)
        if pages > self._memory.size_bytes // PAGE_SIZE:
            return None
        for number in range(pages):
            page, fault, *_ = tables.walk(address - offset + number * PAGE_SIZE & LAST_ADDRESS, Level.KERNEL)
            if page is None or fault != WalkFault.NONE or not page[1] & PROT_WRITE:
                return None
            if first is None:
                first = page[0]
            if page[0] != first + number:
                return None
        if first is None or first + pages > self._memory.size_bytes // PAGE_SIZE:
            return None
        return self._memory.view(first, pages)[offset : offset + size]


def add_debug_store(cpu: Cpu, hardware: Hardware, model: PmuModel, pmu: Perfmon, tell: Callable[[str], None]) -> None:
    """To a guest's PMU, where the core has BTS or PEBS: before its registers are claimed."""
    if not {"bts", "pebs"} & model.units:
        return
    store = DebugStore(LinearMemory(hardware.memory, cpu))
    clock, recording = hardware.clock, None
    if "pebs" in model.units:
        recording = Pebs(cpu, clock, store, model.version)
        recording.tsc_at_start = lambda: tsc_at_start(cpu, clock)
    tracing = BranchTraceStore(cpu, store) if "bts" in model.units else None
    pmu.store_for_guest(store, recording, tracing, tell)


class Ram:
    """pmu.intel.pt_output.TraceMemory: RAM at physical addresses."""

    def __init__(self, memory: PhysicalMemory) -> None:
        self._memory = memory

    def find(self, address: int, size: int) -> memoryview | None:
        """None beyond it."""
        if size > self._memory.size_bytes or address > self._memory.size_bytes - size:
            return None
        first, offset = divmod(address, PAGE_SIZE)
        return self._memory.view(first, -(-(offset + size) // PAGE_SIZE))[offset : offset + size]


def add_trace(cpu: Cpu, hardware: Hardware, model: PmuModel, pmu: Perfmon) -> None:
    """To a guest's PMU, where the core has Intel PT: before its registers are claimed."""
    source = next((source for source in model.sources if isinstance(source, UnitPmu) and source.unit == "pt"), None)
    if source is None:
        return
    clock, core = hardware.clock, capabilities_of(source.version)
    trace = IntelPt(
        cpu,
        clock,
        replace(core, crystal_hz=INPUT_HZ, mtc_periods=MTC_PERIODS, cr3_filtering=True, power_events=False),
        Ram(hardware.memory),
    )
    trace.tsc_at_start = lambda: tsc_at_start(cpu, clock)
    pmu.trace_for_guest(trace)


def tsc_at_start(cpu: Cpu, clock: Clock) -> int:
    """What the guest's time stamp counter was at cycle 0, or would have been."""
    return cpu.core.read_kernel_register(SystemRegister.TSC) - clock.reference(cpu.core.cycles)
