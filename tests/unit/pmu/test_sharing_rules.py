"""What a host and its guests must not see of each other, whose an overflow is, and what cannot be shared.

Numbers of events here are those that the test fires, while the one that they are for runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from emulator.probes import Probe
from emulator.sysregs import UndefinedRegister
from pmu.amd.sharing import SharedCoreCounters
from pmu.arm.privileged import EL0, EL2, MDCR_EL2
from pmu.arm.registers import (
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMINTENSET_EL1,
    PMOVSCLR_EL0,
    PMOVSSET_EL0,
    PMSELR_EL0,
    PMUSERENR_EL0,
    PMXEVCNTR_EL0,
    PMXEVTYPER_EL0,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.arm.sharing import SharedPmuV3
from pmu.arm.snapshots import PMSSCR_EL1
from pmu.intel.perfmon import Perfmon
from pmu.intel.registers import (
    IA32_PERF_CAPABILITIES,
    IA32_PERF_GLOBAL_CTRL,
    IA32_PERF_GLOBAL_INUSE,
    IA32_PERF_GLOBAL_STATUS,
    IA32_PERF_GLOBAL_STATUS_RESET,
    IA32_PERF_GLOBAL_STATUS_SET,
    IA32_X2APIC_LVT_PMI,
    MSR_PERF_METRICS,
    IA32_A_PMCx,
    IA32_PERFEVTSELx,
    IA32_PMCx,
)
from pmu.intel.sharing import SharedPerfmon
from pmu.live.live_pmu import open_pmu
from pmu.live.sharing import share_pmu
from pmu.loongarch.performance_monitors import InstructionPrivilegeError, PrivilegeLevel
from pmu.loongarch.registers import CPUCFG6, ECFG, ESTAT, MISC, PERFCNTRn, PERFCTRLn
from pmu.loongarch.sharing import SharedMonitors
from pmu.model import model
from pmu.register import Register
from unit.pmu.fake_bank import FakeBank
from unit.pmu.shared_pmus import (
    BIT63,
    INST_RETIRED,
    INTEL_INSTRUCTIONS,
    LOONGARCH_INSTRUCTIONS,
    LP,
    E,
    arm,
    intel,
    loongarch,
)

# exclude_host and exclude_guest


def test_arm_counts_where_it_is_told() -> None:
    shared, bank = arm()
    shared.set_pmu_events(1 << 3)
    shared.set_pmu_events(1 << 4, exclude_host=True)
    shared.set_pmu_events(1 << 5, exclude_guest=True)
    bank.fire(Probe.INST_RETIRED, 10)
    shared.enter(shared.guest())
    bank.fire(Probe.INST_RETIRED, 300)
    shared.exit()
    bank.fire(Probe.INST_RETIRED, 7)
    counts = [shared.device.read(PMEVCNTRn_EL0, counter) for counter in range(6)]
    assert counts == [17, 17, 17, 317, 300, 17]  # those that nothing was said of are the host's


@pytest.mark.parametrize(("share", "counts"), [(intel, IA32_PMCx), (loongarch, PERFCNTRn)])
def test_others_count_where_they_are_told(
    share: Callable[[], tuple[SharedPerfmon | SharedMonitors, FakeBank]], counts: type[Register]
) -> None:
    shared, bank = share()
    shared.set_pmu_events(1 << 2)
    shared.set_pmu_events(1 << 3, exclude_host=True)
    bank.fire(Probe.INST_RETIRED, 10)
    shared.enter(shared.guest())
    bank.fire(Probe.INST_RETIRED, 300)
    shared.exit()
    bank.fire(Probe.INST_RETIRED, 7)
    assert [shared.device.read(counts, counter) for counter in range(4)] == [17, 17, 317, 300]


def test_a_counter_goes_back_to_the_host() -> None:
    shared, bank = arm()
    shared.set_pmu_events(1 << 4, exclude_host=True)
    shared.set_pmu_events(1 << 4, exclude_guest=True)  # enabled again by that
    bank.fire(Probe.INST_RETIRED, 10)
    shared.set_pmu_events(1 << 4)
    shared.clr_pmu_events(1 << 4)
    shared.enter(shared.guest())
    bank.fire(Probe.INST_RETIRED, 300)
    shared.exit()
    assert shared.device.read(PMEVCNTRn_EL0, 4) == 10


def test_a_host_counter_of_64_bits_keeps_them_in_a_guest_of_32() -> None:
    """PMCR_EL0.LP is the guest's while it runs; MDCR_EL2.HLP is what it was for the host."""
    shared, bank = arm()
    pmu = shared.device
    pmu.write(PMCR_EL0, E | LP)
    pmu.write(PMEVCNTRn_EL0, (1 << 32) - 1, 3)
    shared.set_pmu_events(1 << 3)
    guest = shared.guest()
    shared.enter(guest)
    guest.write(PMCR_EL0, E)
    bank.fire(Probe.INST_RETIRED, 5)
    assert not shared.host_interrupt()
    shared.exit()
    assert (pmu.read(PMEVCNTRn_EL0, 3), pmu.read(PMOVSSET_EL0)) == ((1 << 32) + 4, 0)
    assert pmu.read(PMCR_EL0) & 0xFF == PMCR_EL0.make(E=1, LP=1, LC=1)


