"""ActivityMonitors: counters of a PE for those who manage its clock. Arm ARM DDI 0487, "Activity Monitors Extension".

They are four with fixed events, and auxiliary ones; they count at every exception level, not while the PE waits in WFI
or WFE, wrap at 64 bits, and never interrupt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from emulator.cpu import Level
from emulator.sysregs import Access, HigherRegister, SysReg, SystemRegisters, TrappedRegister
from pmu.arm.amu_registers import (
    AMCFGR_EL0,
    AMCG1IDR_EL0,
    AMCGCR_EL0,
    AMCNTENCLR0_EL0,
    AMCNTENCLR1_EL0,
    AMCNTENSET0_EL0,
    AMCNTENSET1_EL0,
    AMCR_EL0,
    AMUSERENR_EL0,
    ARCHITECTED,
    CONSTANT,
    EVENTS,
    MOST_AUXILIARY,
    AMEVCNTR0n_EL0,
    AMEVCNTR1n_EL0,
    AMEVTYPER0n_EL0,
    AMEVTYPER1n_EL0,
    AmuRegister,
    Version,
)
from pmu.counter_bank import CounterBank
from pmu.event import Event, EventList
from pmu.register import Register
from pmu.register_device import RegisterDevice

ID_AA64PFR0_EL1 = SysReg(3, 0, 0, 4, 0)
_BITS = 64
_WRAP = (1 << _BITS) - 1
_ALL = (1 << ARCHITECTED) - 1


class ActivityMonitors(RegisterDevice):
    """Of one CPU. The bank has a counter for each but the constant one's, whose place in it stays unused."""

    kept = "storage", "_connected", "_constant_count", "_constant_since"  # besides the bank

    def __init__(
        self,
        bank: CounterBank,
        version: Version,
        events: EventList,
        auxiliary: Sequence[Event],
        constant: Callable[[], int],
    ) -> None:
        """`events`: those that the core has; of the architected ones, what is not among them never happens.

        `auxiliary`: what the second group counts. `constant`: ticks of the system counter in which the CPU has not
        waited.
        """
        super().__init__()
        if len(auxiliary) > MOST_AUXILIARY:
            raise ValueError(f"{len(auxiliary)} auxiliary activity monitors; there can be {MOST_AUXILIARY}")
        if bank.size < self.bank_size(len(auxiliary)):
            raise ValueError(f"{bank.size} counters in the bank, and {self.bank_size(len(auxiliary))} monitors")
        self.version = version
        self.auxiliary = len(auxiliary)
        self._bank = bank
        architected = [events.by_code(code) for code in EVENTS]
        self._probes = [0 if event is None else event.probe_mask for event in (*architected, *auxiliary)]
        self._codes = [*EVENTS, *(event.code for event in auxiliary)]
        self._constant = constant
        self._constant_count = self._constant_since = 0
        self._connected = 0  # counters that count, of both groups
        self.kept_ranges = {"_connected": range(1 << len(self._codes))}
        for counter in range(len(self._codes)):
            bank.set_width(counter, _BITS)
        self._declare()

    @staticmethod
    def bank_size(auxiliary: int) -> int:
        return ARCHITECTED + auxiliary

    def _declare(self) -> None:
        later = AMCR_EL0.declared if self.version >= Version.V1P1 else ~AMCR_EL0.CG1RZ.mask
        self._store(AMCR_EL0, implemented=later)
        groups = 1 if self.auxiliary else 0
        self._fix(AMCFGR_EL0, AMCFGR_EL0.make(N=len(self._codes) - 1, SIZE=_BITS - 1, HDBG=1, NCG=groups))
        self._fix(AMCGCR_EL0, AMCGCR_EL0.make(CG0NC=ARCHITECTED, CG1NC=self.auxiliary))
        self._store(AMUSERENR_EL0)
        for enables in (AMCNTENSET0_EL0, AMCNTENCLR0_EL0):
            self._store(enables, self._connect)
        self._compute(AMEVCNTR0n_EL0, self._read_architected, self._write_architected)
        self._compute(AMEVTYPER0n_EL0, lambda n: EVENTS[self._checked(AMEVTYPER0n_EL0, n)])
        there = (1 << self.auxiliary) - 1
        self.storage["auxiliary_enables"] = 0
        if self.auxiliary:
            for its_enables in (AMCNTENSET1_EL0, AMCNTENCLR1_EL0):
                self._store(its_enables, self._connect, implemented=there)
            self._compute(AMEVCNTR1n_EL0, self._read_auxiliary, self._write_auxiliary)
            self._compute(AMEVTYPER1n_EL0, lambda n: self._codes[ARCHITECTED + self._checked(AMEVTYPER1n_EL0, n)])
        if self.version >= Version.V1P1:
            self._fix(AMCG1IDR_EL0, AMCG1IDR_EL0.make(AMEVCNTR1=there, AMEVCNTOFF1=there))

    def _fix(self, register: type[Register], value: int) -> None:
        self._compute(register, lambda index: value)

    @property
    def identification(self) -> dict[SysReg, int]:
        """The fields of ID registers that tell of it: register -> its bits."""
        return {ID_AA64PFR0_EL1: self.version << 44}

    def start_all(self) -> None:
        """As firmware leaves them to a kernel: all count. Linux, Documentation/arch/arm64/booting.rst."""
        self.write(AMCNTENSET0_EL0, _ALL)
        if self.auxiliary:
            self.write(AMCNTENSET1_EL0, (1 << self.auxiliary) - 1)

    # counters

    def registers_of(self, register: type[Register]) -> int:
        """How many there are of a bank's registers, and 1 of one that stands alone."""
        if register.bank is None:
            return 1
        return ARCHITECTED if register.bank.count == ARCHITECTED else self.auxiliary

    def event_of(self, counter: int) -> None:
        """No register selects one: all are fixed."""

    def _checked(self, register: type[Register], index: int) -> int:
        if not 0 <= index < self.registers_of(register):
            raise ValueError(f"{register.name_of(index)}: there are {self.registers_of(register)} of them, from 0 on")
        return index

    def _connect(self) -> None:
        """After a write to the enables: start and stop counters."""
        enabled = self.storage["architected_enables"] | self.storage["auxiliary_enables"] << ARCHITECTED
        changed = self._connected ^ enabled
        if changed >> CONSTANT & 1:
            self._write_constant(self._read_constant())
        self._connected = enabled
        for counter, probes in enumerate(self._probes):
            if changed >> counter & 1:
                self._bank.connect(counter, probes if enabled >> counter & 1 else 0)

    def _read_constant(self) -> int:
        counts = self._connected >> CONSTANT & 1
        return self._constant_count + (self._constant() - self._constant_since if counts else 0) & _WRAP

    def _write_constant(self, value: int) -> None:
        self._constant_count = value
        self._constant_since = self._constant()

    def _read_architected(self, n: int) -> int:
        self._checked(AMEVCNTR0n_EL0, n)
        return self._read_constant() if n == CONSTANT else self._bank.read(n)

    def _write_architected(self, value: int, n: int) -> None:
        self._checked(AMEVCNTR0n_EL0, n)
        if n == CONSTANT:
            self._write_constant(value)
        else:
            self._bank.write(n, value)

    def _read_auxiliary(self, n: int) -> int:
        return self._bank.read(ARCHITECTED + self._checked(AMEVCNTR1n_EL0, n))

    def _write_auxiliary(self, value: int, n: int) -> None:
        self._bank.write(ARCHITECTED + self._checked(AMEVCNTR1n_EL0, n), value)

    # EL1 and EL0, below firmware that traps nothing

    def grant_access(self, system_registers: SystemRegisters, level: Callable[[], Level]) -> None:
        """Claim all registers, for a CPU whose kernel is executed: EL1 reads, and EL0 if AMUSERENR_EL0 lets it."""
        for register in self.registers():
            assert issubclass(register, AmuRegister)
            for index in range(self.registers_of(register)):
                system_registers.claim(
                    register.encoding_of(index),
                    Access(
                        partial(self._read_for, register, index, level),
                        partial(self._write_for, register, index, level),
                        partial(_check_level, register, index, level),
                    ),
                )

    def _write_for(self, register: type[AmuRegister], index: int, level: Callable[[], Level], value: int) -> None:
        _check_level(register, index, level)
        self.write(register, value, index)

    def _read_for(self, register: type[AmuRegister], index: int, level: Callable[[], Level]) -> int:
        if level() == Level.USER and register.user_enable:
            self._check_user(register, index)
        if register is AMEVCNTR1n_EL0 and self.storage["AMCR_EL0"] & AMCR_EL0.CG1RZ.mask:
            return 0
        return self.read(register, index)

    def _check_user(self, register: type[AmuRegister], index: int) -> None:
        """Raises TrappedRegister, to EL1."""
        enabled = AMUSERENR_EL0(self.storage["AMUSERENR_EL0"])
        if not enabled.EN:
            raise TrappedRegister(f"read of {register.name_of(index)} at EL0 with {enabled}")


def _check_level(register: type[AmuRegister], index: int, level: Callable[[], Level]) -> None:
    """Of a write. Raises HigherRegister."""
    if register.written_from is None or level() < register.written_from:
        raise HigherRegister(f"write of {register.name_of(index)} at EL{level():d}")
