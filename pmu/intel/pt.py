"""Intel PT: a trace unit as its registers, and what they make of the encoder beside the core (native/units/pt_encoder).

Intel SDM volume 3, "Intel Processor Trace". Where the kernel is modelled, only user mode has a path. Not there, and not
announced by CPUID: CR3 filtering, since address spaces have no CR3; power and event packets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from emulator._native import PtEncoder, PtSettings
from emulator.clock import MONOTONIC_AT_BOOT_NS, Clock
from emulator.cpu import Cpu
from pmu.format_field import FormatField
from pmu.intel.cpuid import Leaf
from pmu.intel.pt_registers import (
    IA32_PERF_GLOBAL_STATUS_RESET_TRACE,
    IA32_PERF_GLOBAL_STATUS_TRACE,
    IA32_RTIT_ADDR_A,
    IA32_RTIT_ADDR_B,
    IA32_RTIT_CTL,
    IA32_RTIT_OUTPUT_BASE,
    IA32_RTIT_OUTPUT_MASK_PTRS,
    IA32_RTIT_STATUS,
    TOPA_ENTRY,
)
from pmu.register import Register
from pmu.register_device import RegisterDevice
from pmu.unit_memory import UnitMemory
from pmu.unit_pmu import UnitPmu

LEAF = 0x14
TIME_LEAF = 0x15  # what the time stamp counter is of the crystal clock
# Leaf 0DH is below that now: without XSAVE the state is what FXSAVE keeps. rr takes its size from there if the leaf is.
EXTENDED_STATE, X87_AND_SSE, FXSAVE_BYTES = 0xD, 0b11, 512
STRUCTURED_FEATURES = 0x7  # leaf; EBX bit 25: Intel PT
INTEL_PT = 1 << 25
BUS_HZ = 100_000_000
REGION_SIZE = 4096  # bytes of the smallest
_LOWER_MASK = 0x7F
_LEAST_PSB_SHIFT = 11
_ENTRY_BYTES = 8
_NS_PER_SECOND = 1_000_000_000
_FILTER, _TRACE_STOP = 1, 2  # ADDRn_CFG
PTWRITE = "ptwrite"  # the version of a core's unit that has it


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a core's unit can do: CPUID leaf 14H, by the names of sysfs ``caps/``."""

    address_ranges: int
    crystal_hz: int
    mtc_periods: int = 0x0249  # bit n: MTC_FREQ n
    cycle_thresholds: int = 0x3FFF
    psb_periods: int = 0x003F
    ptwrite: bool = False

    def leaf(self, subleaf: int) -> Leaf:
        if subleaf == 0:
            configurable, filters, mtc, ptwrite = 1 << 1, 1 << 2, 1 << 3, 1 << 4
            topa, several_regions, single_range = 1 << 0, 1 << 1, 1 << 2
            return (
                1,
                configurable | (filters if self.address_ranges else 0) | mtc | (ptwrite if self.ptwrite else 0),
                topa | several_regions | single_range,
                0,
            )
        if subleaf == 1:
            return self.address_ranges | self.mtc_periods << 16, self.cycle_thresholds | self.psb_periods << 16, 0, 0
        return 0, 0, 0, 0

    def tsc_per_crystal(self, tsc_hz: int) -> Fraction:
        return Fraction(tsc_hz, self.crystal_hz)


CAPABILITIES = Capabilities(address_ranges=2, crystal_hz=24_000_000)  # a Core i7-6700K's, without what is not there


def capabilities_of(version: str) -> Capabilities:
    """Of a core's unit, by UnitPmu.version."""
    return replace(CAPABILITIES, ptwrite=version == PTWRITE)


_FORMAT = (  # arch/x86/events/intel/pt.c, pt_formats_attr: bits of IA32_RTIT_CTL
    FormatField("pt", 0, 0),
    FormatField("cyc", 1, 1),
    FormatField("pwr_evt", 4, 4),
    FormatField("fup_on_ptw", 5, 5),
    FormatField("mtc", 9, 9),
    FormatField("tsc", 10, 10),
    FormatField("noretcomp", 11, 11),
    FormatField("ptw", 12, 12),
    FormatField("branch", 13, 13),
    FormatField("event", 31, 31),
    FormatField("notnt", 55, 55),
    FormatField("mtc_period", 14, 17),
    FormatField("cyc_thresh", 19, 22),
    FormatField("psb_period", 24, 27),
)
# tools/perf/arch/x86/util/intel-pt.c, intel_pt_default_config: times by TSC and, each 8 ticks of the crystal clock,
# MTC; a PSB each 16 KiB; branches
_DEFAULT = IA32_RTIT_CTL.make(TRACE_EN=1, TSC_EN=1, MTC_EN=1, MTC_FREQ=3, PSB_FREQ=3, BRANCH_EN=1)
PMUS = (
    UnitPmu(
        "intel_pt",
        _FORMAT,
        (),
        unit="pt",
        default_config=_DEFAULT,
        takes_snapshots=True,
        goes_into_samples=True,
        address_filters=True,
        note="a trace of what user mode executes",
    ),
)


