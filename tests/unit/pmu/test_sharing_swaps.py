"""What is counted while a hypervisor swaps the registers: an instruction retires with each write.

What the host counts in guests, too, is counted without a gap; what a guest counts begins and ends with its own part.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.probes import Probe
from pmu.arm.privileged import EL2, PrivilegedPmuV3
from pmu.arm.registers import (
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.intel.perfmon import Perfmon
from pmu.intel.registers import (
    IA32_A_PMCx,
    IA32_PERFEVTSELx,
    IA32_PMCx,
)
from pmu.loongarch.performance_monitors import PerformanceMonitors
from pmu.loongarch.registers import PERFCNTRn
from pmu.register import Register
from pmu.sharing import Kept
from unit.pmu.shared_pmus import (
    INST_RETIRED,
    INTEL_INSTRUCTIONS,
    E,
    arm,
    intel,
    loongarch,
)


def test_arm_loses_and_invents_nothing_in_the_hypervisor() -> None:
    """An instruction retires at EL2 with each write. All counters are set to count there (NSH)."""
    shared, bank = arm()
    pmu = shared.device
    everywhere = PMEVTYPERn_EL0.make(evtCount=INST_RETIRED, NSH=1)
    for counter in range(6):
        pmu.write(PMEVTYPERn_EL0, everywhere, counter)
    for counter in (3, 4):
        shared.set_pmu_events(1 << counter)
    guest = shared.guest()
    shared.enter(guest)
    guest.write(PMEVTYPERn_EL0, everywhere)
    guest.write(PMCNTENSET_EL0, 1)
    guest.write(PMCR_EL0, E)
    shared.exit()

    def retire() -> None:
        bank.happen(1 << Probe.INST_RETIRED, 1, lambda counter: counter < 6 and pmu.may_count(counter, EL2))

    retired = _at_each_write(pmu, retire)
    shared.enter(guest)
    assert guest.read(PMEVCNTRn_EL0) == 0
    shared.exit()
    assert guest.context[Kept(PMEVCNTRn_EL0, 0)] == 0
    counts = [pmu.read(PMEVCNTRn_EL0, counter) for counter in range(6)]
    assert counts[3:5] == [len(retired)] * 2
    assert max(counts[0], counts[1], counts[2], counts[5]) < len(retired)  # the host's alone: in the host's part


def test_intel_loses_and_invents_nothing_in_the_hypervisor() -> None:
    shared, bank = intel()
    pmu = shared.device
    shared.set_pmu_events(1 << 3)
    guest = shared.guest()
    shared.enter(guest)
    guest.write(IA32_PERFEVTSELx, INTEL_INSTRUCTIONS)
    shared.exit()
    retired = _at_each_write(pmu, lambda: bank.fire(Probe.INST_RETIRED, 1))
    shared.enter(guest)
    # With the last write the guest's counters are enabled: what retires behind it is the guest's first instruction.
    assert guest.read(IA32_PMCx) == 1
    shared.exit()
    assert guest.context[Kept(IA32_PMCx, 0, write=IA32_A_PMCx)] == 1
    assert pmu.read(IA32_PMCx, 3) == len(retired)


def test_loongarch_loses_nothing_in_the_hypervisor() -> None:
    shared, bank = loongarch()
    shared.set_pmu_events(1 << 3)
    guest = shared.guest()
    retired = _at_each_write(shared.device, lambda: bank.fire(Probe.INST_RETIRED, 1))
    shared.enter(guest)
    shared.exit()
    assert shared.device.read(PERFCNTRn, 3) == len(retired)


def _at_each_write(pmu: PrivilegedPmuV3 | Perfmon | PerformanceMonitors, happen: Callable[[], None]) -> list[str]:
    """`happen` behind each write of a register. Returns the list of those that have been written."""
    written = []
    write = pmu.write

    def wrapped(register: type[Register], value: int, index: int = 0) -> None:
        write(register, value, index)
        written.append(register.name_of(index))
        happen()

    pmu.write = wrapped  # type: ignore[method-assign]
    return written
