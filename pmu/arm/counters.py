"""PmuCounters: what PMUv3's registers make of a counter bank. Arm ARM DDI 0487, "The Performance Monitors Extension".

Registers turn into settings of a counter bank in the core; nothing is counted here. Bank layout, for N event counters:
0..N-1 are the event counters, N is the cycle counter, N+1 the instruction counter if there is one. The registers' masks
have those two at bits 31 and 32 instead.

A threshold or an edge (FEAT_PMUv3_TH, FEAT_PMUv3_EDGE) counts where single cycles are known (`pmu/per_cycle.py`), and
else nothing, which `tell` is told. SW_INCR and CHAIN do not look at them.

Reads and writes here are the device's own: who may reach what at which exception level is `PmuV3`'s matter.
"""

from __future__ import annotations

from collections.abc import Callable

from pmu.arm.filters import levels_of
from pmu.arm.links import is_reserved
from pmu.arm.registers import (
    CYCLES,
    INSTRUCTIONS,
    MOST_EVENT_COUNTERS,
    PMCCFILTR_EL0,
    PMCCNTR_EL0,
    PMCEID0_EL0,
    PMCEID1_EL0,
    PMCNTENCLR_EL0,
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMICFILTR_EL0,
    PMICNTR_EL0,
    PMINTENCLR_EL1,
    PMINTENSET_EL1,
    PMMIR_EL1,
    PMOVSCLR_EL0,
    PMOVSSET_EL0,
    PMSELR_EL0,
    PMUACR_EL1,
    PMUSERENR_EL0,
    PMXEVCNTR_EL0,
    PMXEVTYPER_EL0,
    PMZR_EL0,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.arm.version import EDGES, INSTRUCTION_COUNTER, LINKS, THRESHOLDS, Version, checked_version
from pmu.counter_bank import CounterBank
from pmu.event import LESS_SHIFT, Event
from pmu.model import PmuModel
from pmu.register import Register
from pmu.shown_counters import ShownCounters

SW_INCR, INST_RETIRED, CPU_CYCLES, CHAIN = 0x0000, 0x0008, 0x0011, 0x001E
CYCLE_BIT, INSTRUCTION_BIT = 1 << CYCLES, 1 << INSTRUCTIONS
SHORT, LONG = 32, 64  # bits of a counter, and at which it overflows
SHORT_EVENT = 0x3FF  # evtCount before PMUv3p1
LOW_HALF = 0xFFFF_FFFF

_ENABLE, _LONG, _FREEZE = PMCR_EL0.E.mask, PMCR_EL0.LP.mask, PMCR_EL0.FZO.mask
_WITH_CYCLES = PMCR_EL0.DP.mask
_RESET_EVENTS, _RESET_CYCLES = PMCR_EL0.P.mask, PMCR_EL0.C.mask
_EVENT = PMEVTYPERn_EL0.evtCount.mask
_CONDITION = PMEVTYPERn_EL0.TC.mask | PMEVTYPERn_EL0.TH.mask
_EDGE, _LINK = PMEVTYPERn_EL0.TE.mask, PMEVTYPERn_EL0.TLC.mask
_THRESHOLD_BITS = PMEVTYPERn_EL0.TH.hi - PMEVTYPERn_EL0.TH.lo + 1


class PmuCounters(ShownCounters):
    """Of a PMUv3 on `bank`, with the events of `model` and `counters` event counters (default: the model's number)."""

    kept: tuple[str, ...] = (  # besides the bank
        "storage", "_active", "_freezing", "_chains", "_armed", "_interrupting", "_types", "_probes", "_levels",
    )  # fmt: skip

    def __init__(self, bank: CounterBank, model: PmuModel, counters: int | None = None) -> None:
        super().__init__()
        n = model.counters if counters is None else counters
        if not 0 <= n <= MOST_EVENT_COUNTERS:
            raise ValueError(f"{model.name}: {n} event counters; PMUv3 has 0 to {MOST_EVENT_COUNTERS}")
        if bank.size < model.bank_size(n):
            raise ValueError(f"{model.name}: {n} event counters need a bank of {model.bank_size(n)}, not {bank.size}")
        self.model = model
        self.counters = n
        self.version = checked_version(model)  # ID_AA64DFR0_EL1.PMUVer
        self.tell: Callable[[str], None] = lambda text: None  # of what a guest asks for and does not get
        self._bank = bank
        # bits of PMEVTYPER<n>_EL0: of each, and of those with odd numbers besides
        self._condition = (_CONDITION if THRESHOLDS in model.options else 0) | (_EDGE if EDGES in model.options else 0)
        self._link_bits = _LINK if LINKS in model.options else 0
        self._events_mask = (1 << n) - 1
        self._implemented = self._events_mask | CYCLE_BIT
        self._active = 0  # counters that count now, if their event ever happens: enabled, and not frozen
        self._freezing = 0  # counters that an overflow of one of them stops
        self._watched = 0  # counters whose overflow stops what records branches
        self._chains = 0  # odd counters that count CHAIN
        self._armed = self._interrupting = 0  # bank masks: whose overflow stops the core; ... asserts the interrupt
        self._types = [0] * n  # PMEVTYPER<n>_EL0
        self._index = {CYCLES: n, INSTRUCTIONS: n + 1, **{counter: counter for counter in range(n)}}
        self._events = {event.code: event.probe_mask for event in model.events}
        self.kept_ranges = {
            **dict.fromkeys(("_active", "_chains"), range(1 << INSTRUCTIONS + 1)),
            **dict.fromkeys(("_armed", "_interrupting"), range(1 << bank.size)),
            "_probes": range(1 << 2 * LESS_SHIFT),
            "_levels": range(levels_of(0) + 1),
        }
        self._probes = dict.fromkeys(self._index, 0)  # what a counter is connected to while it is active
        self._probes[CYCLES] = self._events.get(CPU_CYCLES, 0)
        self._levels = [levels_of(0)] * (n + 2)  # by which the counters of the bank are filtered
        for counter in range(n):
            self._connect_type(counter, 0)
        bank.set_width(n, LONG)
        self._declare()
        self._set_widths(self._events_mask)

    def _declare(self) -> None:
        """Every register that the device has."""
        version = self.version
        identity = 0 if version >= Version.V3P7 else self.model.identification
        self._store(PMCR_EL0, initial=identity | PMCR_EL0.make(N=self.counters, LC=1))
        absent = (0 if version >= Version.V3P5 else _LONG) | (0 if version >= Version.V3P7 else _FREEZE)
        self._compute(PMCR_EL0, write=lambda value, index: self._control(value & ~absent, self._events_mask))
        implemented = self._implemented
        if INSTRUCTION_COUNTER in self.model.options:
            implemented = self._declare_instructions()
        for enables in (PMCNTENSET_EL0, PMCNTENCLR_EL0):
            self._store(enables, self._update_active, implemented=implemented)
        for interrupts in (PMINTENSET_EL1, PMINTENCLR_EL1):
            self._store(interrupts, self._arm, implemented=implemented)
        self._compute(PMOVSCLR_EL0, self._read_overflows, self._clear_overflows)
        self._compute(PMOVSSET_EL0, self._read_overflows, self._set_overflows)
        for register, bits in zip((PMCEID0_EL0, PMCEID1_EL0), self.model.events.pmceid(), strict=True):
            self._fix(register, bits if version >= Version.V3P1 else bits & LOW_HALF)
        self._store(PMSELR_EL0)
        self._store(PMUSERENR_EL0, implemented=0x7F if version >= Version.V3P9 else 0xF)
        self._store(PMCCFILTR_EL0, self._filter_cycles)
        self._compute(PMCCNTR_EL0, lambda index: self._bank.read(self.counters), self._write_cycles)
        self._compute(PMEVTYPERn_EL0, self._read_type, self._write_type)
        self._compute(PMEVCNTRn_EL0, self._read_count, self._write_count)
        self._compute(PMXEVTYPER_EL0, self._read_selected_type, self._write_selected_type)
        self._compute(PMXEVCNTR_EL0, self._read_selected_count, self._write_selected_count)
        if version >= Version.V3P4:
            width = _THRESHOLD_BITS if self._condition else 0
            edge = 2 if self._link_bits else 1 if self._condition & _EDGE else 0
            self._fix(PMMIR_EL1, PMMIR_EL1.make(SLOTS=self.model.slots, THWIDTH=width, EDGE=edge))
        if version >= Version.V3P9:
            self._store(PMUACR_EL1, implemented=implemented)
            self._compute(PMZR_EL0, write=lambda value, index: self._zero(value))

    def _declare_instructions(self) -> int:
        """The instruction counter; returns the mask of all counters."""
        bank, number = self._bank, self.counters + 1
        self._implemented |= INSTRUCTION_BIT
        self._probes[INSTRUCTIONS] = self._events.get(INST_RETIRED, 0)
        bank.set_width(number, LONG)
        self._compute(PMICNTR_EL0, lambda index: bank.read(number), lambda value, index: bank.write(number, value))
        self._store(PMICFILTR_EL0, self._filter_instructions, initial=INST_RETIRED)
        return self._implemented

    def _fix(self, register: type[Register], value: int) -> None:
        """A register that only tells something."""
        self._compute(register, lambda index: value)

    def interrupt_asserted(self) -> bool:
        """PMUIRQ: an overflow bit and its interrupt enable are set, while the counters are enabled: PMCR_EL0.E."""
        if not self._armed:  # the usual case of a guest's own PMU
            return False
        overflowed = self._bank.overflowed()
        if self._freezing or self._watched:
            self._react(overflowed)
        return bool(overflowed & self._interrupting)

    def _react(self, overflowed: int) -> None:
        """To a look at these counters of the bank: some may have stopped others."""
        self._update_active()

    def take_interrupt(self) -> None:
        """Nothing: PMUIRQ stays asserted until software clears PMOVSCLR_EL0."""

    def registers_of(self, register: type[Register]) -> int:
        """How many there are, each with a number of its own."""
        return 1 if register.bank is None else self.counters

    def event_of(self, counter: int) -> Event | None:
        """What an event counter is set to count; None for an event that this PMU lacks, which counts nothing."""
        self._check(PMEVTYPERn_EL0, counter)
        return self.model.by_code(self._code_of(self._types[counter]))

    # masks: bits 31 and 32 of a register are counters N and N+1 of the bank

    def _to_bank(self, counters: int) -> int:
        return counters & self._events_mask | (counters >> CYCLES & 0b11) << self.counters

    def _from_bank(self, counters: int) -> int:
        return counters & self._events_mask | (counters >> self.counters & 0b11) << CYCLES

    # which counters one control is for

    @property
    def _first_range(self) -> int:
        """The counters of PMCR_EL0's E, FZO and LP."""
        return self._implemented

    @property
    def _enabled(self) -> int:
        """The counters that PMCNTENSET_EL0 may let count."""
        return self._first_range if self.storage["PMCR_EL0"] & _ENABLE else 0

    def _find_freezing(self) -> None:
        """After a write to what says so."""
        self._freezing = self._first_range & ~CYCLE_BIT if self.storage["PMCR_EL0"] & _FREEZE else 0

    def _frozen(self) -> int:
        """The counters that are stopped by an overflow, where there may be some."""
        if not self._from_bank(self._bank.overflowed()) & self._freezing:
            return 0
        return self._freezing | (CYCLE_BIT if self.storage["PMCR_EL0"] & _WITH_CYCLES else 0)

    def _is_long(self, counter: int) -> bool:
        """Whether an event counter overflows at bit 63."""
        return bool(self.storage["PMCR_EL0"] & _LONG)

    def _are_paired(self, even: int) -> bool:
        """Whether the same controls are for it and the one behind."""
        return True

    # control and enables

    def _control(self, value: int, resets: int) -> None:
        """PMCR_EL0 is written; P resets the event counters of the mask."""
        old = self.storage["PMCR_EL0"]
        new = self.storage["PMCR_EL0"] = PMCR_EL0.write(old, value)
        if value & (_RESET_EVENTS | _RESET_CYCLES):
            self._zero((resets if value & _RESET_EVENTS else 0) | (CYCLE_BIT if value & _RESET_CYCLES else 0))
        changed = old ^ new
        if changed & _LONG:
            self._set_widths(self._first_range & self._events_mask)
        if changed & _FREEZE:
            self._find_freezing()
            self._arm()
        if changed & (_ENABLE | _FREEZE | _WITH_CYCLES):
            self._update_active()

    def _zero(self, counters: int) -> None:
        """PMZR_EL0: what is named becomes zero."""
        counters &= self._implemented
        for number, index in self._index.items():
            if counters >> number & 1:
                self._bank.write(index, 0)

    def _set_widths(self, counters: int) -> None:
        """An event counter's width, and at which bit it overflows, for those of the mask."""
        bits = LONG if self.version >= Version.V3P5 else SHORT
        for counter in range(self.counters):
            if counters >> counter & 1:
                self._bank.set_width(counter, bits, LONG if self._is_long(counter) else SHORT)
                if self._chains >> counter + 1 & 1:
                    self._link(counter + 1)

    def _update_active(self) -> None:
        """After a write to the enables, or an overflow: start and stop the counters that this changes."""
        storage, enabled = self.storage, self._enabled
        active = storage["counter_enables"] & enabled
        if self._freezing:
            active &= ~self._frozen()
        changed = active ^ self._active
        self._active = active
        self._interrupting = self._to_bank(storage["interrupt_enables"] & enabled)
        if changed:
            self._connect(changed)

    def _connect(self, counters: int) -> None:
        """Bring the bank in line with the registers, for the counters of the mask."""
        connect = self._bank.connect
        while counters:
            bit = counters & -counters
            counters ^= bit
            number = bit.bit_length() - 1
            connect(self._index[number], self._probes[number] if self._active & bit else 0)
            if bit & self._chains:
                self._link(number)

    def _link(self, odd: int) -> None:
        """A CHAIN counter counts its even partner's overflows, if those come at bit 31.

        Unless its own filter has nothing of where its partner counts: the overflow then is where it may not count.
        Where the filter has some of it, an overflow is counted wherever it comes.
        """
        even = odd - 1
        together = levels_of(self._types[odd]) & self._levels[even]
        counts = self._active >> odd & 1 and together and not self._is_long(even) and self._are_paired(even)
        self._bank.chain(even, bool(counts))

    def _arm(self) -> None:
        armed = self._to_bank(self.storage["interrupt_enables"] | self._freezing | self._watched)
        if armed != self._armed:
            self._armed = armed
            self._bank.arm(armed)
        self._interrupting = self._to_bank(self.storage["interrupt_enables"] & self._enabled)

    # overflow status: the bank's

    def _read_overflows(self, index: int) -> int:
        return self._from_bank(self._bank.overflowed())

    def _clear_overflows(self, value: int, index: int) -> None:
        self._bank.clear_overflowed(self._to_bank(value & self._implemented))
        if self._freezing:
            self._update_active()

    def _set_overflows(self, value: int, index: int) -> None:
        raised = value & self._implemented & ~self._from_bank(self._bank.overflowed())
        if raised:
            self._bank.set_overflowed(self._to_bank(raised))
        if self._freezing:
            self._update_active()

    # the counters of one event

    def _write_cycles(self, value: int, index: int) -> None:
        self._bank.write(self.counters, value & PMCCNTR_EL0.declared)

    def _filter_cycles(self) -> None:
        self._filter(self.counters, levels_of(self.storage["PMCCFILTR_EL0"]))

    def _filter_instructions(self) -> None:
        self._filter(self.counters + 1, levels_of(self.storage["PMICFILTR_EL0"]))

    def _filter(self, counter: int, levels: int) -> None:
        if levels != self._levels[counter]:
            self._levels[counter] = levels
            self._bank.filter(counter, levels)

    # the event counters

    def _check(self, register: type[Register], counter: int) -> None:
        if not 0 <= counter < self.counters:
            raise ValueError(f"{register.name_of(counter)}: this PMU has {self.counters} event counters, 0 to N-1")

    def _read_type(self, counter: int) -> int:
        self._check(PMEVTYPERn_EL0, counter)
        return self._types[counter]

    def _write_type(self, value: int, counter: int) -> None:
        self._check(PMEVTYPERn_EL0, counter)
        if self.version < Version.V3P1:
            value &= ~_EVENT | SHORT_EVENT
        value &= ~(_CONDITION | _EDGE | _LINK) | self._condition | (self._link_bits if counter & 1 else 0)
        self._connect_type(counter, PMEVTYPERn_EL0.write(self._types[counter], value))

    def _connect_type(self, counter: int, value: int) -> None:
        """Set what a counter counts, and where."""
        self._types[counter] = value
        self._probes[counter] = self._probes_of(value)
        bit, chains = 1 << counter, bool(counter & 1) and value & _EVENT == CHAIN
        if self._chains & bit and not chains:
            self._bank.chain(counter - 1, False)
        self._chains = self._chains & ~bit | (bit if chains else 0)
        self._filter(counter, levels_of(value))
        self._connect(bit)
        if self._chains & bit << 1:
            self._link(counter + 1)

    def _probes_of(self, selected: int) -> int:
        """The probes that PMEVTYPER<n>_EL0 with this value counts."""
        code = self._code_of(selected)
        known = self._events.get(code)
        if known is not None:
            return known
        event = self.model.by_code(code)
        if event is not None:
            return event.probe_mask
        self._tell_of_unknown(selected, self.model.cannot_know(code))
        return 0

    def _tell_of_unknown(self, selected: int, what: str | None) -> None:
        if what is not None:
            self.tell(f"PMEVTYPER<n>_EL0 is {selected:#x}: {what} cannot be counted here, and reads as 0")

    def _code_of(self, selected: int) -> int:
        """The event's code, with the condition under which it is counted."""
        return selected & (_EVENT if is_reserved(selected) else _EVENT | self._condition)

    def _read_count(self, counter: int) -> int:
        if not 0 <= counter < self.counters:
            self._check(PMEVCNTRn_EL0, counter)
        return self._bank.read(counter)

    def _write_count(self, value: int, counter: int) -> None:
        if not 0 <= counter < self.counters:
            self._check(PMEVCNTRn_EL0, counter)
        self._bank.write(counter, value & (LOW_HALF if self.version < Version.V3P5 else PMEVCNTRn_EL0.declared))

    # through PMSELR_EL0. A number that is not there reads as zero and ignores writes: one of the manual's choices

    def _read_selected_type(self, index: int) -> int:
        selected = self.storage["PMSELR_EL0"]
        if selected == CYCLES:
            return self.storage["PMCCFILTR_EL0"]
        return self._types[selected] if selected < self.counters else 0

    def _write_selected_type(self, value: int, index: int) -> None:
        selected = self.storage["PMSELR_EL0"]
        if selected == CYCLES:
            self.write(PMCCFILTR_EL0, value)
        elif selected < self.counters:
            self._write_type(value, selected)

    def _read_selected_count(self, index: int) -> int:
        selected = self.storage["PMSELR_EL0"]
        return self._read_count(selected) if selected < self.counters else 0

    def _write_selected_count(self, value: int, index: int) -> None:
        selected = self.storage["PMSELR_EL0"]
        if selected < self.counters:
            self._write_count(value, selected)
