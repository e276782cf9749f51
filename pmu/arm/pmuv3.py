"""PmuV3: Arm's performance monitors as a live device, reached from an exception level.

Who may: Arm ARM DDI 0487, "Accessing" of each register, and PMUSERENR_EL0. `PmuCounters` is what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from emulator.cpu import Level
from emulator.sysregs import Access, SysReg, SystemRegisters, TrappedRegister, UndefinedRegister
from pmu.arm.branches import PmuBranches
from pmu.arm.counters import CYCLE_BIT, INSTRUCTION_BIT, SW_INCR
from pmu.arm.filters import counts_kernel, counts_user
from pmu.arm.registers import (
    ALWAYS,
    CR,
    ER,
    IR,
    PMCCNTR_EL0,
    PMCNTENCLR_EL0,
    PMCNTENSET_EL0,
    PMICNTR_EL0,
    PMOVSCLR_EL0,
    PMOVSSET_EL0,
    PMSWINC_EL0,
    PMUSERENR_EL0,
    PMXEVCNTR_EL0,
    PMXEVTYPER_EL0,
    PMZR_EL0,
    SW,
    UEN,
    ArmRegister,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.arm.version import INSTRUCTION_COUNTER, SNAPSHOTS
from pmu.register import Register

ID_AA64DFR0_EL1, ID_AA64DFR1_EL1 = SysReg(3, 0, 0, 5, 0), SysReg(3, 0, 0, 5, 1)  # PMUVer, PMSS; PMICNTR
_FEAT_BRBE = 1 << 52  # ID_AA64DFR0_EL1.BRBE
_EVENT = PMEVTYPERn_EL0.evtCount.mask
_OF_ALL_COUNTERS = (PMCNTENSET_EL0, PMCNTENCLR_EL0, PMOVSSET_EL0, PMOVSCLR_EL0)  # a bit for each
_OF_SELECTED = (PMXEVTYPER_EL0, PMXEVCNTR_EL0)
_READ_ONLY = ((CR, CYCLE_BIT), (IR, INSTRUCTION_BIT), (ER, CYCLE_BIT - 1))  # with PMUSERENR_EL0.UEN


class PmuV3(PmuBranches):
    """A PMUv3 on `bank`, with the events of `model` and `counters` event counters (default: the model's number)."""

    def _declare(self) -> None:
        super()._declare()
        self._compute(PMSWINC_EL0, write=lambda value, index: self._increment(value, counts_kernel))

    @property
    def identification(self) -> dict[SysReg, int]:
        """The fields of ID registers that tell of it: register -> its bits."""
        options = self.model.options
        debug_features = self.version << 8 | (SNAPSHOTS in options) << 16
        debug_features |= 0 if self.branches is None else _FEAT_BRBE
        return {ID_AA64DFR0_EL1: debug_features, ID_AA64DFR1_EL1: (INSTRUCTION_COUNTER in options) << 36}

    def writer(self, register: type[Register], index: int = 0) -> Callable[[int], None]:
        counter = self._counter_shown_by(register, index)
        return super().writer(register, index) if counter is None else partial(self._bank.write, counter)

    def _counter_shown_by(self, register: type[Register], index: int) -> int | None:
        if register is PMEVCNTRn_EL0:
            return index if 0 <= index < self.counters else None
        if register is PMICNTR_EL0:
            return self.counters + 1 if register in self._readers else None
        return self.counters if register is PMCCNTR_EL0 else None

    def _increment(self, counters: int, counts_here: Callable[[int], bool]) -> None:
        """PMSWINC_EL0: one more on each active SW_INCR counter of the mask that counts at the writer's privilege."""
        counters &= self._active
        for counter, selected in enumerate(self._types):
            if counters >> counter & 1 and selected & _EVENT == SW_INCR and counts_here(selected):
                self._bank.add(counter, 1)

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
            for index in range(self.registers_of(register)):
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
                for index in range(self.registers_of(register)):
                    yield register, index

    def _user_read(self, register: type[ArmRegister], index: int) -> int:
        self._permit(register, index, register.el0_read, "read")
        value = self.read(register, index)
        if not self.storage["PMUSERENR_EL0"] & UEN:
            return value & ~INSTRUCTION_BIT if register in _OF_ALL_COUNTERS else value
        named = self._user_counters()
        if register in _OF_ALL_COUNTERS:
            return value & named
        counter = self._counter_of(register, index)
        return value if counter is None or named >> counter & 1 else 0

    def _user_write(self, register: type[ArmRegister], index: int, value: int) -> None:
        self._permit(register, index, register.el0_write, "write")
        enabled = self.storage["PMUSERENR_EL0"]
        if register is PMSWINC_EL0:
            self._increment(value if enabled & (UEN | SW) != UEN else value & self._user_counters(), counts_user)
            return
        writable = self._user_counters()
        if enabled & UEN:
            for bit, counters in _READ_ONLY:
                if enabled & bit:
                    writable &= ~counters
        counter = self._counter_of(register, index)
        if register in _OF_ALL_COUNTERS or register is PMZR_EL0:
            self.write(register, value & writable, index)
        elif counter is None or writable >> counter & 1 or not enabled & UEN:
            self.write(register, value, index)

    def _user_counters(self) -> int:
        """The counters that EL0 may see, where PMUSERENR_EL0 lets it."""
        if self.storage["PMUSERENR_EL0"] & UEN:
            return self._implemented & self.storage["PMUACR_EL1"]
        return self._implemented & ~INSTRUCTION_BIT

    def _counter_of(self, register: type[ArmRegister], index: int) -> int | None:
        """Whose register it is; None: it is of no single counter."""
        if register in _OF_SELECTED:
            return self.storage["PMSELR_EL0"]
        return register.counter if register.bank is None else index

    def _permit(self, register: type[ArmRegister], index: int, permitting: int | None, access: str) -> None:
        """TrappedRegister unless a bit of `permitting` is set in PMUSERENR_EL0; None: it is undefined at EL0."""
        if permitting is None:
            raise UndefinedRegister(f"{access} of {register.name_of(index)} at EL0")
        enabled = self.storage["PMUSERENR_EL0"]
        if not (permitting == ALWAYS or enabled & permitting) or enabled & register.el0_traps:
            raise TrappedRegister(f"{access} of {register.name_of(index)} at EL0 with {PMUSERENR_EL0(enabled)}")
