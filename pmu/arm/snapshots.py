"""PmuSnapshots: all counters are captured at once, and read at leisure. Arm ARM DDI 0487, FEAT_PMUv3_SS."""

from __future__ import annotations

from emulator.sysregs import SysReg
from pmu.arm.linked_counters import LinkedCounters
from pmu.arm.registers import (
    MOST_EVENT_COUNTERS,
    PMCCNTR_EL0,
    PMICNTR_EL0,
    ArmRegister,
    PMEVCNTRn_EL0,
)
from pmu.arm.version import INSTRUCTION_COUNTER, SNAPSHOTS
from pmu.register import RO, RW, WO, Bank


class SnapshotRegister(ArmRegister):
    option = SNAPSHOTS
    monitor_trap = False
    enable = "EnPMSS"


class PMECR_EL1(ArmRegister):
    """Extended Control, of EL1."""

    encoding = SysReg(3, 0, 9, 14, 5)
    option = SNAPSHOTS
    enable = "EnPM2"

    SSE = RW(4, 3)  # captures: 0b10 enabled and prohibited, 0b11 enabled and allowed; others disabled


class PMSSCR_EL1(SnapshotRegister):
    """Snapshot Status and Capture."""

    encoding = SysReg(3, 0, 9, 13, 3)

    SS = WO(0)  # capture now
    NC = RW(32)  # nothing was captured


class PMEVCNTSVRn_EL1(SnapshotRegister):
    """Event counter n, as it was captured."""

    bank = Bank(MOST_EVENT_COUNTERS, "PMEVCNTSVR{}_EL1", lambda n: SysReg(2, 0, 14, 0b1000 | n >> 3, n & 7))

    EVCNT = RO(63, 0)


class PMCCNTSVR_EL1(SnapshotRegister):
    """The cycle counter, as it was captured."""

    encoding = SysReg(2, 0, 14, 11, 7)

    CCNT = RO(63, 0)


class PMICNTSVR_EL1(SnapshotRegister):
    """The instruction counter, as it was captured."""

    encoding = SysReg(2, 0, 14, 12, 0)

    ICNT = RO(63, 0)


ENABLED, ALLOWED = 0b10, 0b11


class PmuSnapshots(LinkedCounters):
    """A PMU whose counters can be captured, if its model has the option. A capture takes no time."""

    def _declare(self) -> None:
        super()._declare()
        if SNAPSHOTS not in self.model.options:
            return
        self._store(PMECR_EL1)
        self._store(PMSSCR_EL1, initial=PMSSCR_EL1.NC.mask)
        self._compute(PMSSCR_EL1, write=self._write_status)
        self._compute(PMEVCNTSVRn_EL1, self._read_captured)
        captured: list[tuple[type[ArmRegister], type[ArmRegister]]] = [(PMCCNTSVR_EL1, PMCCNTR_EL0)]
        if INSTRUCTION_COUNTER in self.model.options:
            captured.append((PMICNTSVR_EL1, PMICNTR_EL0))
        for saved, _ in captured:
            self._store(saved)
            del self._writers[saved]
        self._captured = captured
        self.storage.update((PMEVCNTSVRn_EL1.name_of(counter), 0) for counter in range(self.counters))

    @property
    def _capture_control(self) -> int:
        """PMECR_EL1.SSE, or who overrides it."""
        return PMECR_EL1(self.storage["PMECR_EL1"]).SSE

    def _write_status(self, value: int, index: int) -> None:
        control = self._capture_control
        if not control & ENABLED:
            return
        storage = self.storage
        storage["PMSSCR_EL1"] = value & PMSSCR_EL1.NC.mask
        if not value & PMSSCR_EL1.SS.mask:
            return
        storage["PMSSCR_EL1"] = 0 if control == ALLOWED else PMSSCR_EL1.NC.mask
        if control == ALLOWED:
            self._capture()

    def _capture(self) -> None:
        for counter in range(self.counters):
            self.storage[PMEVCNTSVRn_EL1.name_of(counter)] = self.read(PMEVCNTRn_EL0, counter)
        for saved, counted in self._captured:
            self.storage[saved.__name__] = self.read(counted)

    def _read_captured(self, counter: int) -> int:
        self._check(PMEVCNTSVRn_EL1, counter)
        return self.storage[PMEVCNTSVRn_EL1.name_of(counter)]
