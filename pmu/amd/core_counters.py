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

from emulator.sysregs import UndefinedRegister
from pmu.amd.branch_sampling import BranchSampling
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
from pmu.branch_records import BranchUnit
from pmu.counter_bank import CounterBank
from pmu.event import Event
from pmu.model import PmuModel
from pmu.register import Register
from pmu.x86_counters import Meaning, X86Counters, levels_of, remember

_EVENT = PERF_CTLx.EventSelectLow.mask | PERF_CTLx.EventSelectHigh.mask
_PER_CYCLE = PERF_CTLx.Edge.mask | PERF_CTLx.Inv.mask | PERF_CTLx.CntMask.mask
_CODE = _EVENT | PERF_CTLx.UnitMask.mask | _PER_CYCLE
_USER, _OS = PERF_CTLx.User.mask, PERF_CTLx.Os.mask
_INT, _EN = PERF_CTLx.Int.mask, PERF_CTLx.En.mask
_WHERE = PERF_CTLx.GuestOnly.mask | PERF_CTLx.HostOnly.mask
_FROZEN, _BRANCHES_FROZEN = PerfCntrGlobalStatus.PMCF.mask, PerfCntrGlobalStatus.LBRSF.mask

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


class CoreCounters(X86Counters):
    """On `bank`, with the events of `model` and `counters` counters."""

    kept = (  # besides the bank
        "storage", "_controls", "_probes", "_levels", "_interrupting", "_active", "_overflowed", "_pending", "_frozen",
        "_branch_units",
    )  # fmt: skip
    local_vector = LVT_PMC
    masks_its_vector = False

    def __init__(
        self,
        bank: CounterBank,
        model: PmuModel,
        counters: int | None = None,
        branches: BranchUnit | None = None,
        sampling: BranchSampling | None = None,
    ) -> None:
        """`branches`: the core's last branch stack, if it has one; `sampling`: what samples branches instead."""
        self.branches, self.sampling = branches, sampling
        self._branch_units = [unit for unit in (branches, sampling) if unit is not None]
        n = model.counters if counters is None else counters
        if not 0 <= n <= MOST_COUNTERS:
            raise ValueError(f"{model.name}: {n} core counters; there can be 0 to {MOST_COUNTERS}")
        if bank.size < n:
            raise ValueError(f"{model.name}: {n} counters need a bank of {n}, not {bank.size}")
        super().__init__(bank, model, n, n)
        self._every = (1 << n) - 1
        for counter in range(n):
            bank.set_width(counter, model.counter_width_bits)
        self._known = {event.code: event.probe_mask for event in model.events}  # and thresholds that were asked for
        self._controls = [0] * n  # PERF_CTLx
        self._overflowed = 0  # the bits of PerfCntrGlobalStatus
        self._pending = 0  # mask of the overflows whose interrupt has not been delivered
        self.local = self._every  # mask of the counters that interrupt by LVT_PMC: others are a guest's that runs
        self.when_guests_overflow: Callable[[], None] = lambda: None  # of those that are not local
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
        for unit in self._branch_units:
            for of_branches, access in unit.accesses().items():
                self._compute(of_branches, access.read, access.write)
        self._store(LVT_PMC)

    # the interrupt

    def interrupt_asserted(self) -> bool:
        """An overflow has an interrupt to deliver. While the local APIC's entry is masked it is lost, as there."""
        if not self._interrupting and not self._pending:  # the usual case of a guest's own PMU
            return False
        self._note_overflows()
        if self.storage["LVT_PMC"] & LVT_PMC.M.mask:
            self._pending &= ~self.local
        return bool(self._pending & self.local)

    def take_interrupt(self) -> None:
        """It is delivered; of all overflows that there were."""
        self._pending &= ~self.local

    @property
    def pending(self) -> int:
        """Mask of the counters that have an interrupt to deliver."""
        self._note_overflows()
        return self._pending

    def take_pending(self, counters: int) -> int:
        """Those of the mask have none any more. Which had?"""
        taken = self.pending & counters
        self._pending &= ~taken
        return taken

    def pend(self, counters: int) -> None:
        """Those of the mask have one again."""
        self._pending |= counters

    def _note_overflows(self) -> None:
        new = self._bank.overflowed()
        if self.sampling is not None:
            self._overflow(self.sampling.take_held())
        if not new:
            return
        self._bank.clear_overflowed(new)
        self._overflow(new & ~self.sampling.hold(new & self._interrupting) if self.sampling is not None else new)

    def _overflow(self, new: int) -> None:
        """Of these counters, with all that comes of it."""
        self._overflowed |= new
        interrupting = new & self._interrupting
        self._pending |= interrupting
        if interrupting & self.local and self.storage["DebugCtl"] & DebugCtl.FPCI.mask:
            self._set_frozen(True)
        freezes_branches = self.branches is not None and self.storage["DebugCtl"] & DebugCtl.FLBRI.mask
        if interrupting & self.local and freezes_branches and self.branches is not None:
            self.branches.freeze(True)
        if interrupting & ~self.local:
            self.when_guests_overflow()

    def _enabled(self) -> int:
        return self.storage["PerfCntrGlobalCtl"] & self._every

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

    def _counter_shown_by(self, register: type[Register], index: int) -> int | None:
        return index if register is PERF_CTRx and 0 <= index < self.counters else None

    def event_of(self, counter: int) -> Event | None:
        """The event that a counter is set to; None if this PMU does not count it."""
        self._check(PERF_CTLx, counter)
        return self.model.by_code(self._controls[counter] & _CODE)

    def _write_control(self, value: int, counter: int) -> None:
        self._controls[counter] = value = PERF_CTLx.write(self._controls[counter], value)
        meaning = self._meanings.get(value)
        if meaning is None:
            meaning = self._meaning(counter, value)
        self._select(counter, *meaning)

    def _meaning(self, counter: int, value: int) -> Meaning:
        """Of a PERF_CTL with this value."""
        # only hosts or only guests: of virtual machines, which there are none of, so that it counts nowhere
        enabled = value & _EN and value & _WHERE in (0, _WHERE)
        probes = self._probes_of(value, counter) if enabled else 0
        levels = levels_of(user=bool(value & _USER), kernel=bool(value & _OS))
        meaning = probes, levels, value & (_INT | _EN) == _INT | _EN
        if not enabled or value & _CODE in self._known:  # else it is told of again
            remember(self._meanings, value, meaning)
        return meaning

    def _probes_of(self, control: int, counter: int) -> int:
        code = control & _CODE
        if (probes := self._known.get(code)) is not None:
            return probes
        if (event := self.model.by_code(code)) is not None:
            self._known[code] = event.probe_mask
            return event.probe_mask
        self._tell_of_unknown(PERF_CTLx.name_of(counter), control, code)
        return 0

    def _write_counter(self, value: int, counter: int) -> None:
        self._bank.write(counter, value & PERF_CTRx.CTR.mask)

    # status

    def _status(self) -> int:
        self._note_overflows()
        branches = _BRANCHES_FROZEN if self.branches is not None and self.branches.frozen else 0
        return self._overflowed | branches | (_FROZEN if self._frozen else 0)

    def _compute_status(self, register: type[Register]) -> None:
        """A register that sets or clears status bits, and reads as zero."""

        def write(value: int, index: int) -> None:
            old = self._status()
            new = register.write(old, value & (self._every | _FROZEN | _BRANCHES_FROZEN))
            self._overflowed = new & self._every
            self._pending &= self._overflowed
            if (old ^ new) & _FROZEN:
                self._set_frozen(bool(new & _FROZEN))
            if self.branches is not None and (old ^ new) & _BRANCHES_FROZEN:
                self.branches.freeze(bool(new & _BRANCHES_FROZEN))

        self._compute(register, lambda index: 0, write)

    # user mode

    def _read_by_rdpmc(self, ecx: int) -> int:
        raise UndefinedRegister(f"RDPMC with ECX={ecx:#x}: counters are 0..{self.counters - 1}")

    # a guest's own kernel

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        """What CPUID says with this PMU where without it would be `plain`."""
        return self.with_branches(leaf, subleaf, answer(self.model, self.counters, leaf, plain))

    def check(self, register: type[Register], value: int, index: int = 0) -> None:
        if register is DebugCtl and value & DebugCtl.FLBRI.mask and self.branches is None:
            raise ValueError(f"DebugCtl: FLBRI of {value:#x} is reserved: there is no last branch stack")

    def write(self, register: type[Register], value: int, index: int = 0) -> None:
        if register is DebugCtl:
            self.check(register, value, index)
        super().write(register, value, index)

    def registers_of(self, register: type[Register]) -> int:
        for unit in self._branch_units:
            if register in unit.accesses():
                return 1 if register.bank is None else unit.entries
        return 1 if register.bank is None else min(self._count_of(register), register.bank.count)

    def set_local_vector(self, entry: int) -> None:
        """The local APIC's entry as software has written it there."""
        self.write(LVT_PMC, entry)
