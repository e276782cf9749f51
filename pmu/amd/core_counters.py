"""CoreCounters: AMD's core performance counters, PerfMonV2, as a live device. AMD64 APM volume 2.

Registers turn into settings of a counter bank in the core; nothing is counted here. As with Intel's, the bank has no
events per cycle: a counter with Edge, Inv or CntMask counts what is known of single cycles (`pmu/per_cycle.py`), else
nothing, which a guest's own kernel is told of by `tell`.

An overflow is an event, not a level: it sets a bit of PerfCntrGlobalStatus, which stays, and if the counter has Int it
sends one interrupt, however the bit stands. So software that knows nothing of the global registers is interrupted,
too.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.cpu import Level
from emulator.sysregs import Access, Msr, SystemRegisters, UndefinedRegister
from pmu.amd.registers import (
    LEGACY_COUNTERS,
    LVT_PMC,
    MOST_COUNTERS,
    DebugCtl,
    PERF_CTLx,
    PERF_CTRx,
    PerfCntrGlobalCtl,
    PerfCntrGlobalStatus,
    PerfCntrGlobalStatusClr,
    PerfCntrGlobalStatusSet,
    PerfCtrx,
    PerfEvtSelx,
)
from pmu.counter_bank import CounterBank
from pmu.event import Event
from pmu.model import PmuModel
from pmu.register import Register
from pmu.register_device import RegisterDevice

_EVENT = PERF_CTLx.EventSelectLow.mask | PERF_CTLx.EventSelectHigh.mask
_PER_CYCLE = PERF_CTLx.Edge.mask | PERF_CTLx.Inv.mask | PERF_CTLx.CntMask.mask
_CODE = _EVENT | PERF_CTLx.UnitMask.mask | _PER_CYCLE
_USER, _OS = PERF_CTLx.User.mask, PERF_CTLx.Os.mask
_INT, _EN = PERF_CTLx.Int.mask, PERF_CTLx.En.mask
_WHERE = PERF_CTLx.GuestOnly.mask | PERF_CTLx.HostOnly.mask
_FROZEN = PerfCntrGlobalStatus.PMCF.mask

Leaf = tuple[int, int, int, int]  # EAX, EBX, ECX, EDX
_LARGEST_EXTENDED, _FEATURES, _PERFMON = 0x8000_0000, 0x8000_0001, 0x8000_0022
_PERF_CTR_EXT_CORE = 1 << 23  # of _FEATURES, ECX


def answer(model: PmuModel, counters: int, leaf: int, plain: Leaf) -> Leaf:
    """CPUID of a CPU with these counters, which without would say `plain`. AMD64 APM volume 3, appendix E."""
    eax, ebx, ecx, edx = plain
    if leaf == _LARGEST_EXTENDED:
        return max(eax, _PERFMON), ebx, ecx, edx
    if leaf == _FEATURES:
        return eax, ebx, ecx | _PERF_CTR_EXT_CORE, edx
    if leaf == _PERFMON:
        return model.identification, counters, 0, 0
    return plain


CPUID_LEAVES = (_LARGEST_EXTENDED, _FEATURES, _PERFMON)  # in which it says something


class CoreCounters(RegisterDevice):
    """On `bank`, with the events of `model` and `counters` counters."""

    kept = (  # besides the bank
        "storage", "_controls", "_probes", "_levels", "_interrupting", "_active", "_overflowed", "_pending", "_frozen",
    )  # fmt: skip
    masks_its_vector = False  # the local APIC's entry, when the interrupt is delivered

    def __init__(self, bank: CounterBank, model: PmuModel, counters: int | None = None) -> None:
        super().__init__()
        n = model.counters if counters is None else counters
        if not 0 <= n <= MOST_COUNTERS:
            raise ValueError(f"{model.name}: {n} core counters; there can be 0 to {MOST_COUNTERS}")
        if bank.size < n:
            raise ValueError(f"{model.name}: {n} counters need a bank of {n}, not {bank.size}")
        self.model = model
        self.counters = n
        self.user_rdpmc = False  # CR4.PCE: RDPMC works in user mode
        self.tell: Callable[[str], None] = lambda text: None  # of what a guest asks for and does not get
        self._bank = bank
        self._every = (1 << n) - 1
        for counter in range(n):
            bank.set_width(counter, model.counter_width_bits)
        self._known = {event.code: event.probe_mask for event in model.events}  # and thresholds that were asked for
        self._controls = [0] * n  # PERF_CTLx
        self._probes = [0] * n  # what a counter is connected to, once the global control lets it
        self._levels = [1 << Level.USER | 1 << Level.KERNEL] * n  # by which it is filtered
        self._interrupting = 0  # mask of the counters that interrupt on overflow
        self._active = 0  # mask of the counters that are connected
        self._overflowed = 0  # the bits of PerfCntrGlobalStatus
        self._pending = 0  # mask of the overflows whose interrupt has not been delivered
        self._frozen = False
        self._declare()
        self._update_active()

    def _declare(self) -> None:
        """Every register that the device has."""
        for control in (PERF_CTLx, PerfEvtSelx):
            self._compute(
                control, self._reader(control, self._controls.__getitem__), self._writer(control, self._write_control)
            )
        for counter in (PERF_CTRx, PerfCtrx):
            self._compute(counter, self._reader(counter, self._bank.read), self._writer(counter, self._write_counter))
        self._compute(PerfCntrGlobalStatus, lambda index: self._status())
        # all are enabled at reset, so that software does without that knows version 1 only
        self._store(PerfCntrGlobalCtl, self._update_active, initial=self._every, implemented=self._every)
        for register in (PerfCntrGlobalStatusClr, PerfCntrGlobalStatusSet):
            self._compute_status(register)
        self._store(DebugCtl)
        self._store(LVT_PMC)

    # the interrupt

    def interrupt_asserted(self) -> bool:
        """An overflow has an interrupt to deliver. While the local APIC's entry is masked it is lost, as there."""
        if not self._interrupting and not self._pending:  # the usual case of a guest's own PMU
            return False
        self._note_overflows()
        if self.storage["LVT_PMC"] & LVT_PMC.M.mask:
            self._pending = 0
        return bool(self._pending)

    def take_interrupt(self) -> None:
        """It is delivered; of all overflows that there were."""
        self._pending = 0

    def _note_overflows(self) -> None:
        new = self._bank.overflowed()
        if not new:
            return
        self._bank.clear_overflowed(new)
        self._overflowed |= new
        self._pending |= new & self._interrupting
        if new & self._interrupting and self.storage["DebugCtl"] & DebugCtl.FPCI.mask:
            self._set_frozen(True)

    # connecting

    def _update_active(self) -> None:
        """Start and stop the counters that the global control or a freeze changes."""
        active = 0 if self._frozen else self.storage["PerfCntrGlobalCtl"] & self._every
        changed = active ^ self._active
        self._active = active
        while changed:
            bit = changed & -changed
            changed ^= bit
            number = bit.bit_length() - 1
            if self._probes[number]:
                self._bank.connect(number, self._probes[number] if active & bit else 0)

    def _select(self, number: int, probes: int, levels: int, interrupts: bool) -> None:
        """Set what a counter counts while the global control lets it, where, and whether it interrupts."""
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
            self._note_overflows()  # of before, with what held then
            self._interrupting = interrupting
            self._bank.arm(interrupting)

    # counters

    def _check(self, register: type[Register], counter: int) -> None:
        if not 0 <= counter < self._count_of(register):
            raise ValueError(f"{register.name_of(counter)}: this PMU has {self._count_of(register)} of them")

    def _count_of(self, register: type[Register]) -> int:
        return min(self.counters, LEGACY_COUNTERS) if register in (PerfEvtSelx, PerfCtrx) else self.counters

    def _reader(self, register: type[Register], read: Callable[[int], int]) -> Callable[[int], int]:
        most = self._count_of(register)

        def checked(counter: int) -> int:
            if not 0 <= counter < most:
                self._check(register, counter)
            return read(counter)

        return checked

    def _writer(self, register: type[Register], write: Callable[[int, int], None]) -> Callable[[int, int], None]:
        most = self._count_of(register)

        def checked(value: int, counter: int) -> None:
            if not 0 <= counter < most:
                self._check(register, counter)
            write(value, counter)

        return checked

    def event_of(self, counter: int) -> Event | None:
        """The event that a counter is set to; None if this PMU does not count it."""
        self._check(PERF_CTLx, counter)
        return self.model.by_code(self._controls[counter] & _CODE)

    def _write_control(self, value: int, counter: int) -> None:
        self._controls[counter] = value = PERF_CTLx.write(self._controls[counter], value)
        # only hosts or only guests: of virtual machines, which there are none of, so that it counts nowhere
        enabled = value & _EN and value & _WHERE in (0, _WHERE)
        probes = self._probes_of(value, counter) if enabled else 0
        levels = bool(value & _USER) << Level.USER | bool(value & _OS) << Level.KERNEL
        self._select(counter, probes, levels, interrupts=value & (_INT | _EN) == _INT | _EN)

    def _probes_of(self, control: int, counter: int) -> int:
        code = control & _CODE
        if (probes := self._known.get(code)) is not None:
            return probes
        if (event := self.model.by_code(code)) is not None:
            self._known[code] = event.probe_mask
            return event.probe_mask
        what = self.model.cannot_know(code)  # nothing, of codes that are in no list: they count 0 on hardware, too
        if what is not None:
            self.tell(f"{PERF_CTLx.name_of(counter)} is {control:#x}: {what} cannot be counted here, and reads as 0")
        return 0

    def _write_counter(self, value: int, counter: int) -> None:
        self._bank.write(counter, value & PERF_CTRx.CTR.mask)

    # status

    def _status(self) -> int:
        self._note_overflows()
        return self._overflowed | (_FROZEN if self._frozen else 0)

    def _compute_status(self, register: type[Register]) -> None:
        """A register that sets or clears status bits, and reads as zero."""

        def write(value: int, index: int) -> None:
            old = self._status()
            new = register.write(old, value & (self._every | _FROZEN))
            self._overflowed = new & self._every
            self._pending &= self._overflowed
            if (old ^ new) & _FROZEN:
                self._set_frozen(bool(new & _FROZEN))

        self._compute(register, lambda index: 0, write)

    def _set_frozen(self, frozen: bool) -> None:
        self._frozen = frozen
        self._update_active()

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
        raise UndefinedRegister(f"RDPMC with ECX={ecx:#x}: counters are 0..{self.counters - 1}")

    # a guest's own kernel

    def cpuid(self, leaf: int, plain: Leaf) -> Leaf:
        """What CPUID says with this PMU where without it would be `plain`."""
        return answer(self.model, self.counters, leaf, plain)

    def claim(self, system_registers: SystemRegisters) -> dict[int, str]:
        """All of its MSRs but the local APIC's, for a CPU whose kernel is executed, and RDPMC, where that has been
        allowed: the names by number."""
        self.user_rdpmc = True
        self.grant_user_access(system_registers)
        names: dict[int, str] = {}
        for register in self.registers():
            if register is LVT_PMC:
                continue
            for index in range(1 if register.bank is None else min(self._count_of(register), register.bank.count)):
                msr = register.encoding_of(index)
                assert isinstance(msr, Msr), "x86's have MSRs"
                system_registers.claim(msr, self._access(register, index))
                names[msr.index] = register.name_of(index)
        return names

    def _access(self, register: type[Register], index: int) -> Access:
        def takes(value: int) -> None:
            try:
                register.write(0, value)
            except ValueError as error:
                raise UndefinedRegister(str(error)) from None

        return Access(
            (lambda: self.read(register, index)) if register in self._readers else None,
            (lambda value: self.write(register, value, index)) if register in self._writers else None,
            takes=takes,
        )

    def set_local_vector(self, entry: int) -> None:
        """The local APIC's entry as software has written it there."""
        self.write(LVT_PMC, entry)
