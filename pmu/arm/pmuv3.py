"""PmuV3: Arm's performance monitors as a live device. Arm ARM DDI 0487, "The Performance Monitors Extension".

Registers turn into settings of a counter bank in the core; nothing is counted here. Bank layout, for N event counters:
0..N-1 are the event counters, N is the cycle counter. The registers' masks have the cycle counter at bit 31 instead.

A CHAIN counter (odd, counts the overflows of the even one before it) is a 64-bit counter of the bank that is fed the
even counter's own probes: its upper half is the register, its lower half repeats the even counter. So both overflow
bits are exact, and nothing has to stop when the even one wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from emulator.cpu import Level
from emulator.sysregs import Access, SystemRegisters, TrappedRegister
from pmu.arm.registers import (
    ALWAYS,
    CYCLE_COUNTER,
    MOST_EVENT_COUNTERS,
    PMCCFILTR_EL0,
    PMCCNTR_EL0,
    PMCEID0_EL0,
    PMCEID1_EL0,
    PMCNTENCLR_EL0,
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMINTENCLR_EL1,
    PMINTENSET_EL1,
    PMOVSCLR_EL0,
    PMOVSSET_EL0,
    PMSELR_EL0,
    PMSWINC_EL0,
    PMUSERENR_EL0,
    PMXEVCNTR_EL0,
    PMXEVTYPER_EL0,
    ArmRegister,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.counter_bank import CounterBank
from pmu.event import Event
from pmu.model import PmuModel
from pmu.register import Register
from pmu.register_device import RegisterDevice

SW_INCR = 0x0000
CHAIN = 0x001E
CYCLE_BIT = 1 << CYCLE_COUNTER
LOW_HALF = 0xFFFF_FFFF  # of a chained pair: the even counter

_ENABLE = PMCR_EL0.E.mask
_RESET_EVENTS = PMCR_EL0.P.mask
_RESET_CYCLES = PMCR_EL0.C.mask
_NOT_EL1, _NOT_EL0 = PMEVTYPERn_EL0.P.mask, PMEVTYPERn_EL0.U.mask
_NSK, _NSU = PMEVTYPERn_EL0.NSK.mask, PMEVTYPERn_EL0.NSU.mask
_EVENT = PMEVTYPERn_EL0.evtCount.mask


def counts_user(filters: int) -> bool:
    """Whether a PMEVTYPER or PMCCFILTR value lets Non-secure EL0 count: U and NSU are equal."""
    return bool(filters & _NOT_EL0) == bool(filters & _NSU)


def counts_kernel(filters: int) -> bool:
    """Whether a PMEVTYPER or PMCCFILTR value lets Non-secure EL1 count: P and NSK are equal."""
    return bool(filters & _NOT_EL1) == bool(filters & _NSK)


def levels_of(filters: int) -> int:
    """Where a PMEVTYPER or PMCCFILTR value lets its counter count, as ``CounterBank.filter`` takes it."""
    return counts_user(filters) << Level.USER | counts_kernel(filters) << Level.KERNEL


class PmuV3(RegisterDevice):
    """A PMUv3 on `bank`, with the events of `model` and `counters` event counters (default: the model's number)."""

    kept = "storage", "_active", "_chained", "_armed", "_types", "_probes", "_levels"  # besides the bank

    def __init__(self, bank: CounterBank, model: PmuModel, counters: int | None = None) -> None:
        super().__init__()
        n = model.counters if counters is None else counters
        if not 0 <= n <= MOST_EVENT_COUNTERS:
            raise ValueError(f"{model.name}: {n} event counters; PMUv3 has 0 to {MOST_EVENT_COUNTERS}")
        if bank.size < model.bank_size(n):
            raise ValueError(f"{model.name}: {n} event counters need a bank of {model.bank_size(n)}, not {bank.size}")
        if model.counter_width_bits != 32:
            raise ValueError(f"{model.name}: {model.counter_width_bits}-bit event counters (PMUv3p5) are not modelled")
        self.model = model
        self.counters = n
        self._bank = bank
        self._implemented = (1 << n) - 1 | CYCLE_BIT
        self._active = 0  # counters that count now, if their event ever happens: enabled, and PMCR_EL0.E
        self._chained = 0  # odd counters that count CHAIN
        self._armed = 0  # bank mask of PMINTENSET_EL1
        self._types = [0] * n  # PMEVTYPER<n>_EL0
        self._index = [CYCLE_COUNTER if bit >= n else bit for bit in range(32)]
        self._index[CYCLE_COUNTER] = n
        cycles = model.events.by_code(0x0011)
        self._probes = [0] * 32  # what a counter is connected to while it is active
        self._probes[CYCLE_COUNTER] = 0 if cycles is None else cycles.probe_mask
        self._events = {event.code: event.probe_mask for event in model.events}
        self._levels = [levels_of(0)] * (n + 1)  # by which the counters of the bank are filtered
        for counter in range(n):
            self._connect_type(counter, 0)
            bank.set_width(counter, 32)
        bank.set_width(n, 64)
        self._declare()

    def _declare(self) -> None:
        """Every register that the device has."""
        identity = self.model.identification | PMCR_EL0.make(N=self.counters, LC=1)
        self._store(PMCR_EL0, initial=identity)
        self._compute(PMCR_EL0, write=self._write_control)
        for enables in (PMCNTENSET_EL0, PMCNTENCLR_EL0):
            self._store(enables, self._update_active, implemented=self._implemented)
        for interrupts in (PMINTENSET_EL1, PMINTENCLR_EL1):
            self._store(interrupts, self._arm, implemented=self._implemented)
        for overflows in (PMOVSCLR_EL0, PMOVSSET_EL0):
            self._compute(overflows, self._read_overflows, partial(self._write_overflows, overflows))
        for register, bits in zip((PMCEID0_EL0, PMCEID1_EL0), self.model.events.pmceid(), strict=True):
            self._store(register, initial=bits)
        self._store(PMSELR_EL0)
        self._store(PMUSERENR_EL0)
        self._store(PMCCFILTR_EL0, self._filter_cycles)
        self._compute(PMSWINC_EL0, write=lambda value, index: self._increment(value, counts_kernel))
        self._compute(PMCCNTR_EL0, lambda index: self._bank.read(self.counters), self._write_cycles)
        self._compute(PMEVTYPERn_EL0, self._read_type, self._write_type)
        self._compute(PMEVCNTRn_EL0, self._read_count, self._write_count)
        self._compute(PMXEVTYPER_EL0, self._read_selected_type, self._write_selected_type)
        self._compute(PMXEVCNTR_EL0, self._read_selected_count, self._write_selected_count)

    @property
    def version(self) -> int:
        """ID_AA64DFR0_EL1.PMUVer."""
        return self.model.version

    def interrupt_asserted(self) -> bool:
        """PMUIRQ: an overflow bit and its interrupt enable are set, while PMCR_EL0.E is."""
        if not self._armed:  # the usual case of a guest's own PMU
            return False
        return bool(self._bank.overflowed() & self._armed and self.storage["PMCR_EL0"] & _ENABLE)

    def take_interrupt(self) -> None:
        """Nothing: PMUIRQ stays asserted until software clears PMOVSCLR_EL0."""

    def event_of(self, counter: int) -> Event | None:
        """What an event counter is set to count; None for an event that this PMU lacks, which counts nothing."""
        self._check(PMEVTYPERn_EL0, counter)
        return self.model.events.by_code(self._types[counter] & _EVENT)

    # masks: bit 31 of a register is counter N of the bank

    def _to_bank(self, counters: int) -> int:
        return counters & ~CYCLE_BIT | (counters >> CYCLE_COUNTER & 1) << self.counters

    def _from_bank(self, counters: int) -> int:
        n = self.counters
        return counters & (1 << n) - 1 | (counters >> n & 1) << CYCLE_COUNTER

    # control and enables

    def _write_control(self, value: int, index: int) -> None:
        old = self.storage["PMCR_EL0"]
        new = self.storage["PMCR_EL0"] = PMCR_EL0.write(old, value)
        if value & _RESET_EVENTS:
            for counter in range(self.counters):
                self._bank.write(counter, 0)
        if value & _RESET_CYCLES:
            self._bank.write(self.counters, 0)
        if (old ^ new) & _ENABLE:
            self._update_active()

    def _update_active(self) -> None:
        """After a write to the enables: start and stop the counters that this changes."""
        storage = self.storage
        active = storage["counter_enables"] if storage["PMCR_EL0"] & _ENABLE else 0
        changed = active ^ self._active
        self._active = active
        if self._chained:
            changed |= (changed << 1) & self._chained
        self._connect(changed)

    def _connect(self, counters: int) -> None:
        """Bring the bank in line with the registers, for the counters of the mask."""
        connect = self._bank.connect
        while counters:
            bit = counters & -counters
            counters ^= bit
            number = bit.bit_length() - 1
            if bit & self._chained:
                self._connect_chain(number)
            else:
                connect(self._index[number], self._probes[number] if self._active & bit else 0)

    def _connect_chain(self, odd: int) -> None:
        """A CHAIN counter is fed its even partner's probes, and starts from its partner's value below its own.

        It counts where its partner does, unless its own filter has none of that: the overflow then is where it may not
        count. Where the filter has some of it, an overflow is counted wherever it comes.
        """
        bank = self._bank
        both = 0b11 << (odd - 1)
        counts = self._active & both == both and levels_of(self._types[odd]) & self._levels[odd - 1]
        probes = self._probes[odd - 1] if counts else 0
        self._filter(odd, self._levels[odd - 1])
        if probes and not bank.connected(odd):
            bank.write(odd, bank.read(odd) & ~LOW_HALF | bank.read(odd - 1))
        bank.connect(odd, probes)

    def _arm(self) -> None:
        self._armed = self._to_bank(self.storage["interrupt_enables"])
        self._bank.arm(self._armed)

    # overflow status: the bank's

    def _read_overflows(self, index: int) -> int:
        return self._from_bank(self._bank.overflowed())

    def _write_overflows(self, register: type[Register], value: int, index: int) -> None:
        old = self._from_bank(self._bank.overflowed())
        new = register.write(old, value & self._implemented)
        if cleared := old & ~new:
            self._bank.clear_overflowed(self._to_bank(cleared))
        if raised := new & ~old:
            self._bank.set_overflowed(self._to_bank(raised))

    # the cycle counter

    def _write_cycles(self, value: int, index: int) -> None:
        self._bank.write(self.counters, value & PMCCNTR_EL0.declared)

    def _filter_cycles(self) -> None:
        self._filter(self.counters, levels_of(self.storage["PMCCFILTR_EL0"]))

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
        self._connect_type(counter, PMEVTYPERn_EL0.write(self._types[counter], value))

    def _connect_type(self, counter: int, value: int) -> None:
        """Set what a counter counts, and where."""
        self._types[counter] = value
        self._probes[counter] = self._events.get(value & _EVENT, 0)
        self._set_chained(counter, bool(counter & 1) and value & _EVENT == CHAIN)
        if not self._chained >> counter & 1:
            self._filter(counter, levels_of(value))
        self._connect((1 << counter) | (1 << counter + 1) & self._chained)

    def _set_chained(self, counter: int, chained: bool) -> None:
        """Move a counter's value into, or out of, the upper half of a 64-bit one."""
        bit = 1 << counter
        if bool(self._chained & bit) == chained:
            return
        self._chained ^= bit
        bank = self._bank
        bank.connect(counter, 0)
        value = bank.read(counter)
        if chained:
            bank.set_width(counter, 64)
            bank.write(counter, value << 32)
        else:
            bank.set_width(counter, 32)
            bank.write(counter, value >> 32)

    def _read_count(self, counter: int) -> int:
        if not 0 <= counter < self.counters:
            self._check(PMEVCNTRn_EL0, counter)
        count = self._bank.read(counter)
        return count >> 32 if self._chained >> counter & 1 else count

    def _write_count(self, value: int, counter: int) -> None:
        if not 0 <= counter < self.counters:
            self._check(PMEVCNTRn_EL0, counter)
        bank = self._bank
        value &= LOW_HALF
        if not self._chained >> counter & 0b11:
            bank.write(counter, value)
        elif self._chained >> counter & 1:
            bank.write(counter, value << 32 | bank.read(counter - 1))
        else:
            bank.write(counter, value)
            bank.write(counter + 1, bank.read(counter + 1) & ~LOW_HALF | value)

    def _increment(self, counters: int, counts_here: Callable[[int], bool]) -> None:
        """PMSWINC_EL0: one more on each active SW_INCR counter of the mask that counts at the writer's privilege."""
        bank = self._bank
        counters &= self._active & ~CYCLE_BIT
        for counter in range(self.counters):
            if not counters >> counter & 1 or self._types[counter] & _EVENT != SW_INCR:
                continue
            if not counts_here(self._types[counter]):
                continue
            odd = counter + 1
            if self._chained & self._active & 1 << odd and counts_here(self._types[odd]):
                bank.write(odd, bank.read(odd) & ~LOW_HALF | bank.read(counter))
                bank.add(odd, 1)
            bank.add(counter, 1)

    # through PMSELR_EL0. A number that is not there reads as zero and ignores writes: one of the manual's choices

    def _read_selected_type(self, index: int) -> int:
        selected = self.storage["PMSELR_EL0"]
        if selected == CYCLE_COUNTER:
            return self.storage["PMCCFILTR_EL0"]
        return self._types[selected] if selected < self.counters else 0

    def _write_selected_type(self, value: int, index: int) -> None:
        selected = self.storage["PMSELR_EL0"]
        if selected == CYCLE_COUNTER:
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

    # EL0

    def grant_user_access(self, system_registers: SystemRegisters) -> None:
        """Claim the registers that EL0 may ever reach. PMUSERENR_EL0 decides at each access."""
        for register, index in self._user_registers():
            encoding = register.encoding_of(index)
            system_registers.claim(
                encoding,
                Access(
                    None if register.el0_read is None else partial(self._user_read, register, index),
                    None if register.el0_write is None else partial(self._user_write, register, index),
                ),
            )

    def grant_access(self, system_registers: SystemRegisters, level: Callable[[], Level]) -> None:
        """Claim all registers, for a CPU whose kernel is executed: EL1 reaches all, EL0 what PMUSERENR_EL0 says."""
        for register in self.registers():
            assert issubclass(register, ArmRegister)
            for index in range(1 if register.bank is None else self.counters):
                system_registers.claim(register.encoding_of(index), self._access(register, index, level))

    def _access(self, register: type[ArmRegister], index: int, level: Callable[[], Level]) -> Access:
        def read() -> int:
            return self.read(register, index) if level() else self._user_read(register, index)

        def write(value: int) -> None:
            if level():
                self.write(register, value, index)
            else:
                self._user_write(register, index, value)

        def may_write() -> None:
            if not level():
                self._permit(register, index, register.el0_write, "write")

        readable, writable = register in self._readers, register in self._writers
        return Access(read if readable else None, write if writable else None, may_write)

    def _user_registers(self) -> Iterator[tuple[type[ArmRegister], int]]:
        for register in self.registers():
            if issubclass(register, ArmRegister) and (register.el0_read, register.el0_write) != (None, None):
                for index in range(1 if register.bank is None else self.counters):
                    yield register, index

    def _user_read(self, register: type[ArmRegister], index: int) -> int:
        self._permit(register, index, register.el0_read, "read")
        return self.read(register, index)

    def _user_write(self, register: type[ArmRegister], index: int, value: int) -> None:
        self._permit(register, index, register.el0_write, "write")
        if register is PMSWINC_EL0:
            self._increment(value, counts_user)
        else:
            self.write(register, value, index)

    def _permit(self, register: type[ArmRegister], index: int, permitting: int | None, access: str) -> None:
        """TrappedRegister unless a bit of `permitting` is set in PMUSERENR_EL0."""
        enabled = self.storage["PMUSERENR_EL0"]
        if permitting is None or not (permitting == ALWAYS or enabled & permitting):
            raise TrappedRegister(f"{access} of {register.name_of(index)} at EL0 with {PMUSERENR_EL0(enabled)}")
