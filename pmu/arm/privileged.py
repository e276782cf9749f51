"""PrivilegedPmuV3: a PMUv3 as EL3, EL2, EL1 and EL0 reach it: partitioned by EL2, prohibited and trapped by both.

No engine here executes EL2 and EL3: this is the register model, for those who drive it themselves. It has one Security
state, Non-secure, EL2 is enabled, HCR_EL2.{E2H,TGE} are zero, and there are no fine-grained traps (FEAT_FGT). What the
manual leaves CONSTRAINED UNPREDICTABLE: EL1 and EL0 trap to EL2 at event counters that EL2 has reserved, and
MDCR_EL2.HPMN of zero or above PMCR_EL0.N reserves none.
"""

from __future__ import annotations

from enum import IntEnum

from emulator.sysregs import SysReg, TrappedRegister, UndefinedRegister
from pmu.arm.counters import CYCLE_BIT, INSTRUCTION_BIT
from pmu.arm.pmuv3 import PmuV3
from pmu.arm.registers import (
    CYCLES,
    PMCCFILTR_EL0,
    PMCNTENCLR_EL0,
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMICFILTR_EL0,
    PMINTENCLR_EL1,
    PMINTENSET_EL1,
    PMOVSCLR_EL0,
    PMOVSSET_EL0,
    PMSWINC_EL0,
    PMUACR_EL1,
    PMXEVCNTR_EL0,
    PMXEVTYPER_EL0,
    PMZR_EL0,
    ArmRegister,
    PMEVTYPERn_EL0,
)
from pmu.arm.snapshots import PMECR_EL1
from pmu.arm.version import Version
from pmu.counter_bank import CounterBank
from pmu.model import PmuModel
from pmu.register import RW


class ExceptionLevel(IntEnum):
    EL0 = 0
    EL1 = 1
    EL2 = 2
    EL3 = 3


EL0, EL1, EL2, EL3 = ExceptionLevel


class Trap(TrappedRegister):
    """The access is an exception of class 0x18 to `level`."""

    def __init__(self, level: ExceptionLevel, why: str) -> None:
        super().__init__(why)
        self.level = level


class MDCR_EL2(ArmRegister):
    """Monitor Debug Configuration, of EL2: its fields for the PMU."""

    encoding = SysReg(3, 4, 1, 1, 1)
    least_level = 2

    HPMN = RW(4, 0)  # event counters from this on are EL2's
    TPMCR = RW(5)  # trap EL1 and EL0 at PMCR_EL0
    TPM = RW(6)  # ... at all of the PMU
    HPME = RW(7)  # enable EL2's counters, as PMCR_EL0.E the others
    HPMD = RW(17)  # others do not count at EL2: from PMUv3p1 on
    HCCD = RW(23)  # nor does the cycle counter: from PMUv3p5 on
    HLP = RW(26)  # as PMCR_EL0.LP, for EL2's: from PMUv3p5 on
    HPMFZO = RW(29)  # as PMCR_EL0.FZO, for EL2's: from PMUv3p7 on
    PMSSE = RW(31, 30)  # as PMECR_EL1.SSE, unless it is 0b01: with FEAT_PMUv3_SS


class MDCR_EL3(ArmRegister):
    """Monitor Debug Configuration, of EL3: its fields for the PMU."""

    encoding = SysReg(3, 6, 1, 3, 1)
    least_level = 3

    TPM = RW(6)  # trap lower levels at all of the PMU
    EnPM2 = RW(7)  # do not trap them at what PMUv3p9 added
    SPME = RW(17)  # counting at EL3 is allowed
    SCCD = RW(23)  # the cycle counter does not count at EL3: from PMUv3p5 on
    PMSSE = RW(31, 30)  # as MDCR_EL2.PMSSE, and before it
    MCCD = RW(34)  # as SCCD, from PMUv3p7 on
    MPMX = RW(35)  # counting at EL3 is allowed to EL2's counters at most: from PMUv3p7 on
    EnPMSS = RW(44)  # do not trap lower levels at snapshots