def test_a_guest_does_not_count_the_hypervisor() -> None:
    """NSH in its filters would: MDCR_EL2.HPMD prohibits it to the event counters, HCCD to the cycle counter."""
    shared, _ = arm()
    guest = shared.guest()
    shared.enter(guest)
    guest.write(PMEVTYPERn_EL0, PMEVTYPERn_EL0.make(evtCount=INST_RETIRED, NSH=1))
    assert not shared.device.may_count(0, EL2)
    assert not shared.device.may_count(31, EL2)


# what a guest sees


def test_a_guest_of_arm_has_a_pmu_of_its_counters() -> None:
    shared, _ = arm()
    shared.set_pmu_events(1 << 4)
    shared.device.write(PMOVSSET_EL0, 0x3F)
    guest = shared.guest()
    shared.enter(guest)
    assert PMCR_EL0(guest.read(PMCR_EL0)).N == 2
    for register in (PMCNTENSET_EL0, PMINTENSET_EL1, PMOVSSET_EL0):
        assert guest.read(register) == 0
    guest.write(PMOVSCLR_EL0, 0x3F)
    guest.write(PMCR_EL0, PMCR_EL0.make(E=1, P=1))
    for access in (lambda: guest.read(PMEVCNTRn_EL0, 2),
                   lambda: guest.write(PMEVTYPERn_EL0, 0, 5),
                   lambda: guest.read(PMSSCR_EL1),
                   lambda: guest.read(MDCR_EL2),
                   lambda: guest.read_at(EL2, PMCR_EL0)):  # fmt: skip
        with pytest.raises(UndefinedRegister):
            access()
    guest.write(PMSELR_EL0, 4)
    with pytest.raises(UndefinedRegister, match="injected by the hypervisor"):
        guest.read(PMXEVCNTR_EL0)
    with pytest.raises(UndefinedRegister):
        guest.write(PMXEVTYPER_EL0, 0)
    guest.write(PMUSERENR_EL0, PMUSERENR_EL0.make(EN=1))
    assert guest.read_at(EL0, PMOVSSET_EL0) == 0
    shared.exit()
    assert shared.device.read(PMOVSSET_EL0) == 0x3F


def test_a_guest_of_intel_has_a_pmu_of_its_counters() -> None:
    shared, _ = intel("redwood_cove")
    pmu = shared.device
    pmu.write(IA32_PERF_GLOBAL_STATUS_SET, 0xF)
    pmu.write(IA32_A_PMCx, 42, 3)
    shared.set_pmu_events(1 << 3)
    guest = shared.guest()
    shared.enter(guest)
    assert guest.read(IA32_PERF_GLOBAL_CTRL) == 0b11
    assert guest.read(IA32_PERF_GLOBAL_STATUS) == guest.read(IA32_PERF_GLOBAL_INUSE) == 0
    assert not IA32_PERF_CAPABILITIES(guest.read(IA32_PERF_CAPABILITIES)).PERF_METRICS_AVAILABLE
    assert guest.cpuid(0x0A, 0, (0, 0, 0, 0))[0] >> 8 & 0xFF == 2
    for register, value, index in ((IA32_PERF_GLOBAL_CTRL, 1 << 3, 0), (IA32_PERF_GLOBAL_STATUS_RESET, 1 << 3, 0),
                                   (IA32_PERFEVTSELx, 0, 2), (IA32_A_PMCx, 0, 3),
                                   (MSR_PERF_METRICS, 0, 0)):  # fmt: skip
        with pytest.raises(ValueError, match="guest"):
            guest.write(register, value, index)
    with pytest.raises(UndefinedRegister, match="while CR4"):
        guest.rdpmc(0)
    guest.user_rdpmc = True
    assert guest.rdpmc(0) == guest.rdpmc(1 << 30) == 0
    for ecx in (3, 1 << 29):
        with pytest.raises(UndefinedRegister, match="this guest has 2"):
            guest.rdpmc(ecx)
    guest.write(IA32_PERF_GLOBAL_CTRL, 0)
    shared.exit()
    assert (pmu.read(IA32_PERF_GLOBAL_CTRL), pmu.read(IA32_PERF_GLOBAL_STATUS)) == (0xF, 0xF)
    assert (pmu.read(IA32_PMCx, 3), pmu.user_rdpmc) == (42, False)


