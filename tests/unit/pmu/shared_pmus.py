"""PMUs that a host and guests share: the host's counters are set up, and the guests have two of them."""

from __future__ import annotations

from pmu.arm.privileged import PrivilegedPmuV3
from pmu.arm.registers import (
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMINTENSET_EL1,
    PMEVTYPERn_EL0,
)
from pmu.arm.sharing import SharedPmuV3
from pmu.intel.perfmon import Perfmon
from pmu.intel.registers import (
    IA32_PERFEVTSELx,
)
from pmu.intel.sharing import SharedPerfmon
from pmu.loongarch.performance_monitors import PerformanceMonitors
from pmu.loongarch.registers import ECFG, PERFCTRLn
from pmu.loongarch.sharing import SharedMonitors
from pmu.model import model
from unit.pmu.fake_bank import FakeBank

INST_RETIRED = 0x08
E, LP = PMCR_EL0.E.mask, PMCR_EL0.LP.mask
INTEL_INSTRUCTIONS = IA32_PERFEVTSELx.make(EVENT=0xC0, USR=1, OS=1, EN=1, INT=1)
LOONGARCH_INSTRUCTIONS = PERFCTRLn.make(EVENT=1, PLV0=1, PLV3=1, IE=1)
BIT63 = 1 << 63


def arm(name: str = "pmuv3p9") -> tuple[SharedPmuV3, FakeBank]:
    """Six counters, of which guests have two. All of the host's count instructions and interrupt."""
    bank = FakeBank(8)
    pmu = PrivilegedPmuV3(bank, model(name))
    for counter in range(6):
        pmu.write(PMEVTYPERn_EL0, INST_RETIRED, counter)
    pmu.write(PMCNTENSET_EL0, 0x3F)
    pmu.write(PMINTENSET_EL1, 0x3F)
    pmu.write(PMCR_EL0, E)
    return SharedPmuV3(pmu, 2), bank


def intel(name: str = "skylake") -> tuple[SharedPerfmon, FakeBank]:
    """The same, with four counters."""
    found = model(name)
    bank = FakeBank(found.bank_size(4))
    pmu = Perfmon(bank, found, 4)
    for counter in range(4):
        pmu.write(IA32_PERFEVTSELx, INTEL_INSTRUCTIONS, counter)
    return SharedPerfmon(pmu, 2), bank


def loongarch() -> tuple[SharedMonitors, FakeBank]:
    bank = FakeBank(4)
    pmu = PerformanceMonitors(bank, model("loongarch"))
    for monitor in range(4):
        pmu.write(PERFCTRLn, LOONGARCH_INSTRUCTIONS, monitor)
    pmu.write(ECFG, ECFG.make(PCOV=1))
    return SharedMonitors(pmu, 2), bank