_SINCE = {
    MDCR_EL2: {"HPMD": Version.V3P1, "HCCD": Version.V3P5, "HLP": Version.V3P5, "HPMFZO": Version.V3P7},
    MDCR_EL3: {"EnPM2": Version.V3P9, "SCCD": Version.V3P5, "MCCD": Version.V3P7, "MPMX": Version.V3P7},
}
_OF_SNAPSHOTS = {"PMSSE", "EnPMSS"}
_SET_AND_CLEAR = (PMCNTENSET_EL0, PMCNTENCLR_EL0, PMOVSSET_EL0, PMOVSCLR_EL0, PMINTENSET_EL1, PMINTENCLR_EL1)
_READ_MASKED = (*_SET_AND_CLEAR, PMUACR_EL1)
_WRITE_MASKED = (*_SET_AND_CLEAR, PMZR_EL0, PMSWINC_EL0)
_UNCONTROLLED = 0b01  # PMSSE: the next lower level decides


class PrivilegedPmuV3(PmuV3):
    """At first as after a reset by firmware that keeps nothing for itself: all is EL1's."""

    def __init__(self, bank: CounterBank, model: PmuModel, counters: int | None = None) -> None:
        super().__init__(bank, model, counters)
        snapshots = PMECR_EL1 in self._readers
        for register, initial in (
            (MDCR_EL2, MDCR_EL2.make(HPMN=self.counters, PMSSE=_UNCONTROLLED)),
            (MDCR_EL3, MDCR_EL3.make(EnPM2=1, SPME=1, EnPMSS=1, PMSSE=_UNCONTROLLED)),
        ):
            there = 0
            for name, field in register.fields.items():
                has = snapshots if name in _OF_SNAPSHOTS else self.version >= _SINCE[register].get(name, Version.V3P0)
                there |= field.mask if has else 0
            self._store(register, self._partition, initial & there, there)

    # who controls which counter

    @property
    def _hypervisor(self) -> MDCR_EL2:
        return MDCR_EL2(self.storage.get("MDCR_EL2", MDCR_EL2.make(HPMN=self.counters)))

    @property
    def _guest_counters(self) -> int:
        """Event counters of the first range: as many as the effective MDCR_EL2.HPMN says."""
        reserved_from = self._hypervisor.HPMN
        return reserved_from if 0 < reserved_from <= self.counters else self.counters

    @property
    def _first_range(self) -> int:
        return self._implemented & ~self._second_range

    @property
    def _second_range(self) -> int:
        """The event counters that are EL2's."""
        return self._events_mask & ~((1 << self._guest_counters) - 1)

    @property
    def _enabled(self) -> int:
        return super()._enabled | (self._second_range if self._hypervisor.HPME else 0)

    def _find_freezing(self) -> None:
        super()._find_freezing()
        self._freezing |= self._second_range if self._hypervisor.HPMFZO else 0

    def _frozen(self) -> int:
        overflows = self._from_bank(self._bank.overflowed())
        second = self._freezing & self._second_range
        first = self._freezing & self._first_range
        control = PMCR_EL0(self.storage["PMCR_EL0"])
        frozen = second if overflows & second else 0
        if overflows & first:
            frozen |= first | (CYCLE_BIT if control.DP else 0)
        return frozen

    def _is_long(self, counter: int) -> bool:
        if self._second_range >> counter & 1:
            return bool(self._hypervisor.HLP)
        return super()._is_long(counter)

    def _are_paired(self, even: int) -> bool:
        return bool(self._second_range >> even & 1) == bool(self._second_range >> even + 1 & 1)

    def _partition(self) -> None:
        """MDCR_EL2 or MDCR_EL3 has been written."""
        self._set_widths(self._events_mask)
        self._find_freezing()
        self._arm()
        self._update_active()

    @property
    def _capture_control(self) -> int:
        for level in (MDCR_EL3(self.storage["MDCR_EL3"]).PMSSE, self._hypervisor.PMSSE):
            if level != _UNCONTROLLED:
                return level
        return super()._capture_control

    # where a counter may count

    def may_count(self, counter: int, level: ExceptionLevel) -> bool:
        """Whether a counter, by its number in PMCNTENSET_EL0, is not filtered out or prohibited at that level.

        "CountPMUEvents", but for what enables and freezes it.
        """
        return not self._is_filtered(counter, level) and not self._is_prohibited(counter, level)

    def _is_filtered(self, counter: int, level: ExceptionLevel) -> bool:
        if counter == CYCLES:
            filters = PMEVTYPERn_EL0(self.read(PMCCFILTR_EL0))
        elif counter > CYCLES:
            filters = PMEVTYPERn_EL0(self.read(PMICFILTR_EL0))
        else:
            filters = PMEVTYPERn_EL0(self.read(PMEVTYPERn_EL0, counter))
        return {
            EL0: filters.U != filters.NSU,
            EL1: filters.P != filters.NSK,
            EL2: not filters.NSH,
            EL3: filters.M != filters.P,
        }[level]

    def _is_prohibited(self, counter: int, level: ExceptionLevel) -> bool:
        hypervisor, monitor = self._hypervisor, MDCR_EL3(self.storage["MDCR_EL3"])
        is_first = bool(self._first_range >> counter & 1)
        prohibited = False
        if level == EL3:
            prohibited = bool(monitor.MPMX and (is_first or not monitor.SPME)) or not (monitor.SPME or monitor.MPMX)
        elif level == EL2:
            prohibited = bool(is_first and hypervisor.HPMD)
        if counter != CYCLES:
            return prohibited
        if prohibited and PMCR_EL0(self.storage["PMCR_EL0"]).DP:
            return True
        return bool((level == EL3 and (monitor.SCCD or monitor.MCCD)) or (level == EL2 and hypervisor.HCCD))

    # accesses from a level

    def read_at(self, level: ExceptionLevel, register: type[ArmRegister], index: int = 0) -> int:
        """MRS. Raises Trap, TrappedRegister (to EL1), or UndefinedRegister."""
        if register not in self._readers or level < register.least_level:
            raise UndefinedRegister(f"read of {register.name_of(index)} at EL{level:d}")
        if level == EL0:
            self._permit(register, index, register.el0_read, "read")
        self._check_traps(level, register, index, "read")
        value = self._user_read(register, index) if level == EL0 else self.read(register, index)
        if register in _READ_MASKED:
            return value & self._accessible(level)
        if register is PMCR_EL0 and level < EL2:
            return value & ~PMCR_EL0.N.mask | PMCR_EL0.make(N=self._guest_counters)
        return value

    def write_at(self, level: ExceptionLevel, register: type[ArmRegister], value: int, index: int = 0) -> None:
        """MSR. Raises as `read_at` does."""
        if register not in self._writers or level < register.least_level:
            raise UndefinedRegister(f"write of {register.name_of(index)} at EL{level:d}")
        if level == EL0:
            self._permit(register, index, register.el0_write, "write")
        self._check_traps(level, register, index, "write")
        accessible = self._accessible(level)
        if register is PMUACR_EL1:
            value = value & accessible | self.read(register) & ~accessible
        elif register in _WRITE_MASKED:
            value &= accessible
        if register is PMCR_EL0:
            self._control_at(level, value)
        elif level == EL0:
            self._user_write(register, index, value)
        else:
            self.write(register, value, index)

    def _control_at(self, level: ExceptionLevel, value: int) -> None:
        reset = PMCR_EL0.P.mask
        if level < EL2 and value & reset:
            self._zero(self._first_range & self._events_mask)
            value &= ~reset
        self.write(PMCR_EL0, value)

    def _accessible(self, level: ExceptionLevel) -> int:
        """The counters whose bits are there at that level: GetPMUAccessMask, without PMUACR_EL1."""
        counters = self._implemented if level >= EL2 else self._first_range
        if level != EL3 and not MDCR_EL3(self.storage["MDCR_EL3"]).EnPM2:
            counters &= ~INSTRUCTION_BIT
        return counters

    def _check_traps(self, level: ExceptionLevel, register: type[ArmRegister], index: int, access: str) -> None:
        """Trap, as MDCR_EL2 and then MDCR_EL3 say."""
        if register.least_level >= EL2:
            return
        hypervisor, monitor = self._hypervisor, MDCR_EL3(self.storage["MDCR_EL3"])
        name = f"{access} of {register.name_of(index)} at EL{level:d}"
        if level < EL2:
            if register.monitor_trap and hypervisor.TPM:
                raise Trap(EL2, f"{name} with {hypervisor}")
            if register is PMCR_EL0 and hypervisor.TPMCR:
                raise Trap(EL2, f"{name} with {hypervisor}")
            if self._is_reserved(register, index):
                raise Trap(EL2, f"{name} with {hypervisor}")
        if level < EL3:
            disabled = register.enable is not None and not getattr(monitor, register.enable)
            if disabled or (register.monitor_trap and monitor.TPM):
                raise Trap(EL3, f"{name} with {monitor}")

    def _is_reserved(self, register: type[ArmRegister], index: int) -> bool:
        """Whether it is of an event counter that is EL2's."""
        if register in (PMXEVTYPER_EL0, PMXEVCNTR_EL0):
            counter = self.storage["PMSELR_EL0"]
        elif register.bank is not None:
            counter = index
        else:
            return False
        return bool(self._second_range >> counter & 1)
