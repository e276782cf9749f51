"""Intel PT: a trace unit as its registers, and what they make of the encoder beside the core (native/units/pt_encoder).

Intel SDM volume 3, "Intel Processor Trace". Where the kernel is modelled, only user mode has a path, and there is no
CR3 to filter by. Not there, and not announced by CPUID: event packets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from emulator._native import PtEncoder, PtSettings
from emulator.clock import MONOTONIC_AT_BOOT_NS, Clock
from emulator.cpu import Cpu, Level, Waking
from pmu.intel.cpuid import Leaf
from pmu.intel.pt_output import Output, TraceMemory, regions_of_tables, single_range
from pmu.intel.pt_registers import (
    IA32_PERF_GLOBAL_STATUS_RESET_TRACE,
    IA32_PERF_GLOBAL_STATUS_TRACE,
    IA32_RTIT_ADDR_A,
    IA32_RTIT_ADDR_B,
    IA32_RTIT_CR3_MATCH,
    IA32_RTIT_CTL,
    IA32_RTIT_OUTPUT_BASE,
    IA32_RTIT_OUTPUT_MASK_PTRS,
    IA32_RTIT_STATUS,
)
from pmu.register import Register
from pmu.register_device import RegisterDevice

LEAF = 0x14
TIME_LEAF = 0x15  # what the time stamp counter is of the crystal clock
# Leaf 0DH is below that now: without XSAVE the state is what FXSAVE keeps. rr takes its size from there if the leaf is.
EXTENDED_STATE, X87_AND_SSE, FXSAVE_BYTES = 0xD, 0b11, 512
STRUCTURED_FEATURES = 0x7  # leaf; EBX bit 25: Intel PT
INTEL_PT = 1 << 25
BUS_HZ = 100_000_000
_LOWER_MASK = 0x7F
_TOPA = IA32_RTIT_CTL.TOPA.mask
_LEAST_PSB_SHIFT = 11
_NS_PER_SECOND = 1_000_000_000
_FILTER, _TRACE_STOP = 1, 2  # ADDRn_CFG
PTWRITE, POWER_EVENTS = "ptwrite", "power_events"  # words of a core's version of the unit: it has those

Access = tuple[Callable[[int], int], Callable[[int, int], None]]
"""What reads a register, and what writes it."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a core's unit can do: CPUID leaf 14H, by the names of sysfs ``caps/``."""

    address_ranges: int
    crystal_hz: int
    mtc_periods: int = 0x0249  # bit n: MTC_FREQ n
    cycle_thresholds: int = 0x3FFF
    psb_periods: int = 0x003F
    ptwrite: bool = False
    power_events: bool = False
    cr3_filtering: bool = False

    @property
    def control(self) -> int:
        """Bits of IA32_RTIT_CTL that are there."""
        absent = 0 if self.cr3_filtering else IA32_RTIT_CTL.CR3_EN.mask
        absent |= 0 if self.ptwrite else IA32_RTIT_CTL.PTW_EN.mask | IA32_RTIT_CTL.FUP_ON_PTW.mask
        absent |= 0 if self.power_events else IA32_RTIT_CTL.PWR_EVT_EN.mask
        return IA32_RTIT_CTL.declared & ~absent

    def leaf(self, subleaf: int) -> Leaf:
        if subleaf == 0:
            configurable, filters, mtc, ptwrite, power_events = 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5
            topa, several_regions, single_range = 1 << 0, 1 << 1, 1 << 2
            return (
                1,
                int(self.cr3_filtering)
                | configurable
                | (filters if self.address_ranges else 0)
                | mtc
                | (ptwrite if self.ptwrite else 0)
                | (power_events if self.power_events else 0),
                topa | several_regions | single_range,
                0,
            )
        if subleaf == 1:
            return self.address_ranges | self.mtc_periods << 16, self.cycle_thresholds | self.psb_periods << 16, 0, 0
        return 0, 0, 0, 0

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        """Of a processor with this unit, which has those leaves without."""
        eax, ebx, ecx, edx = plain
        if leaf == STRUCTURED_FEATURES and subleaf == 0:
            return eax, ebx | INTEL_PT, ecx, edx
        return self.leaf(subleaf) if leaf == LEAF else plain

    def tsc_per_crystal(self, tsc_hz: int) -> Fraction:
        return Fraction(tsc_hz, self.crystal_hz)


