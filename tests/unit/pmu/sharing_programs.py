"""Random programs of a PMU's kernel, for the tests of sharing: a write of a register at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from pmu.amd.core_counters import CoreCounters
from pmu.amd.registers import (
    LEGACY_COUNTERS,
    LVT_PMC,
    DebugCtl,
    PERF_CTLx,
    PERF_CTRx,
    PerfCntrGlobalCtl,
    PerfCntrGlobalStatusClr,
    PerfCntrGlobalStatusSet,
    PerfCtrx,
)
from pmu.amd.sharing import SharedCoreCounters
from pmu.arm.privileged import EL1, MDCR_EL2, MDCR_EL3, PrivilegedPmuV3
from pmu.arm.registers import (
    MOST_EVENT_COUNTERS,
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
    PMSWINC_EL0,
    PMUACR_EL1,
    PMUSERENR_EL0,
    PMZR_EL0,
    ArmRegister,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.arm.sharing import SharedPmuV3
from pmu.intel.perfmon import Perfmon
from pmu.intel.registers import (
    IA32_DEBUGCTL,
    IA32_FIXED_CTR_CTRL,
    IA32_PERF_CAPABILITIES,
    IA32_PERF_GLOBAL_CTRL,
    IA32_PERF_GLOBAL_STATUS_RESET,
    IA32_PERF_GLOBAL_STATUS_SET,
    IA32_X2APIC_LVT_PMI,
    MSR_PERF_METRICS,
    IA32_A_PMCx,
    IA32_FIXED_CTRx,
    IA32_PERFEVTSELx,
    IA32_PMCx,
)
from pmu.intel.sharing import SharedPerfmon
from pmu.loongarch.performance_monitors import PerformanceMonitors
from pmu.loongarch.registers import ECFG, MISC, PERFCNTRn, PERFCTRLn
from pmu.loongarch.sharing import SharedMonitors
from pmu.register import Register
from pmu.sharing import SharedPmu

Write = tuple[type[Register], int, int]
"""register, value, index"""


class Registers(Protocol):
    def read(self, register: type[Register], index: int = 0) -> int: ...
    def write(self, register: type[Register], value: int, index: int = 0) -> None: ...


class At1:
    """A PMUv3 as EL1 has it."""

    def __init__(self, device: PrivilegedPmuV3) -> None:
        self.device = device

    def read(self, register: type[Register], index: int = 0) -> int:
        assert issubclass(register, ArmRegister)
        return self.device.read_at(EL1, register, index)

    def write(self, register: type[Register], value: int, index: int = 0) -> None:
        assert issubclass(register, ArmRegister)
        self.device.write_at(EL1, register, value, index)


@dataclass(frozen=True)
class Vendor:
    """`write(random, counters, pmu, host)` makes up one write of a kernel on a PMU of so many counters. `unlike` are
    registers that a guest has otherwise than a PMU of its own, or not; `enables` those where a counter of the host's
    that waits for a guest is stopped."""

    models: tuple[str, ...]
    device: Callable[..., object]
    shared: Callable[..., SharedPmu]
    write: Callable[[Random, int, Registers, bool], Write]
    unlike: tuple[type[Register], ...]
    enables: tuple[type[Register], ...]
    enable: Callable[[Registers, int], None]  # counters of a mask, which have been set up


def near(random: Random, bits: int) -> int:
    return random.choice([random.randrange(100), (1 << bits) - random.randrange(1, 200), random.randrange(1 << bits)])


def arm_write(random: Random, counters: int, pmu: Registers, host: bool) -> Write:
    """One write of a kernel that has so many event counters; a guest's tries those of the host, too. The host has no
    FZO: while a guest runs it stops other counters than without one."""

    def mask() -> int:
        return random.getrandbits(counters if host else MOST_EVENT_COUNTERS) | random.getrandbits(2) << 31

    event = random.choice([0x08, 0x08, 0x11, 0x03, 0x00, 0x1E])
    n = random.randrange(counters)
    control = random.choice([1, 1, 1, 0]) | random.choice([0, 0x80, 0x20, 0x10]) | random.choice([0] * 8 + [2, 4])
    if not host:
        control |= random.choice([0, 0, 0x200])
    choices: list[Write] = [
        (PMEVTYPERn_EL0, event | random.choice([0, 0, random.getrandbits(6) << 26]), n),
        (PMEVCNTRn_EL0, near(random, 32), n),
        (PMEVCNTRn_EL0, near(random, 64), n),
        (PMCCNTR_EL0, near(random, 64), 0),
        (PMCCFILTR_EL0, random.getrandbits(6) << 26, 0),
        (PMCNTENSET_EL0, mask(), 0),
        (PMCNTENCLR_EL0, mask() & mask(), 0),
        (PMINTENSET_EL1, mask(), 0),
        (PMINTENCLR_EL1, mask(), 0),
        (PMOVSCLR_EL0, mask(), 0),
        (PMOVSSET_EL0, mask() & mask(), 0),
        (PMCR_EL0, control, 0),
        (PMCR_EL0, control, 0),
        (PMSELR_EL0, random.randrange(counters), 0),
        (PMUSERENR_EL0, random.getrandbits(7), 0),
        (PMSWINC_EL0, mask() & ~(3 << 31), 0),
        (PMUACR_EL1, mask(), 0),
        (PMZR_EL0, mask() & mask(), 0),
        (PMICNTR_EL0, near(random, 64), 0),
        (PMICFILTR_EL0, random.getrandbits(6) << 26, 0),
    ]
    assert isinstance(pmu, At1)
    return random.choice([choice for choice in choices if pmu.device.can_write(choice[0])])


def arm_enable(pmu: Registers, counters: int) -> None:
    pmu.write(PMCNTENSET_EL0, counters)


def intel_write(random: Random, counters: int, pmu: Registers, host: bool) -> Write:
    assert isinstance(pmu, Perfmon)
    fixed = pmu.registers_of(IA32_FIXED_CTRx)

    def mask() -> int:
        return random.getrandbits(counters) | random.getrandbits(fixed) << 32

    n = random.randrange(counters)
    select = random.choice([0xC0, 0xC0, 0x3C, 0x412E]) | random.getrandbits(2) << 16
    metrics = random.getrandbits(1) << 48 if host and pmu.can_write(MSR_PERF_METRICS) else 0
    control = sum((random.getrandbits(4) & 0b1011) << 4 * i for i in range(fixed))
    freeze = random.choice([0, 0, 1 << 59])
    return random.choice([
        (IA32_PERFEVTSELx, select | random.getrandbits(1) << 20 | random.choice([0, 1, 1]) << 22, n),
        (IA32_A_PMCx, near(random, 48), n),
        (IA32_PMCx, near(random, 32), n),
        (IA32_FIXED_CTR_CTRL, control, 0),
        (IA32_FIXED_CTRx, near(random, 48), random.randrange(fixed)),
        (IA32_PERF_GLOBAL_CTRL, mask() | mask() | metrics, 0),
        (IA32_PERF_GLOBAL_STATUS_RESET, mask() | 1 << 59, 0),
        (IA32_DEBUGCTL, random.getrandbits(1) << 12, 0),
        (IA32_PERF_GLOBAL_STATUS_SET, mask() & mask() | freeze, 0),
        (IA32_X2APIC_LVT_PMI, random.getrandbits(1) << 16 | 0xEF, 0),
    ])  # fmt: skip


def intel_enable(pmu: Registers, counters: int) -> None:
    pmu.write(IA32_PERF_GLOBAL_CTRL, pmu.read(IA32_PERF_GLOBAL_CTRL) | counters)


def amd_write(random: Random, counters: int, pmu: Registers, host: bool) -> Write:
    mask = random.getrandbits(counters)
    n = random.randrange(counters)
    select = random.choice([0xC0, 0xC0, 0x76, 0x29]) | random.getrandbits(2) << 16
    freeze = random.choice([0, 0, 1 << 59])
    choices: list[Write] = [
        (PERF_CTLx, select | random.getrandbits(1) << 20 | random.choice([0, 1, 1]) << 22, n),
        (PERF_CTRx, near(random, 48), n),
        (PERF_CTRx, near(random, 48), n),
        (PerfCtrx, near(random, 48), n),
        (PerfCntrGlobalCtl, mask | random.getrandbits(counters), 0),
        (PerfCntrGlobalStatusClr, mask | 1 << 59, 0),
        # The host's own would stop the guest that runs, until the exit that the overflow asks for
        (DebugCtl, 0 if host else random.getrandbits(1) << 12, 0),
        (PerfCntrGlobalStatusSet, mask & random.getrandbits(counters) | freeze, 0),
        (LVT_PMC, random.getrandbits(1) << 16 | 0xEF, 0),
    ]
    return random.choice([choice for choice in choices if choice[0] is not PerfCtrx or n < LEGACY_COUNTERS])


def amd_enable(pmu: Registers, counters: int) -> None:
    pmu.write(PerfCntrGlobalCtl, pmu.read(PerfCntrGlobalCtl) | counters)


def loongarch_write(random: Random, counters: int, pmu: Registers, host: bool) -> Write:
    n = random.randrange(counters)
    control = random.choice([0, 1, 1, 8]) | random.getrandbits(5) << 16
    return random.choice([
        (PERFCTRLn, control, n),
        (PERFCNTRn, near(random, random.choice([63, 64])), n),
        (PERFCNTRn, near(random, 63), n),
        (MISC, random.getrandbits(3) << 9, 0),
        (ECFG, random.getrandbits(1) << 10, 0),
    ])  # fmt: skip


def loongarch_enable(pmu: Registers, counters: int) -> None:
    for n in range(counters.bit_length()):
        if counters >> n & 1:
            pmu.write(PERFCTRLn, pmu.read(PERFCTRLn, n) | PERFCTRLn.make(PLV3=1), n)


VENDORS = (
    Vendor(("pmuv3p1", "pmuv3p5", "pmuv3p9"), PrivilegedPmuV3, SharedPmuV3, arm_write, (MDCR_EL2, MDCR_EL3),
           (PMCNTENSET_EL0, PMCNTENCLR_EL0), arm_enable),
    Vendor(("skylake", "redwood_cove", "intel_arch_perfmon_v6"), Perfmon, SharedPerfmon, intel_write,
           (MSR_PERF_METRICS, IA32_PERF_CAPABILITIES), (IA32_PERF_GLOBAL_CTRL,), intel_enable),
    Vendor(("zen4", "zen5"), CoreCounters, SharedCoreCounters, amd_write,
           (), (PerfCntrGlobalCtl,), amd_enable),
    Vendor(("loongarch",), PerformanceMonitors, SharedMonitors, loongarch_write, (), (PERFCTRLn,), loongarch_enable),
)  # fmt: skip
BY_MODEL = {name: vendor for vendor in VENDORS for name in vendor.models}
