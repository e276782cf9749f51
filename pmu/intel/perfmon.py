"""Perfmon: Intel's architectural performance monitoring as a live device. Intel SDM volume 3, "Performance Monitoring".

Registers turn into settings of a counter bank in the core; nothing is counted here. Bank layout, for N general-purpose
counters: 0..N-1 are those, N..N+2 the fixed ones. The global registers have the fixed ones at bits 32..34 instead.

The bank has no events per cycle, so a counter whose select register has E, INV or CMASK set counts what has a row with
them in its code, or what is known of single cycles (`pmu/per_cycle.py`), and else nothing: the tool refuses that by
name (`PmuModel.event_of`), and a guest's own kernel that asks for it is told of by `tell`.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.cpu import Level
from emulator.sysregs import Access, Msr, SystemRegisters, UndefinedRegister
from pmu.counter_bank import CounterBank
from pmu.event import Event
from pmu.intel.registers import (
    FIXED_COUNTERS,
    FIXED_SHIFT,
    IA32_DEBUGCTL,
    IA32_FIXED_CTR_CTRL,
    IA32_PERF_CAPABILITIES,
    IA32_PERF_GLOBAL_CTRL,
    IA32_PERF_GLOBAL_INUSE,
    IA32_PERF_GLOBAL_STATUS,
    IA32_PERF_GLOBAL_STATUS_RESET,
    IA32_PERF_GLOBAL_STATUS_SET,
    IA32_X2APIC_LVT_PMI,
    MOST_COUNTERS,
    RDPMC_FIXED,
    IA32_A_PMCx,
    IA32_FIXED_CTRx,
    IA32_PERFEVTSELx,
    IA32_PMCx,
)
from pmu.model import PmuModel
from pmu.register import Register
from pmu.register_device import RegisterDevice

_EVENT = IA32_PERFEVTSELx.EVENT.mask
_PER_CYCLE = IA32_PERFEVTSELx.E.mask | IA32_PERFEVTSELx.INV.mask | IA32_PERFEVTSELx.CMASK.mask
_CODE = _EVENT | IA32_PERFEVTSELx.UMASK.mask | _PER_CYCLE
_USR, _OS = IA32_PERFEVTSELx.USR.mask, IA32_PERFEVTSELx.OS.mask
_INT, _EN = IA32_PERFEVTSELx.INT.mask, IA32_PERFEVTSELx.EN.mask
_FROZEN = IA32_PERF_GLOBAL_STATUS.CTR_FRZ.mask
_FIXED_OS = IA32_FIXED_CTR_CTRL.EN0_OS.mask  # of a counter's four bits
_FIXED_USER = IA32_FIXED_CTR_CTRL.EN0_USR.mask
_FIXED_PMI = IA32_FIXED_CTR_CTRL.PMI0.mask
_MASKED = IA32_X2APIC_LVT_PMI.MASK.mask


def _levels(*, user: bool, kernel: bool) -> int:
    """As ``CounterBank.filter`` takes it."""
    return user << Level.USER | kernel << Level.KERNEL


class Perfmon(RegisterDevice):
    """Architectural perfmon on `bank`, with the events of `model` and `counters` general-purpose counters."""

    def __init__(self, bank: CounterBank, model: PmuModel, counters: int | None = None) -> None:
        super().__init__()
        n = model.counters if counters is None else counters
        if not 0 <= n <= MOST_COUNTERS:
            raise ValueError(f"{model.name}: {n} general-purpose counters; there can be 0 to {MOST_COUNTERS}")
        if len(model.fixed_counters) > FIXED_COUNTERS:
            raise ValueError(f"{model.name}: {len(model.fixed_counters)} fixed counters; {FIXED_COUNTERS} are modelled")
        if bank.size < model.bank_size(n):
            raise ValueError(f"{model.name}: {n} counters need a bank of {model.bank_size(n)}, not {bank.size}")
        self.model = model
        self.counters = n
        self.user_rdpmc = False  # CR4.PCE: RDPMC works in user mode
        self.tell: Callable[[str], None] = lambda text: None  # of what a guest asks for and does not get
        self._bank = bank
        self._fixed = len(model.fixed_counters)
        self._general = (1 << n) - 1  # mask of the general-purpose counters
        self._fixed_mask = (1 << self._fixed) - 1
        self._implemented = self._general | self._fixed_mask << FIXED_SHIFT
        self._widths = [model.counter_width_bits] * n + [fixed.width_bits for fixed in model.fixed_counters]
        for counter, width in enumerate(self._widths):
            bank.set_width(counter, width)
        fixed_events = [model.events.find(fixed.event) for fixed in model.fixed_counters]
        self._fixed_probes = [event.probe_mask for event in fixed_events]
        only_fixed = {event.code for event in fixed_events}
        self._events = {event.code: event.probe_mask for event in model.events if event.code not in only_fixed}
        self._selects = [0] * n  # IA32_PERFEVTSELx
        self._probes = [0] * len(self._widths)  # what a counter is connected to, once the global control lets it
        self._levels = [_levels(user=True, kernel=True)] * len(self._widths)  # by which it is filtered
        self._interrupting = 0  # bank mask of the counters that interrupt on overflow
        self._active = 0  # bank mask of the counters that are connected
        self._frozen = False
        self._declare()
        self._update_active()

    def _declare(self) -> None:
        """Every register that the device has."""
        self._compute(IA32_PERFEVTSELx, self._read_select, self._write_select)
        self._compute(IA32_PMCx, self._read_counter, self._write_counter_signed)
        if IA32_PERF_CAPABILITIES(self.model.identification).FW_WRITE:
            self._compute(IA32_A_PMCx, self._read_counter, self._write_counter)
        self._compute(IA32_FIXED_CTRx, self._read_fixed, self._write_fixed)
        self._store(IA32_PERF_CAPABILITIES, initial=self.model.identification)
        self._store(IA32_FIXED_CTR_CTRL, self._control_fixed)
        # all general-purpose counters are enabled at power-up, as the manual has it
        self._store(IA32_PERF_GLOBAL_CTRL, self._update_active, initial=(1 << self.counters) - 1)
        self._compute(IA32_PERF_GLOBAL_CTRL, write=self._write_global_control)
        self._compute(IA32_PERF_GLOBAL_STATUS, lambda index: self._status())
        for register in (IA32_PERF_GLOBAL_STATUS_RESET, IA32_PERF_GLOBAL_STATUS_SET):
            self._compute_status(register)
        self._compute(IA32_PERF_GLOBAL_INUSE, lambda index: self._in_use())
        self._store(IA32_DEBUGCTL)
        self._store(IA32_X2APIC_LVT_PMI)

    # the interrupt

    def interrupt_asserted(self) -> bool:
        """A counter that interrupts has its overflow bit set, and the local APIC's entry is not masked."""
        if not self._interrupting:  # the usual case of a guest's own PMU
            return False
        return bool(self._bank.overflowed() & self._interrupting and not self.storage["IA32_X2APIC_LVT_PMI"] & _MASKED)

    def take_interrupt(self) -> None:
        """What hardware does as it delivers the interrupt: mask the local APIC's entry, and freeze if told to.

        Afterwards software clears the overflow (and CTR_FRZ) by
        IA32_PERF_GLOBAL_STATUS_RESET, and the mask by writing IA32_X2APIC_LVT_PMI.
        """
        self.storage["IA32_X2APIC_LVT_PMI"] |= _MASKED
        if self.storage["IA32_DEBUGCTL"] & IA32_DEBUGCTL.FREEZE_PERFMON_ON_PMI.mask:
            self._set_frozen(True)

    # masks: bits 32..34 of a global register are counters N..N+2 of the bank

    def _to_bank(self, counters: int) -> int:
        return counters & self._general | (counters >> FIXED_SHIFT & 0b111) << self.counters

    def _from_bank(self, counters: int) -> int:
        return counters & self._general | (counters >> self.counters & self._fixed_mask) << FIXED_SHIFT

    # connecting

    def _update_active(self) -> None:
        """Start and stop the counters that the global control or a freeze changes."""
        active = 0 if self._frozen else self._to_bank(self.storage["IA32_PERF_GLOBAL_CTRL"])
        changed = active ^ self._active
        self._active = active
        connect = self._bank.connect
        probes = self._probes
        while changed:
            bit = changed & -changed
            changed ^= bit
            number = bit.bit_length() - 1
            if probes[number]:
                connect(number, probes[number] if active & bit else 0)

    def _select(self, number: int, probes: int, levels: int, interrupts: bool) -> None:
        """Set what a counter of the bank counts while the global control lets it, where, and whether it interrupts."""
        bit = 1 << number
        if levels != self._levels[number]:
            self._levels[number] = levels
            self._bank.filter(number, levels)
        if probes != self._probes[number]:
            self._probes[number] = probes
            if self._active & bit:
                self._bank.connect(number, probes)
        interrupting = self._interrupting | bit if interrupts else self._interrupting & ~bit
        if interrupting != self._interrupting:
            self._interrupting = interrupting
            self._bank.arm(interrupting)

    def _write_global_control(self, value: int, index: int) -> None:
        if value & ~self._implemented:
            raise ValueError(f"IA32_PERF_GLOBAL_CTRL: bits {value & ~self._implemented:#x} of {value:#x} are reserved")
        self.storage["IA32_PERF_GLOBAL_CTRL"] = value
        self._update_active()

    # general-purpose counters

    def _check(self, register: type[Register], counter: int) -> None:
        if not 0 <= counter < self.counters:
            raise ValueError(f"{register.name_of(counter)}: this PMU has {self.counters} general-purpose counters")

    def event_of(self, counter: int) -> Event | None:
        """The event that a general-purpose counter is set to; None if this PMU does not count it."""
        self._check(IA32_PERFEVTSELx, counter)
        code = self._selects[counter] & _CODE
        return self.model.by_code(code) if self._probes_of(code) is not None else None

    def _probes_of(self, code: int) -> int | None:
        """What a general-purpose counter that selects `code` is connected to; None: this PMU does not count it."""
        probes = self._events.get(code)
        if probes is None and code & _PER_CYCLE and (event := self.model.by_code(code)) is not None:
            probes = self._events[code] = event.probe_mask
        return probes

    def _read_select(self, counter: int) -> int:
        self._check(IA32_PERFEVTSELx, counter)
        return self._selects[counter]

    def _write_select(self, value: int, counter: int) -> None:
        self._check(IA32_PERFEVTSELx, counter)
        self._selects[counter] = value = IA32_PERFEVTSELx.write(self._selects[counter], value)
        probes = 0
        if value & _EN:
            known = self._probes_of(value & _CODE)
            if known is None:
                self._tell_of_unknown(value, counter)
            probes = known or 0
        levels = _levels(user=bool(value & _USR), kernel=bool(value & _OS))
        self._select(counter, probes, levels, interrupts=value & (_INT | _EN) == _INT | _EN)

    def _tell_of_unknown(self, select: int, counter: int) -> None:
        """Codes that are in no list count 0 on hardware, too, and are no news."""
        what = self.model.cannot_know(select & _CODE)
        if what is not None:
            name = IA32_PERFEVTSELx.name_of(counter)
            self.tell(f"{name} is {select:#x}: {what} cannot be counted here, and reads as 0")

    def _read_counter(self, counter: int) -> int:
        if not 0 <= counter < self.counters:
            self._check(IA32_PMCx, counter)
        return self._bank.read(counter)

    def _write_counter_signed(self, value: int, counter: int) -> None:
        """IA32_PMCx: 32 bits, sign-extended."""
        self._check(IA32_PMCx, counter)
        low = value & 0xFFFF_FFFF
        self._bank.write(counter, (low | -(low & 0x8000_0000)) & (1 << self._widths[counter]) - 1)

    def _write_counter(self, value: int, counter: int) -> None:
        """IA32_A_PMCx: the full width."""
        if not 0 <= counter < self.counters:
            self._check(IA32_A_PMCx, counter)
        self._write_full(IA32_A_PMCx, counter, counter, value)

    def _write_full(self, register: type[Register], index: int, number: int, value: int) -> None:
        if value >> self._widths[number]:
            raise ValueError(f"{register.name_of(index)}: {value:#x} does not fit in {self._widths[number]} bits")
        self._bank.write(number, value)

    # fixed counters

    def _check_fixed(self, index: int) -> None:
        if not 0 <= index < self._fixed:
            raise ValueError(f"{IA32_FIXED_CTRx.name_of(index)}: this PMU has {self._fixed} fixed counters")

    def _read_fixed(self, index: int) -> int:
        if not 0 <= index < self._fixed:
            self._check_fixed(index)
        return self._bank.read(self.counters + index)

    def _write_fixed(self, value: int, index: int) -> None:
        if not 0 <= index < self._fixed:
            self._check_fixed(index)
        self._write_full(IA32_FIXED_CTRx, index, self.counters + index, value)

    def _control_fixed(self) -> None:
        control = self.storage["IA32_FIXED_CTR_CTRL"]
        for index, probes in enumerate(self._fixed_probes):
            bits = control >> 4 * index
            enabled = bits & (_FIXED_OS | _FIXED_USER)
            levels = _levels(user=bool(bits & _FIXED_USER), kernel=bool(bits & _FIXED_OS))
            interrupts = bool(enabled and bits & _FIXED_PMI)
            self._select(self.counters + index, probes if enabled else 0, levels, interrupts)

    # status

    def _status(self) -> int:
        return self._from_bank(self._bank.overflowed()) | (_FROZEN if self._frozen else 0)

    def _compute_status(self, register: type[Register]) -> None:
        """A register that sets or clears status bits, and reads as zero."""

        def write(value: int, index: int) -> None:
            old = self._status()
            new = register.write(old, value)
            changed = old ^ new
            if cleared := changed & old & self._implemented:
                self._bank.clear_overflowed(self._to_bank(cleared))
            if raised := changed & new & self._implemented:
                self._bank.set_overflowed(self._to_bank(raised))
            if changed & _FROZEN:
                self._set_frozen(bool(new & _FROZEN))

        self._compute(register, lambda index: 0, write)

    def _set_frozen(self, frozen: bool) -> None:
        self._frozen = frozen
        self._update_active()

    def _in_use(self) -> int:
        general = sum(1 << n for n, select in enumerate(self._selects) if select & _EVENT)
        control = self.storage["IA32_FIXED_CTR_CTRL"]
        fixed = sum(1 << i for i in range(self._fixed) if control >> 4 * i & (_FIXED_OS | _FIXED_USER))
        interrupts = any(select & _INT for select in self._selects) or control & 0x888
        return IA32_PERF_GLOBAL_INUSE.make(PMC=general, FIXED=fixed, PMI=int(bool(interrupts)))

    # user mode

    def grant_user_access(self, system_registers: SystemRegisters) -> None:
        """RDPMC, while `user_rdpmc`; the MSRs themselves are the kernel's."""
        system_registers.claim_rdpmc(self.rdpmc)

    def rdpmc(self, ecx: int) -> int:
        """RDPMC in user mode: EDX:EAX. Raises UndefinedRegister where #GP(0) is due."""
        if not self.user_rdpmc:
            raise UndefinedRegister(f"RDPMC with ECX={ecx:#x} while CR4.PCE is 0")
        if ecx < self.counters:
            return self._bank.read(ecx)
        if ecx & RDPMC_FIXED and (index := ecx ^ RDPMC_FIXED) < self._fixed:
            return self._bank.read(self.counters + index)
        raise UndefinedRegister(
            f"RDPMC with ECX={ecx:#x}: counters are 0..{self.counters - 1} and {RDPMC_FIXED:#x}+0..{self._fixed - 1}"
        )

    # a guest's own kernel

    @property
    def cpuid_leaf(self) -> tuple[int, int, int, int]:
        """0AH."""
        return cpuid_leaf_0a(self.model)

    def claim(self, system_registers: SystemRegisters) -> dict[int, str]:
        """All of its MSRs but the local APIC's, for a CPU whose kernel is executed, and RDPMC, where that has been
        allowed: the names by number."""
        self.user_rdpmc = True
        self.grant_user_access(system_registers)
        names: dict[int, str] = {}
        for register in self.registers():
            if register is IA32_X2APIC_LVT_PMI:
                continue
            for index in range(self._registers_of(register)):
                msr = register.encoding_of(index)
                assert isinstance(msr, Msr), "x86's have MSRs"
                system_registers.claim(msr, self._access(register, index))
                names[msr.index] = register.name_of(index)
        return names

    def _registers_of(self, register: type[Register]) -> int:
        if register.bank is None:
            return 1
        return self._fixed if register is IA32_FIXED_CTRx else min(self.counters, register.bank.count)

    def _access(self, register: type[Register], index: int) -> Access:
        implemented = self._implemented if register is IA32_PERF_GLOBAL_CTRL else -1

        def takes(value: int) -> None:
            try:
                register.write(0, value)
            except ValueError as error:
                raise UndefinedRegister(str(error)) from None
            if value & ~implemented:
                raise UndefinedRegister(f"{register.name_of(index)}: bits {value & ~implemented:#x} are reserved")

        return Access(
            (lambda: self.read(register, index)) if register in self._readers else None,
            (lambda value: self.write(register, value, index)) if register in self._writers else None,
            takes=takes,
        )

    def set_local_vector(self, entry: int) -> None:
        """The local APIC's entry as software has written it there."""
        declared = IA32_X2APIC_LVT_PMI.VECTOR.mask | IA32_X2APIC_LVT_PMI.DELIVERY_MODE.mask | _MASKED
        self.write(IA32_X2APIC_LVT_PMI, entry & declared)


ARCHITECTURAL_EVENTS = (0x003C, 0x00C0, 0x013C, 0x4F2E, 0x412E, 0x00C4, 0x00C5)
"""UMASK:EVENT of core cycles, instructions, reference cycles, last-level references and misses, branches, branch
mispredictions: bits 0..6 of CPUID leaf 0AH, EBX."""


def cpuid_leaf_0a(model: PmuModel) -> tuple[int, int, int, int]:
    """EAX, EBX, ECX, EDX of CPUID leaf 0AH. Intel SDM volume 2, "CPUID", leaf 0AH."""
    width = model.fixed_counters[0].width_bits if model.fixed_counters else 0
    eax = model.version | model.counters << 8 | model.counter_width_bits << 16 | len(ARCHITECTURAL_EVENTS) << 24
    ebx = sum(1 << bit for bit, code in enumerate(ARCHITECTURAL_EVENTS) if model.events.by_code(code) is None)
    edx = len(model.fixed_counters) | width << 5
    return eax, ebx, 0, edx