CAPABILITIES = Capabilities(address_ranges=2, crystal_hz=24_000_000)  # a Core i7-6700K's, without what is not there


def capabilities_of(version: str) -> Capabilities:
    """Of a core's unit, by UnitPmu.version."""
    parts = version.split()
    return replace(CAPABILITIES, ptwrite=PTWRITE in parts, power_events=POWER_EVENTS in parts)


def answer(capabilities: Capabilities, tsc_hz: int, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
    """CPUID of a processor with this unit, which without would say `plain`."""
    eax, ebx, ecx, edx = plain
    if leaf == 0x0:  # the largest leaf
        return max(eax, TIME_LEAF), ebx, ecx, edx
    if leaf == EXTENDED_STATE and subleaf == 0:
        return X87_AND_SSE, FXSAVE_BYTES, FXSAVE_BYTES, 0
    if leaf == TIME_LEAF:
        ratio = capabilities.tsc_per_crystal(tsc_hz)
        return ratio.denominator, ratio.numerator, capabilities.crystal_hz, 0
    return capabilities.cpuid(leaf, subleaf, plain)


class GeneralProtection(ValueError):
    """The write is #GP."""


class IntelPt(RegisterDevice):
    """The unit of one CPU. Registers that are written in a way that the manual forbids raise GeneralProtection."""

    kept = "storage", "_traces", "_writes", "_trace"

    def __init__(self, cpu: Cpu, clock: Clock, capabilities: Capabilities, memory: TraceMemory) -> None:
        super().__init__()
        self.capabilities = capabilities
        self._memory = memory
        self._encoder = PtEncoder(cpu.core, clock.shown)
        self._cpu = cpu
        cpu.sleep_listeners.append(self)
        if capabilities.ptwrite:
            cpu.core.add_ptwrite()
        self._hz = clock.frequency_hz
        self._cpu = cpu
        self.tsc_at_start: Callable[[], int] = lambda: MONOTONIC_AT_BOOT_NS // _NS_PER_SECOND * self._hz
        self._traces = False  # TRACE_EN
        self._writes = False  # ... and nothing is wrong
        self._output: Output | None = None  # of the latest trace
        storage = self.storage
        storage[IA32_RTIT_CTL.__name__] = storage[IA32_RTIT_STATUS.__name__] = 0
        storage[IA32_RTIT_OUTPUT_BASE.__name__] = 0
        storage[IA32_RTIT_OUTPUT_MASK_PTRS.__name__] = _LOWER_MASK
        self._compute(IA32_RTIT_CTL, lambda index: storage[IA32_RTIT_CTL.__name__], self._write_control)
        for register, read in (
            (IA32_RTIT_STATUS, self._read_status),
            (IA32_RTIT_OUTPUT_BASE, self._read_base),
            (IA32_RTIT_OUTPUT_MASK_PTRS, self._read_pointers),
        ):
            self._compute(register, read, partial(self._write_while_off, register))
        if capabilities.cr3_filtering:
            match = IA32_RTIT_CR3_MATCH
            storage[match.__name__] = 0
            self._compute(match, lambda index: storage[match.__name__], partial(self._write_while_off, match))
        for bank in (IA32_RTIT_ADDR_A, IA32_RTIT_ADDR_B):
            for index in range(capabilities.address_ranges):
                storage[bank.name_of(index)] = 0
            self._compute(bank, partial(self._read_address, bank), partial(self._write_address, bank))
        self._own = {register: (self._readers[register], self._writers[register]) for register in self._readers}
        pending = IA32_PERF_GLOBAL_STATUS_TRACE.TRACE_TOPA_PMI.mask
        self._compute(IA32_PERF_GLOBAL_STATUS_TRACE, lambda index: pending if self._encoder.interrupt_pending else 0)
        self._compute(IA32_PERF_GLOBAL_STATUS_RESET_TRACE, write=self._reset_interrupt)

    def registers_of(self, register: type[Register]) -> int:
        return 1 if register.bank is None else self.capabilities.address_ranges

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        return self.capabilities.cpuid(leaf, subleaf, plain)

    def accesses(self) -> Mapping[type[Register], Access]:
        """What reads and writes each of those that are its own, for a PMU that has them among others."""
        return self._own

    # the interrupt line

    def interrupt_asserted(self) -> bool:
        return self._encoder.interrupt_asserted

    def take_interrupt(self) -> None:
        """It stays pending until its bit is cleared."""
        self._encoder.take_interrupt()

    @property
    def interrupt_pending(self) -> bool:
        """IA32_PERF_GLOBAL_STATUS.TRACE_TOPA_PMI"""
        return self._encoder.interrupt_pending

    @interrupt_pending.setter
    def interrupt_pending(self, pending: bool) -> None:
        self._encoder.set_interrupt(pending)

    def _reset_interrupt(self, value: int, index: int) -> None:
        if value & IA32_PERF_GLOBAL_STATUS_RESET_TRACE.TRACE_TOPA_PMI.mask:
            self.interrupt_pending = False

    # the processor's sleep

    def sleeps(self) -> None:
        self._encoder.sleep()

    def wakes(self, waking: Waking) -> None:
        self._encoder.wake(waking)

    # what is written

    def check(self, register: type[Register], value: int, index: int = 0) -> None:
        """GeneralProtection if writing that value is #GP."""
        if register is IA32_RTIT_CTL:
            self._check_control(IA32_RTIT_CTL(value))
            return
        if self._traces:
            raise GeneralProtection(f"{register.__name__} is written while IA32_RTIT_CTL.TRACE_EN is 1")
        if register in (IA32_RTIT_ADDR_A, IA32_RTIT_ADDR_B) and value >> 47 not in (0, (1 << 17) - 1):
            raise GeneralProtection(f"{register.name_of(index)}: {value:#x} is not canonical")
        try:
            register.write(0, value)
        except ValueError as problem:
            raise GeneralProtection(str(problem)) from None

    def _write_while_off(self, register: type[Register], value: int, index: int) -> None:
        self.check(register, value, index)
        name = register.__name__
        self.storage[name] = register.write(self.storage[name], value)

    def _address_name(self, register: type[Register], index: int) -> str:
        if not 0 <= index < self.capabilities.address_ranges:
            raise GeneralProtection(f"{register.name_of(index)}: there are {self.capabilities.address_ranges} ranges")
        return register.name_of(index)

    def _read_address(self, register: type[Register], index: int) -> int:
        return self.storage[self._address_name(register, index)]

    def _write_address(self, register: type[Register], value: int, index: int) -> None:
        name = self._address_name(register, index)
        self.check(register, value, index)
        self.storage[name] = value

    def _write_control(self, value: int, index: int) -> None:
        control = IA32_RTIT_CTL(value)
        self._check_control(control)
        self.storage[IA32_RTIT_CTL.__name__] = value
        if bool(control.TRACE_EN) != self._traces:
            (self._begin if control.TRACE_EN else self._end)()

    def _check_control(self, control: IA32_RTIT_CTL) -> None:
        capabilities = self.capabilities
        if self._traces and control.TRACE_EN and control.value != self.storage[IA32_RTIT_CTL.__name__]:
            raise GeneralProtection("IA32_RTIT_CTL is changed while TRACE_EN stays 1")
        if stray := control.value & ~capabilities.control:
            raise GeneralProtection(f"IA32_RTIT_CTL: bits {stray:#x} are reserved, or for what is not there")
        for name, on, number, there in (
            ("MTC_FREQ", control.MTC_EN, control.MTC_FREQ, capabilities.mtc_periods),
            ("CYC_THRESH", control.CYC_EN, control.CYC_THRESH, capabilities.cycle_thresholds),
            ("PSB_FREQ", True, control.PSB_FREQ, capabilities.psb_periods),
        ):
            if (on or number) and not there >> number & 1:  # what is off may be 0 in any case
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
        stopped, kernel_executes = encoder.stopped, self._cpu.guest_tables is not None
        return value & ~IA32_RTIT_STATUS.PACKET_BYTE_CNT.mask | IA32_RTIT_STATUS.make(
            FILTER_EN=int(encoder.in_filter),
            CONTEXT_EN=int(kernel_executes and encoder.in_context),  # else who reads it is not traced
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
        assert self._output is not None, "it has been found"
        if self._output.entries:
            base, number = self._output.entries[encoder.region]
            low = number << 7 | _LOWER_MASK
        return base, low | encoder.offset << 32

    def _read_base(self, index: int) -> int:
        return self._place()[0]

    def _read_pointers(self, index: int) -> int:
        return self._place()[1]

    # tracing

    def _begin(self) -> None:
        self._traces = True
        status = IA32_RTIT_STATUS(self.storage[IA32_RTIT_STATUS.__name__])
        if status.ERROR or status.STOPPED or not self._find_output():
            return
        self._writes = True
        self._encoder.begin(self._settings(), status.PACKET_BYTE_CNT)
        if self._cpu.asleep:  # who has written that has woken it for a moment
            self.sleeps()

    def _find_output(self) -> bool:
        """False: an operational error."""
        base = self.storage[IA32_RTIT_OUTPUT_BASE.__name__]
        pointers = self.storage[IA32_RTIT_OUTPUT_MASK_PTRS.__name__]
        find_output = regions_of_tables if self.storage[IA32_RTIT_CTL.__name__] & _TOPA else single_range
        self._output = output = find_output(self._memory, base, IA32_RTIT_OUTPUT_MASK_PTRS(pointers))
        if output is None:
            self.storage[IA32_RTIT_STATUS.__name__] |= IA32_RTIT_STATUS.ERROR.mask
            return False
        self._encoder.set_output(output.regions, output.region, output.offset)
        return True

    def _end(self) -> None:
        if self._writes:
            self.wakes(Waking.INTERRUPT)
            self._encoder.end()
            self._note_place()
        self._traces = self._writes = False

    def _note_place(self) -> None:
        """Where it has stopped writing."""
        status = self._read_status(0)
        base, pointers = self._place()
        kept = IA32_RTIT_STATUS.STOPPED.mask | IA32_RTIT_STATUS.PACKET_BYTE_CNT.mask
        self.storage[IA32_RTIT_STATUS.__name__] = status & kept
        self.storage[IA32_RTIT_OUTPUT_BASE.__name__] = base
        self.storage[IA32_RTIT_OUTPUT_MASK_PTRS.__name__] = pointers

    # a board that is saved

    def pause(self) -> None:
        """Nothing is traced until `resume`."""
        if not self._writes:
            return
        self._encoder.stop()
        self._note_place()
        self._writes = not self._encoder.stopped  # what has stopped writes nothing more

    def resume(self) -> None:
        self._writes = self._writes and self._find_output()  # which the guest may have spoiled since it began
        if self._writes:
            self._encoder.go_on(self._settings())

    @property
    def _trace(self) -> bytes:
        return self._encoder.saved_state()

    @_trace.setter
    def _trace(self, saved: bytes) -> None:
        self._encoder.load_state(saved)

    def _settings(self) -> PtSettings:
        control = IA32_RTIT_CTL(self.storage[IA32_RTIT_CTL.__name__])
        settings = PtSettings()
        settings.levels = control.USER << Level.USER | control.OS << Level.KERNEL
        settings.only_cr3 = self.storage[IA32_RTIT_CR3_MATCH.__name__] if control.CR3_EN else None
        settings.branches = bool(control.BRANCH_EN)
        settings.compresses_returns = not control.DIS_RETC
        settings.tsc, settings.mtc, settings.cyc = bool(control.TSC_EN), bool(control.MTC_EN), bool(control.CYC_EN)
        settings.ptwrite, settings.ptwrite_addresses = bool(control.PTW_EN), bool(control.FUP_ON_PTW)
        settings.bytes_between_psbs = 1 << control.PSB_FREQ + _LEAST_PSB_SHIFT
        settings.mtc_shift = control.MTC_FREQ
        settings.cyc_threshold = 1 << control.CYC_THRESH - 1 if control.CYC_THRESH else 0
        ratio = self.capabilities.tsc_per_crystal(self._hz)
        settings.tsc_at_start, settings.tsc_ticks, settings.ctc_ticks = (
            self.tsc_at_start(),
            ratio.numerator,
            ratio.denominator,
        )
        settings.power = bool(control.PWR_EVT_EN)
        settings.core_hz, settings.bus_hz = self._hz, BUS_HZ
        for index, kind in enumerate(_range_kinds(control)):
            if kind:
                first, last = self.storage[f"IA32_RTIT_ADDR{index}_A"], self.storage[f"IA32_RTIT_ADDR{index}_B"]
                settings.add_range(first, last, kind == _TRACE_STOP)
        return settings


def _range_kinds(control: IA32_RTIT_CTL) -> tuple[int, ...]:
    return control.ADDR0_CFG, control.ADDR1_CFG, control.ADDR2_CFG, control.ADDR3_CFG