def test_a_guest_of_loongarch_has_a_pmu_of_its_monitors() -> None:
    shared, _ = loongarch()
    shared.device.write(PERFCNTRn, BIT63, 3)
    shared.device.write(MISC, MISC.make(RPCNTL3=1))
    shared.set_pmu_events(1 << 3)
    guest = shared.guest()
    shared.enter(guest)
    assert CPUCFG6(guest.read(CPUCFG6)).PMNUM == 1
    assert guest.read(ESTAT) == guest.read(ECFG) == guest.read(MISC) == 0
    for register in (PERFCNTRn, PERFCTRLn):
        with pytest.raises(UndefinedRegister, match="this guest has 2 monitors"):
            guest.read(register, 3)
    with pytest.raises(InstructionPrivilegeError):
        guest.read_at(PrivilegeLevel.PLV3, PERFCNTRn)
    guest.write(MISC, MISC.make(RPCNTL3=1))
    assert guest.read_at(PrivilegeLevel.PLV3, PERFCNTRn) == 0
    with pytest.raises(InstructionPrivilegeError):
        guest.write_at(PrivilegeLevel.PLV3, ECFG, 0)


# whose an overflow is


def test_an_overflow_at_the_exit_is_delivered_on_the_next_entry() -> None:
    shared, bank = arm()
    first, second = shared.guest(), shared.guest()
    shared.enter(first)
    first.write(PMEVTYPERn_EL0, INST_RETIRED, 1)
    first.write(PMEVCNTRn_EL0, (1 << 32) - 100, 1)
    first.write(PMCNTENSET_EL0, 0b10)
    first.write(PMINTENSET_EL1, 0b10)
    first.write(PMCR_EL0, E)
    bank.fire(Probe.INST_RETIRED, 99)
    assert not first.interrupt_asserted()
    bank.fire(Probe.INST_RETIRED, 1)
    shared.exit()
    assert (first.interrupt_asserted(), second.interrupt_asserted(), shared.host_interrupt()) == (True, False, False)
    shared.enter(second)
    assert not second.interrupt_asserted()
    shared.exit()
    shared.enter(first)
    assert first.interrupt_asserted()
    first.write(PMOVSCLR_EL0, 0b10)
    assert not first.interrupt_asserted()


def test_an_overflow_of_the_host_is_the_hosts_while_a_guest_runs() -> None:
    shared, bank = intel()
    shared.device.write(IA32_A_PMCx, (1 << 48) - 100, 3)
    shared.set_pmu_events(1 << 3)
    guest = shared.guest()
    guest.local_vector = IA32_X2APIC_LVT_PMI.make(VECTOR=0xEF)
    shared.enter(guest)
    bank.fire(Probe.INST_RETIRED, 100)
    assert (shared.host_interrupt(), guest.interrupt_asserted()) == (True, False)
    shared.exit()
    assert shared.device.read(IA32_PERF_GLOBAL_STATUS) == 1 << 3
    assert (shared.host_interrupt(), guest.interrupt_asserted()) == (True, False)


