"""Perfmon: Intel's architectural performance monitoring as a live device. Intel SDM volume 3, "Performance Monitoring".

Registers turn into settings of a counter bank in the core; nothing is counted here. Bank layout, for N general-purpose
counters: 0..N-1 are those, then come the fixed ones, then what MSR_PERF_METRICS is made of. The global registers have
the fixed ones at bits 32 and up instead.

The bank has no events per cycle, so a counter whose select register has E, INV or CMASK set counts what has a row with
them in its code, or what is known of single cycles (`pmu/per_cycle.py`), and else nothing: the tool refuses that by
name (`PmuModel.event_of`), and a guest's own kernel that asks for it is told of by `tell`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from emulator.sysregs import UndefinedRegister
from pmu.branch_records import BranchUnit
from pmu.counter_bank import CounterBank
from pmu.event import Event
from pmu.intel.cpuid import EXTENDED_VERSION, Leaf, cpuid_of
from pmu.intel.perf_metrics import PerfMetrics
from pmu.intel.recording_counters import OUTPUT_STATUS, RecordingCounters
from pmu.intel.registers import (
    ARCHITECTURAL_LBRS,
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
    MSR_PERF_METRICS,
    RDPMC_FIXED,
    RDPMC_METRICS,
    SLOTS,
    IA32_A_PMCx,
    IA32_FIXED_CTRx,
    IA32_PERFEVTSELx,
    IA32_PMC_FXx_CTR,
    IA32_PMC_GPx_CFG_A,
    IA32_PMC_GPx_CTR,
    IA32_PMCx,
    reserved_in,
)
from pmu.model import PmuModel
from pmu.register import Register
from pmu.x86_counters import Meaning, levels_of, remember

_EVENT = IA32_PERFEVTSELx.EVENT.mask
_PER_CYCLE = IA32_PERFEVTSELx.E.mask | IA32_PERFEVTSELx.INV.mask | IA32_PERFEVTSELx.CMASK.mask
_CODE = _EVENT | IA32_PERFEVTSELx.UMASK.mask | _PER_CYCLE
_USR, _OS = IA32_PERFEVTSELx.USR.mask, IA32_PERFEVTSELx.OS.mask
_INT, _EN = IA32_PERFEVTSELx.INT.mask, IA32_PERFEVTSELx.EN.mask
_FROZEN = IA32_PERF_GLOBAL_STATUS.CTR_FRZ.mask
_METRICS_OVERFLOWED = IA32_PERF_GLOBAL_STATUS.OVF_PERF_METRICS.mask
_METRICS_ENABLED = IA32_PERF_GLOBAL_CTRL.EN_PERF_METRICS.mask
_FIXED_OS = IA32_FIXED_CTR_CTRL.EN0_OS.mask  # of a counter's four bits
_FIXED_USER = IA32_FIXED_CTR_CTRL.EN0_USR.mask
_FIXED_PMI = IA32_FIXED_CTR_CTRL.PMI0.mask
_MASKED = IA32_X2APIC_LVT_PMI.MASK.mask
_FREEZES = IA32_DEBUGCTL.FREEZE_PERFMON_ON_PMI.mask
_LBR_FORMAT = IA32_PERF_CAPABILITIES.LBR_FMT.mask
_LBR, _FREEZES_BRANCHES = IA32_DEBUGCTL.LBR.mask, IA32_DEBUGCTL.FREEZE_LBRS_ON_PMI.mask
_BRANCHES_FROZEN = IA32_PERF_GLOBAL_STATUS.LBR_FRZ.mask
_NO_COUNTERS = _METRICS_OVERFLOWED | _FROZEN | _BRANCHES_FROZEN | OUTPUT_STATUS  # of the status
_VERSIONS = range(2, 7)
_STATUS_SET_VERSION = 4  # ... INUSE, and CTR_FRZ: before, a freeze clears IA32_PERF_GLOBAL_CTRL


class Perfmon(RecordingCounters):
    """Architectural perfmon on `bank`, with the events of `model` and `counters` general-purpose counters."""

    kept = (  # besides the bank
        "storage", "_selects", "_probes", "_levels", "_interrupting", "_active", "_frozen", "_metrics_overflowed",
        "_metrics", "_units", "_stores", "_recorders",
    )  # fmt: skip
    local_vector = IA32_X2APIC_LVT_PMI
    masks_its_vector = True

    def __init__(
        self,
        bank: CounterBank,
        model: PmuModel,
        counters: int | None = None,
        branches: BranchUnit | None = None,
    ) -> None:
        """`branches`: the core's branch records, if it has any."""
        n = model.counters if counters is None else counters
        if not 0 <= n <= MOST_COUNTERS:
            raise ValueError(f"{model.name}: {n} general-purpose counters; there can be 0 to {MOST_COUNTERS}")
        if len(model.fixed_counters) > FIXED_COUNTERS:
            raise ValueError(f"{model.name}: {len(model.fixed_counters)} fixed counters; {FIXED_COUNTERS} are modelled")
        if model.version not in _VERSIONS:
            raise ValueError(f"{model.name}: version {model.version} of perfmon; there are 2 to 6")
        if bank.size < model.bank_size(n):
            raise ValueError(f"{model.name}: {n} counters need a bank of {model.bank_size(n)}, not {bank.size}")
        super().__init__(bank, model, n, n + len(model.fixed_counters))
        self._fixed = len(model.fixed_counters)
        self._general = (1 << n) - 1  # mask of the general-purpose counters
        self._fixed_mask = (1 << self._fixed) - 1
        self._implemented = self._general | self._fixed_mask << FIXED_SHIFT
        metrics = IA32_PERF_CAPABILITIES.PERF_METRICS_AVAILABLE.mask
        self._capabilities = model.identification | (metrics if model.metrics else 0)
        self.branches = branches
        self._units = [] if branches is None else [branches]
        self._stores, self._recorders = [], []
        if branches is not None:
            self._capabilities |= IA32_PERF_CAPABILITIES.make(LBR_FMT=branches.format)
        self._reserved = reserved_in(model.version, self._general, self._fixed_mask, self._capabilities)
        self._widths = [model.counter_width_bits] * n + [fixed.width_bits for fixed in model.fixed_counters]
        for counter, width in enumerate(self._widths):
            bank.set_width(counter, width)
        fixed_events = [model.events.find(fixed.event) for fixed in model.fixed_counters]
        self._fixed_probes = [event.probe_mask for event in fixed_events]
        only_fixed = {event.code for event in fixed_events}
        self._events = {event.code: event.probe_mask for event in model.events if event.code not in only_fixed}
        self._selects = [0] * n  # IA32_PERFEVTSELx
        self._metrics_overflowed = 0  # as software sets it: it never happens
        fields = [model.events.find(name).probe_mask if name else 0 for name in model.metrics]
        self._metrics = PerfMetrics(bank, n + self._fixed, fields, lambda: bank.read(n + SLOTS)) if fields else None
        self._declare()
        self._update_active()

    def _declare(self) -> None:
        """Every register that the device has."""
        version = self.model.version
        self._compute(IA32_PERFEVTSELx, self._read_select, self._write_select)
        self._compute(IA32_PMCx, self._read_counter, self._write_counter_signed)
        if IA32_PERF_CAPABILITIES(self._capabilities).FW_WRITE:
            self._compute(IA32_A_PMCx, self._read_counter, self._write_counter)
        self._compute(IA32_FIXED_CTRx, self._read_fixed, self._write_fixed)
        self._compute(IA32_PERF_CAPABILITIES, lambda index: self._capabilities)
        self._store(IA32_FIXED_CTR_CTRL, self._control_fixed)
        # all general-purpose counters are enabled at power-up, as the manual has it
        self._store(IA32_PERF_GLOBAL_CTRL, self._update_active, initial=self._general)
        self._compute(IA32_PERF_GLOBAL_STATUS, self._status)
        self._compute(IA32_PERF_GLOBAL_STATUS_RESET, lambda index: 0, self._clear_status)
        if version >= _STATUS_SET_VERSION:
            self._compute(IA32_PERF_GLOBAL_STATUS_SET, lambda index: 0, self._set_status)
            self._compute(IA32_PERF_GLOBAL_INUSE, lambda index: self._in_use())
        if version >= EXTENDED_VERSION:
            self._compute(IA32_PMC_GPx_CTR, self._read_counter, self._write_counter)
            self._compute(IA32_PMC_GPx_CFG_A, self._read_select, self._write_select)
            self._compute(IA32_PMC_FXx_CTR, self._read_fixed, self._write_fixed)
        if self._metrics is not None:
            metrics = self._metrics
            self._compute(MSR_PERF_METRICS, lambda index: metrics.read(), lambda value, index: metrics.write(value))
        # architectural LBRs have an enable of their own
        self._enables_branches = self._capabilities & _LBR_FORMAT not in (0, ARCHITECTURAL_LBRS)
        self._store(IA32_DEBUGCTL, self._control_debug)
        if (branches := self.branches) is not None:
            for register, access in branches.accesses().items():
                self._compute(register, access.read, access.write)
        self._store(IA32_X2APIC_LVT_PMI)

    def check(self, register: type[Register], value: int, index: int = 0) -> None:
        """ValueError if writing that value faults."""
        if reserved := value & self._reserved.get(register, 0):
            raise ValueError(f"{register.name_of(index)}: bits {reserved:#x} of {value:#x} are reserved")
        if self.branches is not None and register in self.branches.accesses():
            self.branches.check(register, value)
        super().check(register, value, index)

    def write(self, register: type[Register], value: int, index: int = 0) -> None:
        if value & self._reserved.get(register, 0):
            self.check(register, value, index)
        self._writer_of(register)(value, index)

    # the interrupt

    def interrupt_asserted(self) -> bool:
        """A counter that interrupts has its overflow bit set, and the local APIC's entry is not masked."""
        if self._output_interrupts():
            return not self.storage["IA32_X2APIC_LVT_PMI"] & _MASKED
        if not self._interrupting:  # the usual case of a guest's own PMU
            return False
        return bool(self._bank.overflowed() & self._interrupting and not self.storage["IA32_X2APIC_LVT_PMI"] & _MASKED)

    def take_interrupt(self) -> None:
        """What hardware does as it delivers the interrupt: mask the local APIC's entry, and freeze if told to.

        Afterwards software clears the overflow (and CTR_FRZ) by
        IA32_PERF_GLOBAL_STATUS_RESET, and the mask by writing IA32_X2APIC_LVT_PMI.
        """
        self.storage["IA32_X2APIC_LVT_PMI"] |= _MASKED
        self._take_output_interrupt()
        if self.branches is not None and self.storage["IA32_DEBUGCTL"] & _FREEZES_BRANCHES:
            if self.model.version >= _STATUS_SET_VERSION:
                self.branches.freeze(True)
            else:  # until software enables them anew
                self.write(IA32_DEBUGCTL, self.storage["IA32_DEBUGCTL"] & ~_LBR)
        if not self.storage["IA32_DEBUGCTL"] & _FREEZES:
            return
        if self.model.version >= _STATUS_SET_VERSION:
            self._set_frozen(True)
        else:  # until software enables them anew
            self.write(IA32_PERF_GLOBAL_CTRL, 0)

    # masks: bits 32 and up of a global register are counters N and up of the bank

    def _to_bank(self, counters: int) -> int:
        return counters & self._general | (counters >> FIXED_SHIFT & self._fixed_mask) << self.counters

    def _from_bank(self, counters: int) -> int:
        return counters & self._general | (counters >> self.counters & self._fixed_mask) << FIXED_SHIFT

    # connecting

    def _enabled(self) -> int:
        return self._to_bank(self.storage["IA32_PERF_GLOBAL_CTRL"])

    def _update_active(self) -> None:
        super()._update_active()
        if self._metrics is not None:
            self._count_metrics(self._metrics)

    def _count_metrics(self, metrics: PerfMetrics) -> None:
        """They go with the slots, and have an enable of their own besides."""
        number = self.counters + SLOTS
        enabled = self.storage["IA32_PERF_GLOBAL_CTRL"] & _METRICS_ENABLED
        counts = bool(enabled and self._active >> number & 1 and self._probes[number])
        metrics.count(counts, self._levels[number])

    # general-purpose counters

    def _check(self, register: type[Register], counter: int) -> None:
        if not 0 <= counter < self.counters:
            raise ValueError(f"{register.name_of(counter)}: this PMU has {self.counters} general-purpose counters")

    def _counter_shown_by(self, register: type[Register], index: int) -> int | None:
        if register is IA32_A_PMCx and register in self._readers and 0 <= index < self.counters:
            return index
        return self.counters + index if register is IA32_FIXED_CTRx and 0 <= index < self._fixed else None

    def writer(self, register: type[Register], index: int = 0) -> Callable[[int], None]:
        counter = self._counter_shown_by(register, index)
        if counter is not None:
            return partial(self._write_full, register, index, counter)
        reserved = self._reserved.get(register, 0)
        if not reserved:
            return super().writer(register, index)
        write = self._writer_of(register)

        def checked(value: int) -> None:
            if value & reserved:
                self.check(register, value, index)
            write(value, index)

        return checked

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
        if not 0 <= counter < self.counters:
            self._check(IA32_PERFEVTSELx, counter)
        self._selects[counter] = value = IA32_PERFEVTSELx.write(self._selects[counter], value)
        meaning = self._meanings.get(value)
        if meaning is None:
            meaning = self._meaning(counter, value)
        self._select(counter, *meaning)
        self._selected_anew()

    def _meaning(self, counter: int, value: int) -> Meaning:
        """Of an IA32_PERFEVTSELx with this value."""
        known: int | None = 0
        if value & _EN:
            known = self._probes_of(value & _CODE)
            if known is None:
                self._tell_of_unknown(IA32_PERFEVTSELx.name_of(counter), value, value & _CODE)
        levels = levels_of(user=bool(value & _USR), kernel=bool(value & _OS))
        meaning = known or 0, levels, value & (_INT | _EN) == _INT | _EN
        if known is not None:
            remember(self._meanings, value, meaning)
        return meaning

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
            levels = levels_of(user=bool(bits & _FIXED_USER), kernel=bool(bits & _FIXED_OS))
            interrupts = bool(enabled and bits & _FIXED_PMI)
            self._select(self.counters + index, probes if enabled else 0, levels, interrupts)
        if self._metrics is not None:
            self._count_metrics(self._metrics)
        self._selected_anew()

    # status

    def _status(self, index: int = 0) -> int:
        status = self._from_bank(self._bank.overflowed()) | self._metrics_overflowed
        if self._frozen:
            status |= _FROZEN
        if self.branches is not None and self.branches.frozen:
            status |= _BRANCHES_FROZEN
        return status | self._output_status() if self._recorders or self.pebs is not None else status

    def _clear_status(self, value: int, index: int) -> None:
        """IA32_PERF_GLOBAL_STATUS_RESET: each bit that is written clears its own."""
        if counters := value & self._implemented:
            self._bank.clear_overflowed(self._to_bank(counters))
        if others := value & _NO_COUNTERS:
            self._metrics_overflowed &= ~others
            if others & _FROZEN and self._frozen:
                self._set_frozen(False)
            if others & _BRANCHES_FROZEN and self.branches is not None:
                self.branches.freeze(False)
            self._set_output_status(others, on=False)

    def _set_status(self, value: int, index: int) -> None:
        """IA32_PERF_GLOBAL_STATUS_SET."""
        old = self._status()
        raised = IA32_PERF_GLOBAL_STATUS_SET.write(old, value) & ~old
        if counters := raised & self._implemented:
            self._bank.set_overflowed(self._to_bank(counters))
        self._metrics_overflowed |= raised & _METRICS_OVERFLOWED
        if raised & _FROZEN:
            self._set_frozen(True)
        if raised & _BRANCHES_FROZEN and self.branches is not None:
            self.branches.freeze(True)
        self._set_output_status(raised, on=True)

    def _in_use(self) -> int:
        general = sum(1 << n for n, select in enumerate(self._selects) if select & _EVENT)
        control = self.storage["IA32_FIXED_CTR_CTRL"]
        fixed = sum(1 << i for i in range(self._fixed) if control >> 4 * i & (_FIXED_OS | _FIXED_USER))
        interrupts = any(select & _INT for select in self._selects) or control & 0x8888
        return IA32_PERF_GLOBAL_INUSE.make(PMC=general, FIXED=fixed, PMI=int(bool(interrupts)))

    # user mode

    def _read_by_rdpmc(self, ecx: int) -> int:
        if ecx & RDPMC_FIXED and (index := ecx ^ RDPMC_FIXED) < self._fixed:
            return self._bank.read(self.counters + index)
        if ecx == RDPMC_METRICS and self._metrics is not None:
            return self._metrics.read()
        raise UndefinedRegister(
            f"RDPMC with ECX={ecx:#x}: counters are 0..{self.counters - 1} and {RDPMC_FIXED:#x}+0..{self._fixed - 1}"
        )

    # a guest's own kernel

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        """What CPUID says with this PMU where without it would be `plain`."""
        return self._said_besides(leaf, subleaf, cpuid_of(self.model, leaf, subleaf, plain))

    def registers_of(self, register: type[Register]) -> int:
        if register.bank is None:
            return 1
        if self.branches is not None and register in self.branches.accesses():
            return 1 if register.bank is None else self.branches.entries
        if (of_trace := self.registers_of_trace(register)) is not None:
            return of_trace
        is_fixed = register in (IA32_FIXED_CTRx, IA32_PMC_FXx_CTR)
        return self._fixed if is_fixed else min(self.counters, register.bank.count)

    def set_local_vector(self, entry: int) -> None:
        """The local APIC's entry as software has written it there."""
        declared = IA32_X2APIC_LVT_PMI.VECTOR.mask | IA32_X2APIC_LVT_PMI.DELIVERY_MODE.mask | _MASKED
        self.write(IA32_X2APIC_LVT_PMI, entry & declared)
