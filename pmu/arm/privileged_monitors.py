"""PrivilegedActivityMonitors: as EL3, EL2, EL1 and EL0 reach them: trapped, and with EL2's offsets.

No engine here executes EL2 and EL3: this is the register model, for those who drive it themselves, as
`pmu.arm.privileged` has it: one Security state, EL2 enabled, HCR_EL2.{E2H,TGE} zero, no fine-grained traps (FEAT_FGT).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulator.sysregs import UndefinedRegister
from pmu.arm.activity_monitors import ActivityMonitors
from pmu.arm.amu_registers import (
    AMCR_EL0,
    CPTR_EL2,
    CPTR_EL3,
    HCR_EL2,
    SCR_EL3,
    WITH_OFFSETS,
    AMEVCNTR0n_EL0,
    AMEVCNTR1n_EL0,
    AMEVCNTVOFF0n_EL2,
    AMEVCNTVOFF1n_EL2,
    AmuRegister,
    Version,
)
from pmu.arm.privileged import EL0, EL1, EL2, EL3, ExceptionLevel, Trap
from pmu.counter_bank import CounterBank
from pmu.event import Event, EventList
from pmu.register import Register

_OFFSETS: dict[type[AmuRegister], type[AmuRegister]] = {
    AMEVCNTR0n_EL0: AMEVCNTVOFF0n_EL2,
    AMEVCNTR1n_EL0: AMEVCNTVOFF1n_EL2,
}
_WRAP = (1 << 64) - 1


class PrivilegedActivityMonitors(ActivityMonitors):
    """At first as after a reset: nothing counts, nothing is trapped, and there are no offsets."""

    def __init__(
        self,
        bank: CounterBank,
        version: Version,
        events: EventList,
        auxiliary: Sequence[Event],
        constant: Callable[[], int],
    ) -> None:
        super().__init__(bank, version, events, auxiliary, constant)
        for trapping in (CPTR_EL2, CPTR_EL3):
            self._store(trapping)
        if version < Version.V1P1:
            return
        for register in (HCR_EL2, SCR_EL3):
            self._store(register)
        self._offsets: dict[tuple[type[Register], int], int] = {}
        for offsets in _OFFSETS.values():
            if self.registers_of(offsets):
                self._declare_offsets(offsets)

    def _declare_offsets(self, register: type[AmuRegister]) -> None:
        def write(value: int, n: int) -> None:
            self._offsets[register, self._checked(register, n)] = value

        self._compute(register, lambda n: self._offsets.get((register, self._checked(register, n)), 0), write)

    def read_at(self, level: ExceptionLevel, register: type[AmuRegister], index: int = 0) -> int:
        """MRS. Raises Trap, or UndefinedRegister."""
        name = f"read of {register.name_of(index)} at EL{level:d}"
        if not self._is_there(register, index) or level < register.least_level:
            raise UndefinedRegister(name)
        if level == EL0 and register.user_enable and not self.storage["AMUSERENR_EL0"] & 1:
            raise Trap(EL1, f"{name} with AMUSERENR_EL0.EN zero")
        self._check_traps(level, register, name)
        value = self.read(register, index)
        if register not in _OFFSETS:
            return value
        if register is AMEVCNTR1n_EL0 and level < EL3 and AMCR_EL0(self.storage["AMCR_EL0"]).CG1RZ:
            return 0
        return value - self._offset(level, register, index) & _WRAP

    def write_at(self, level: ExceptionLevel, register: type[AmuRegister], value: int, index: int = 0) -> None:
        """MSR. Raises as `read_at` does."""
        name = f"write of {register.name_of(index)} at EL{level:d}"
        lowest = register.written_from
        if not self._is_there(register, index) or lowest is None or level < lowest:
            raise UndefinedRegister(name)
        self._check_traps(level, register, name)
        self.write(register, value, index)

    def _is_there(self, register: type[AmuRegister], index: int) -> bool:
        if register is AMEVCNTVOFF0n_EL2 and index not in WITH_OFFSETS:
            return False
        return register in self._readers and index < self.registers_of(register)

    def _check_traps(self, level: ExceptionLevel, register: type[AmuRegister], name: str) -> None:
        if not register.trapped:
            return
        if level < EL2 and CPTR_EL2(self.storage["CPTR_EL2"]).TAM:
            raise Trap(EL2, f"{name} with CPTR_EL2.TAM")
        if level == EL3:
            return
        if register in _OFFSETS.values() and not SCR_EL3(self.storage["SCR_EL3"]).AMVOFFEN:
            raise Trap(EL3, f"{name} with SCR_EL3.AMVOFFEN zero")
        if CPTR_EL3(self.storage["CPTR_EL3"]).TAM:
            raise Trap(EL3, f"{name} with CPTR_EL3.TAM")

    def _offset(self, level: ExceptionLevel, register: type[AmuRegister], index: int) -> int:
        if level >= EL2 or self.version < Version.V1P1 or not self._is_there(_OFFSETS[register], index):
            return 0
        enabled = HCR_EL2(self.storage["HCR_EL2"]).AMVOFFEN and SCR_EL3(self.storage["SCR_EL3"]).AMVOFFEN
        return self.read(_OFFSETS[register], index) if enabled else 0