def test_a_guest_masks_its_own_entry_of_the_local_apic() -> None:
    shared, bank = intel()
    guest = shared.guest()
    shared.enter(guest)
    guest.write(IA32_PERFEVTSELx, INTEL_INSTRUCTIONS)
    guest.write(IA32_A_PMCx, (1 << 48) - 1)
    bank.fire(Probe.INST_RETIRED, 1)
    assert guest.interrupt_asserted()
    guest.take_interrupt()
    assert not guest.interrupt_asserted()
    assert IA32_X2APIC_LVT_PMI(guest.read(IA32_X2APIC_LVT_PMI)).MASK
    shared.exit()
    assert shared.device.read(IA32_X2APIC_LVT_PMI) == 0


def test_a_guest_of_loongarch_is_interrupted_by_its_own_monitors() -> None:
    shared, bank = loongarch()
    guest = shared.guest()
    shared.enter(guest)
    guest.write(PERFCNTRn, BIT63 - 5)
    guest.write(PERFCTRLn, LOONGARCH_INSTRUCTIONS)
    bank.fire(Probe.INST_RETIRED, 5)
    assert (guest.read(ESTAT), guest.interrupt_asserted()) == (ESTAT.PCOV.mask, False)
    guest.write(ECFG, ECFG.make(PCOV=1))
    shared.exit()
    assert (guest.interrupt_asserted(), shared.host_interrupt()) == (True, False)


# what cannot be


def test_only_who_runs_reaches_registers() -> None:
    shared, _ = arm()
    guest, other = shared.guest(), shared.guest()
    with pytest.raises(ValueError, match="does not run"):
        guest.read(PMCR_EL0)
    with pytest.raises(ValueError, match="no guest runs"):
        shared.exit()
    with pytest.raises(ValueError, match="another PMU"):
        shared.enter(arm()[0].guest())
    shared.enter(guest)
    for call in (lambda: shared.enter(other), lambda: shared.set_pmu_events(1 << 3), lambda: shared.clr_pmu_events(8)):
        with pytest.raises(ValueError, match="a guest runs: exit first"):
            call()


def test_counters_that_the_host_cannot_keep_are_refused() -> None:
    shared, _ = arm()
    with pytest.raises(ValueError, match="counters 0x2 are a guest's while it runs: the host keeps 0x3c"):
        shared.set_pmu_events(0b110)
    with pytest.raises(ValueError, match="there are no counters 0x40"):
        shared.set_pmu_events(1 << 6)
    with pytest.raises(ValueError, match="nowhere"):
        shared.set_pmu_events(1 << 3, exclude_host=True, exclude_guest=True)
    stopped, _ = loongarch()
    stopped.device.write(PERFCTRLn, 0, 3)
    with pytest.raises(ValueError, match="counters 0x8 are not enabled"):
        stopped.set_pmu_events(1 << 3, exclude_host=True)


@pytest.mark.parametrize("counters", [0, 7])
def test_impossible_numbers_of_counters_are_refused(counters: int) -> None:
    with pytest.raises(ValueError, match=f"pmuv3p9: {counters} event counters for guests; there can be 1 to 6"):
        SharedPmuV3(arm()[0].device, counters)


def test_a_host_that_has_partitioned_its_counters_is_refused() -> None:
    shared, _ = arm()
    shared.device.write(MDCR_EL2, MDCR_EL2.make(HPMN=3))
    with pytest.raises(ValueError, match=r"MDCR_EL2\.HPMN is 3: while the host runs, all 6 are its own"):
        shared.enter(shared.guest())


def test_a_perfmon_that_cannot_restore_is_refused() -> None:
    for version in (2, 3):
        old = model(f"intel_arch_perfmon_v{version}")
        with pytest.raises(ValueError, match=f"version {version} cannot restore overflow bits"):
            SharedPerfmon(Perfmon(FakeBank(old.bank_size(4)), old, 4), 2)
    narrow = replace(model("skylake"), identification=0)
    with pytest.raises(ValueError, match="without full-width writes"):
        SharedPerfmon(Perfmon(FakeBank(narrow.bank_size(4)), narrow), 2)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("pmuv3p5", SharedPmuV3),
        ("redwood_cove", SharedPerfmon),
        ("zen5", SharedCoreCounters),
        ("loongarch", SharedMonitors),
    ],
)
def test_a_pmu_without_a_machine_is_shared(name: str, kind: type) -> None:
    shared = share_pmu(open_pmu(name), 2)
    assert isinstance(shared, kind)
    assert shared.guest().counters == 2