def answer(capabilities: Capabilities, tsc_hz: int, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
    """CPUID of a processor with this unit, which without would say `plain`."""
    eax, ebx, ecx, edx = plain
    if leaf == 0x0:  # the largest leaf
        return max(eax, TIME_LEAF), ebx, ecx, edx
    if leaf == STRUCTURED_FEATURES and subleaf == 0:
        return eax, ebx | INTEL_PT, ecx, edx
    if leaf == EXTENDED_STATE and subleaf == 0:
        return X87_AND_SSE, FXSAVE_BYTES, FXSAVE_BYTES, 0
    if leaf == LEAF:
        return capabilities.leaf(subleaf)
    if leaf == TIME_LEAF:
        ratio = capabilities.tsc_per_crystal(tsc_hz)
        return ratio.denominator, ratio.numerator, capabilities.crystal_hz, 0
    return plain


class GeneralProtection(ValueError):
    """The write is #GP."""


class IntelPt(RegisterDevice):
    """The unit of one CPU. Registers that are written in a way that the manual forbids raise GeneralProtection."""

    def __init__(self, cpu: Cpu, clock: Clock, capabilities: Capabilities, memory: UnitMemory) -> None:
        """`memory`: what its output's addresses lead to."""
        super().__init__()
        self.capabilities = capabilities
        self._memory = memory
        self._encoder = PtEncoder(cpu.core, clock.shown)
        if capabilities.ptwrite:
            cpu.core.add_ptwrite()
        self._hz = clock.frequency_hz
        self._tsc_at_start = MONOTONIC_AT_BOOT_NS // _NS_PER_SECOND * self._hz
        self._traces = False  # TRACE_EN
        self._writes = False  # ... and nothing is wrong
        self._entries: list[int] = []  # physical addresses of the entries of the regions, in their order
        self._table_of: list[int] = []  # ... and of their tables
        storage = self.storage
        storage[IA32_RTIT_CTL.__name__] = storage[IA32_RTIT_STATUS.__name__] = 0
        storage[IA32_RTIT_OUTPUT_BASE.__name__] = 0
        storage[IA32_RTIT_OUTPUT_MASK_PTRS.__name__] = _LOWER_MASK
        self._compute(IA32_RTIT_CTL, lambda index: storage[IA32_RTIT_CTL.__name__], self._write_control)
        self._compute(IA32_RTIT_STATUS, self._read_status, partial(self._write_while_off, IA32_RTIT_STATUS))
        self._compute(IA32_RTIT_OUTPUT_BASE, self._read_base, partial(self._write_while_off, IA32_RTIT_OUTPUT_BASE))
        self._compute(IA32_RTIT_OUTPUT_MASK_PTRS, self._read_pointers, self._write_pointers)
        for register in (IA32_RTIT_ADDR_A, IA32_RTIT_ADDR_B):
            for index in range(capabilities.address_ranges):
                storage[register.name_of(index)] = 0
            self._compute(register, partial(self._read_address, register), partial(self._write_address, register))
        pending = IA32_PERF_GLOBAL_STATUS_TRACE.TRACE_TOPA_PMI.mask
        self._compute(IA32_PERF_GLOBAL_STATUS_TRACE, lambda index: pending if self._encoder.interrupt_pending else 0)
        self._compute(IA32_PERF_GLOBAL_STATUS_RESET_TRACE, write=self._reset_interrupt)

    def registers_of(self, register: type[Register]) -> int:
        return 1 if register.bank is None else self.capabilities.address_ranges

    # the interrupt line

    def interrupt_asserted(self) -> bool:
        return self._encoder.interrupt_pending

    def take_interrupt(self) -> None:
        """It stays pending until its bit is cleared."""

    def _reset_interrupt(self, value: int, index: int) -> None:
        if value & IA32_PERF_GLOBAL_STATUS_RESET_TRACE.TRACE_TOPA_PMI.mask:
            self._encoder.clear_interrupt()

    # what is written

    def _write_while_off(self, register: type[Register], value: int, index: int = 0) -> None:
        self._need_off(register)
        self._keep(register, register.__name__, value)

    def _keep(self, register: type[Register], name: str, value: int) -> None:
        try:
            self.storage[name] = register.write(self.storage[name], value)
        except ValueError as problem:
            raise GeneralProtection(str(problem)) from None

    def _need_off(self, register: type[Register]) -> None:
        if self._traces:
            raise GeneralProtection(f"{register.__name__} is written while IA32_RTIT_CTL.TRACE_EN is 1")

    def _write_pointers(self, value: int, index: int) -> None:
        self._write_while_off(IA32_RTIT_OUTPUT_MASK_PTRS, value)

    def _address_name(self, register: type[Register], index: int) -> str:
        if not 0 <= index < self.capabilities.address_ranges:
            raise GeneralProtection(f"{register.name_of(index)}: there are {self.capabilities.address_ranges} ranges")
        return register.name_of(index)

    def _read_address(self, register: type[Register], index: int) -> int:
        return self.storage[self._address_name(register, index)]

    def _write_address(self, register: type[Register], value: int, index: int) -> None:
        name = self._address_name(register, index)
        self._need_off(register)
        if value >> 47 not in (0, (1 << 17) - 1):
            raise GeneralProtection(f"{name}: {value:#x} is not canonical")
        self.storage[name] = value

    def _write_control(self, value: int, index: int) -> None:
        before = IA32_RTIT_CTL(self.storage[IA32_RTIT_CTL.__name__])
        control = IA32_RTIT_CTL(value)
        self._check_control(control)
        enable = IA32_RTIT_CTL.TRACE_EN.mask
        if before.TRACE_EN and control.TRACE_EN and before.value != value:
            raise GeneralProtection("IA32_RTIT_CTL is changed while TRACE_EN stays 1")
        self._keep(IA32_RTIT_CTL, IA32_RTIT_CTL.__name__, value)
        if (before.value ^ value) & enable:
            (self._begin if control.TRACE_EN else self._end)()

    def _check_control(self, control: IA32_RTIT_CTL) -> None:
        capabilities = self.capabilities
        ptwrite = IA32_RTIT_CTL.PTW_EN.mask | IA32_RTIT_CTL.FUP_ON_PTW.mask
        if stray := control.value & ~(IA32_RTIT_CTL.declared & ~(0 if capabilities.ptwrite else ptwrite)):
            raise GeneralProtection(f"IA32_RTIT_CTL: bits {stray:#x} are reserved, or for what is not there")
        for name, number, there in (
            ("MTC_FREQ", control.MTC_FREQ, capabilities.mtc_periods),
            ("CYC_THRESH", control.CYC_THRESH, capabilities.cycle_thresholds),
            ("PSB_FREQ", control.PSB_FREQ, capabilities.psb_periods),
        ):
            if not there >> number & 1:
                raise GeneralProtection(
                    f"IA32_RTIT_CTL.{name}: {number} is none of those in CPUID leaf 14H ({there:#x})"
                )
        for index, kind in enumerate(_range_kinds(control)):
            if kind > _TRACE_STOP or (kind and index >= capabilities.address_ranges):
                raise GeneralProtection(f"IA32_RTIT_CTL.ADDR{index}_CFG: {kind}")

    # what is read

    def _read_status(self, index: int) -> int:
        value = self.storage[IA32_RTIT_STATUS.__name__]
        if not self._writes:
            return value
        encoder = self._encoder
        stopped = encoder.stopped
        return value & ~IA32_RTIT_STATUS.PACKET_BYTE_CNT.mask | IA32_RTIT_STATUS.make(
            FILTER_EN=int(encoder.in_filter),
            CONTEXT_EN=0,  # who reads it executes in the kernel
            TRIGGER_EN=int(not stopped),
            STOPPED=int(stopped),
            PACKET_BYTE_CNT=min(encoder.bytes_since_psb, (1 << IA32_RTIT_STATUS.PACKET_BYTE_CNT.width) - 1),
        )

    def _place(self) -> tuple[int, int]:
        """OUTPUT_BASE and MASK_PTRS as the encoder has come on."""
        base = self.storage[IA32_RTIT_OUTPUT_BASE.__name__]
        pointers = self.storage[IA32_RTIT_OUTPUT_MASK_PTRS.__name__]
        if not self._writes:
            return base, pointers
        encoder = self._encoder
        low = pointers & 0xFFFF_FFFF
        if self._entries:
            base = self._table_of[encoder.region]
            low = (self._entries[encoder.region] - base) // _ENTRY_BYTES << 7 | _LOWER_MASK
        return base, low | encoder.offset << 32

    def _read_base(self, index: int) -> int:
        return self._place()[0]

    def _read_pointers(self, index: int) -> int:
        return self._place()[1]

    # tracing

    def _begin(self) -> None:
        self._traces = True
        status = IA32_RTIT_STATUS(self.storage[IA32_RTIT_STATUS.__name__])
        control = IA32_RTIT_CTL(self.storage[IA32_RTIT_CTL.__name__])
        if status.ERROR or status.STOPPED:
            return
        output = self._topa() if control.TOPA else self._single_range()
        if output is None:
            self.storage[IA32_RTIT_STATUS.__name__] |= IA32_RTIT_STATUS.ERROR.mask
            return
        self._writes = True
        self._encoder.set_output(*output)
        self._encoder.begin(self._settings(control), status.PACKET_BYTE_CNT)

    def _end(self) -> None:
        if self._writes:
            self._encoder.end()
            status = self._read_status(0)
            base, pointers = self._place()
            kept = IA32_RTIT_STATUS.STOPPED.mask | IA32_RTIT_STATUS.PACKET_BYTE_CNT.mask
            self.storage[IA32_RTIT_STATUS.__name__] = status & kept
            self.storage[IA32_RTIT_OUTPUT_BASE.__name__] = base
            self.storage[IA32_RTIT_OUTPUT_MASK_PTRS.__name__] = pointers
        self._traces = self._writes = False

    def _settings(self, control: IA32_RTIT_CTL) -> PtSettings:
        settings = PtSettings()
        settings.branches = bool(control.BRANCH_EN and control.USER)
        settings.compresses_returns = not control.DIS_RETC
        settings.tsc, settings.mtc, settings.cyc = bool(control.TSC_EN), bool(control.MTC_EN), bool(control.CYC_EN)
        settings.ptwrite, settings.ptwrite_addresses = bool(control.PTW_EN and control.USER), bool(control.FUP_ON_PTW)
        settings.bytes_between_psbs = 1 << control.PSB_FREQ + _LEAST_PSB_SHIFT
        settings.mtc_shift = control.MTC_FREQ
        settings.cyc_threshold = 1 << control.CYC_THRESH - 1 if control.CYC_THRESH else 0
        ratio = self.capabilities.tsc_per_crystal(self._hz)
        settings.tsc_at_start, settings.tsc_ticks, settings.ctc_ticks = (
            self._tsc_at_start,
            ratio.numerator,
            ratio.denominator,
        )
        settings.core_to_bus_ratio = self._hz // BUS_HZ
        for index, kind in enumerate(_range_kinds(control)):
            if kind:
                first, last = self.storage[f"IA32_RTIT_ADDR{index}_A"], self.storage[f"IA32_RTIT_ADDR{index}_B"]
                settings.add_range(first, last, kind == _TRACE_STOP)
        return settings

    def _single_range(self) -> tuple[list[tuple[memoryview, bool, bool]], int, int] | None:
        base = self.storage[IA32_RTIT_OUTPUT_BASE.__name__]
        pointers = IA32_RTIT_OUTPUT_MASK_PTRS(self.storage[IA32_RTIT_OUTPUT_MASK_PTRS.__name__])
        mask = pointers.value & 0xFFFF_FFFF
        self._entries = []
        memory = self._memory.find(base, mask + 1)
        if mask & mask + 1 or base & mask or memory is None:
            return None
        return [(memory, False, False)], 0, pointers.OUTPUT_OFFSET & mask

    def _topa(self) -> tuple[list[tuple[memoryview, bool, bool]], int, int] | None:
        """The regions of all tables, from the present one on. None: an operational error."""
        base = self.storage[IA32_RTIT_OUTPUT_BASE.__name__]
        pointers = IA32_RTIT_OUTPUT_MASK_PTRS(self.storage[IA32_RTIT_OUTPUT_MASK_PTRS.__name__])
        if base % REGION_SIZE:
            return None
        regions: list[tuple[memoryview, bool, bool]] = []
        self._entries, self._table_of = [], []
        tables: set[int] = set()
        table = base
        while table not in tables:
            tables.add(table)
            at = table
            while True:
                bits = self._memory.find(at, _ENTRY_BYTES)
                if bits is None:
                    return None
                entry = TOPA_ENTRY(int.from_bytes(bits, "little"))
                if entry.value & ~TOPA_ENTRY.declared or (entry.END and (at == table or entry.INT or entry.STOP)):
                    return None
                if entry.END:
                    table = entry.BASE << 12
                    break
                size = REGION_SIZE << entry.SIZE
                memory = self._memory.find(entry.BASE << 12, size)
                if memory is None or (entry.BASE << 12) % size:
                    return None
                regions.append((memory, bool(entry.INT), bool(entry.STOP)))
                self._entries.append(at)
                self._table_of.append(table)
                at += _ENTRY_BYTES
        if table != base:
            return None  # a ring that does not come back to where it began
        present = base + pointers.MASK_OR_TABLE_OFFSET * _ENTRY_BYTES
        if present not in self._entries:
            return None
        region = self._entries.index(present)
        return (regions, region, pointers.OUTPUT_OFFSET) if pointers.OUTPUT_OFFSET < len(regions[region][0]) else None


def _range_kinds(control: IA32_RTIT_CTL) -> tuple[int, ...]:
    return control.ADDR0_CFG, control.ADDR1_CFG, control.ADDR2_CFG, control.ADDR3_CFG
