"""SharedPmuV3: a PMUv3 that a host and its guests share: EL2 splits it by MDCR_EL2.HPMN while a guest runs.

The host is software at EL1, and has all counters while it runs. The guest is at EL1 and EL0, and has the event
counters below HPMN, the cycle counter and the instruction counter: PMCR_EL0.N says so, bits of others are RAZ/WI, and a
register of an event counter of the host's is UNDEFINED, as the hypervisor injects it for the trap. HPMD and HCCD keep a
guest's counters still in the hypervisor (from PMUv3p1 and PMUv3p5 on). The host's counters from HPMN on take MDCR_EL2's
HPME, HLP and HPMFZO from the host's PMCR_EL0; so with FZO an overflow stops those of its own side only, while a guest
runs.

Guests have no snapshots (FEAT_PMUv3_SS), and nothing is captured while one runs.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.sysregs import UndefinedRegister
from pmu.arm.counters import CYCLE_BIT, INSTRUCTION_BIT
from pmu.arm.privileged import EL1, MDCR_EL2, ExceptionLevel, PrivilegedPmuV3, Trap
from pmu.arm.registers import (
    PMCCFILTR_EL0,
    PMCCNTR_EL0,
    PMCNTENCLR_EL0,
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMICFILTR_EL0,
    PMICNTR_EL0,
    PMINTENCLR_EL1,
    PMINTENSET_EL1,
    PMOVSCLR_EL0,
    PMOVSSET_EL0,
    PMSELR_EL0,
    PMUACR_EL1,
    PMUSERENR_EL0,
    ArmRegister,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.arm.version import SNAPSHOTS
from pmu.register import Register
from pmu.sharing import Context, GuestPmu, Kept, SharedPmu, values_of

_ENABLE = PMCR_EL0.E.mask
_CONTROLS = PMCR_EL0.DP.mask | PMCR_EL0.X.mask | PMCR_EL0.LP.mask | PMCR_EL0.FZO.mask
_SINGLE = (PMUSERENR_EL0, PMSELR_EL0, PMCCFILTR_EL0, PMCCNTR_EL0, PMICFILTR_EL0, PMICNTR_EL0)


class GuestPmuV3(GuestPmu):
    """`read` and `write` are EL1's; `read_at` and `write_at` as PrivilegedPmuV3's, for EL1 and EL0."""

    shared: SharedPmuV3

    def read(self, register: type[Register], index: int = 0) -> int:
        return self.read_at(EL1, register, index)

    def write(self, register: type[Register], value: int, index: int = 0) -> None:
        self.write_at(EL1, register, value, index)

    def read_at(self, level: ExceptionLevel, register: type[Register], index: int = 0) -> int:
        there = self._there(level, register, "read", index)
        return _or_undefined(lambda: self.shared.device.read_at(level, there, index))

    def write_at(self, level: ExceptionLevel, register: type[Register], value: int, index: int = 0) -> None:
        there = self._there(level, register, "write", index)
        _or_undefined(lambda: self.shared.device.write_at(level, there, value, index))

    def _there(self, level: ExceptionLevel, register: type[Register], access: str, index: int) -> type[ArmRegister]:
        self._check_running()
        absent = level > EL1 or not issubclass(register, ArmRegister) or register.option == SNAPSHOTS
        if absent or (register.bank is not None and not 0 <= index < self.counters):
            raise UndefinedRegister(f"{access} of {register.name_of(index)} at EL{level:d} by a guest")
        assert issubclass(register, ArmRegister)
        return register


def _or_undefined(access: Callable[[], int | None]) -> int:
    try:
        return access() or 0
    except Trap as trap:
        raise UndefinedRegister(f"{trap}: injected by the hypervisor") from None


class SharedPmuV3(SharedPmu):
    """Masks are PMCNTENSET_EL0's."""

    def __init__(self, device: PrivilegedPmuV3, guest_counters: int) -> None:
        guest = (1 << guest_counters) - 1 | CYCLE_BIT | INSTRUCTION_BIT
        host = (1 << device.counters) - 1 & ~guest
        super().__init__(device, guest_counters, _kept(device, guest_counters, guest), guest, host)
        self.device = device
        self._united = MDCR_EL2(0)

    def guest(self) -> GuestPmuV3:
        """A new one, whose PMU is as after a reset."""
        return GuestPmuV3(self)

    def _partition(self) -> None:
        united = MDCR_EL2(self.device.read(MDCR_EL2))
        if united.HPMN != self.device.counters:
            raise ValueError(
                f"MDCR_EL2.HPMN is {united.HPMN}: while the host runs, all {self.device.counters} are its own"
            )
        self._united = united
        control = PMCR_EL0(self.device.read(PMCR_EL0))
        inherited = MDCR_EL2.make(HPME=control.E, HLP=control.LP, HPMFZO=control.FZO)
        self.device.write(MDCR_EL2, inherited | MDCR_EL2.make(HPMN=self.guest_counters, HPMD=1, HCCD=1))

    def _unite(self) -> None:
        self.device.write(MDCR_EL2, self._united.value)

    def _host_counts(self) -> bool:
        return bool(MDCR_EL2(self.device.read(MDCR_EL2)).HPME)

    def _enabled(self) -> int:
        return self.device.read(PMCNTENSET_EL0) & self._host_mask

    def _enable(self, counters: int) -> None:
        self.device.write(PMCNTENCLR_EL0, self._host_mask & ~counters)
        self.device.write(PMCNTENSET_EL0, counters)

    def _guest_asks(self, guest: GuestPmu, context: Context) -> int:
        enabled = values_of(context, PMCR_EL0)[0] & _ENABLE
        return values_of(context, PMOVSSET_EL0)[0] & values_of(context, PMINTENSET_EL1)[0] if enabled else 0

    def _host_asks(self) -> int:
        if not self._host_counts():
            return 0
        saved = self._host
        live = self.device.read(PMOVSSET_EL0) & self.device.read(PMINTENSET_EL1) & self._host_mask
        return live | values_of(saved, PMOVSSET_EL0)[0] & values_of(saved, PMINTENSET_EL1)[0]


def _kept(device: PrivilegedPmuV3, counters: int, mask: int) -> list[Kept]:
    """Of a guest that has so many event counters, `mask` in all."""
    return [
        Kept(PMCR_EL0, mask=_CONTROLS),
        *(Kept(register) for register in _SINGLE if device.can_write(register)),
        *(Kept(register, mask=mask) for register in (PMUACR_EL1,) if device.can_write(register)),
        *(Kept(PMEVTYPERn_EL0, counter) for counter in range(counters)),
        *(Kept(PMEVCNTRn_EL0, counter) for counter in range(counters)),
        Kept(PMOVSSET_EL0, mask=mask, clear=PMOVSCLR_EL0),
        Kept(PMINTENSET_EL1, mask=mask, clear=PMINTENCLR_EL1),
        Kept(PMCNTENSET_EL0, mask=mask, clear=PMCNTENCLR_EL0),
        Kept(PMCR_EL0, mask=_ENABLE, enables=True),
    ]
