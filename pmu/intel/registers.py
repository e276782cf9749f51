"""Registers of architectural performance monitoring, version 4.

Intel SDM volume 3, chapter "Performance Monitoring"; numbers from volume 4, table "IA-32 Architectural MSRs". Writing a
one to an undeclared bit is #GP(0) on hardware, and an error here.
"""

from __future__ import annotations

from emulator.sysregs import Msr
from pmu.register import RO, RW, W1C, W1S, Bank, Register

ARCHITECTURAL_COUNTERS = 8  # general-purpose counters that have MSR numbers
MOST_COUNTERS = 32  # that IA32_PERF_GLOBAL_CTRL has bits for; those above 8 exist in measuring PMUs only
FIXED_COUNTERS = 3
RDPMC_FIXED = 1 << 30  # in ECX of RDPMC: a fixed counter
FIXED_SHIFT = 32  # the fixed counters' first bit in the global registers


class Ia32Register(Register):
    """A model-specific register."""

    reserved_bits_fault = True


class IA32_PERFEVTSELx(Ia32Register):
    """Performance Event Select: what general-purpose counter x counts, and when."""

    bank = Bank(ARCHITECTURAL_COUNTERS, "IA32_PERFEVTSEL{}", lambda n: Msr(0x186 + n))

    EVENT = RW(7, 0)
    UMASK = RW(15, 8)
    USR = RW(16)  # count at privilege 1, 2, 3
    OS = RW(17)  # count at privilege 0
    E = RW(18)  # edge detect
    PC = RW(19)  # pin control: no effect
    INT = RW(20)  # interrupt on overflow
    ANY = RW(21)  # any thread of the core: we have one
    EN = RW(22)
    INV = RW(23)  # invert the comparison with CMASK
    CMASK = RW(31, 24)  # count cycles with at least so many events


class IA32_PMCx(Ia32Register):
    """General-purpose counter x. A write takes 32 bits and sign-extends them to the counter's width."""

    bank = Bank(ARCHITECTURAL_COUNTERS, "IA32_PMC{}", lambda n: Msr(0xC1 + n))

    COUNT = RW(63, 0)


class IA32_A_PMCx(Ia32Register):
    """General-purpose counter x again; a write takes the full width."""

    bank = Bank(ARCHITECTURAL_COUNTERS, "IA32_A_PMC{}", lambda n: Msr(0x4C1 + n))

    COUNT = RW(47, 0)


class IA32_FIXED_CTRx(Ia32Register):
    """Fixed-function counter x: 0 INST_RETIRED.ANY, 1 CPU_CLK_UNHALTED.THREAD, 2 CPU_CLK_UNHALTED.REF_TSC."""

    bank = Bank(FIXED_COUNTERS, "IA32_FIXED_CTR{}", lambda n: Msr(0x309 + n))

    COUNT = RW(47, 0)


class IA32_PERF_CAPABILITIES(Ia32Register):
    """What the performance monitoring unit can do."""

    encoding = Msr(0x345)

    LBR_FMT = RO(5, 0)
    PEBS_TRAP = RO(6)
    PEBS_ARCH_REG = RO(7)
    PEBS_REC_FMT = RO(11, 8)
    FREEZE_WHILE_SMM = RO(12)
    FW_WRITE = RO(13)  # IA32_A_PMCx exist


class IA32_FIXED_CTR_CTRL(Ia32Register):
    """Fixed-function counter control: four bits a counter."""

    encoding = Msr(0x38D)

    EN0_OS = RW(0)
    EN0_USR = RW(1)
    ANY0 = RW(2)
    PMI0 = RW(3)  # interrupt on overflow
    EN1_OS = RW(4)
    EN1_USR = RW(5)
    ANY1 = RW(6)
    PMI1 = RW(7)
    EN2_OS = RW(8)
    EN2_USR = RW(9)
    ANY2 = RW(10)
    PMI2 = RW(11)


class IA32_PERF_GLOBAL_STATUS(Ia32Register):
    """Overflow status."""

    encoding = Msr(0x38E)
    stored_in = "global_status"

    OVF_PMC = RO(31, 0)
    OVF_FIXED = RO(34, 32)
    CTR_FRZ = RO(59)  # counters stand still since an interrupt, by IA32_DEBUGCTL.FREEZE_PERFMON_ON_PMI


class IA32_PERF_GLOBAL_CTRL(Ia32Register):
    """Which counters may count."""

    encoding = Msr(0x38F)

    EN_PMC = RW(31, 0)
    EN_FIXED = RW(34, 32)


class IA32_PERF_GLOBAL_STATUS_RESET(Ia32Register):
    """Clears bits of IA32_PERF_GLOBAL_STATUS. Called IA32_PERF_GLOBAL_OVF_CTRL before version 4."""

    encoding = Msr(0x390)
    stored_in = "global_status"

    OVF_PMC = W1C(31, 0, readable=False)
    OVF_FIXED = W1C(34, 32, readable=False)
    CTR_FRZ = W1C(59, readable=False)
    OVF_UNCORE = W1C(61, readable=False)  # never set
    OVF_BUFFER = W1C(62, readable=False)  # never set
    COND_CHGD = W1C(63, readable=False)  # never set


class IA32_PERF_GLOBAL_STATUS_SET(Ia32Register):
    """Sets bits of IA32_PERF_GLOBAL_STATUS."""

    encoding = Msr(0x391)
    stored_in = "global_status"

    OVF_PMC = W1S(31, 0, readable=False)
    OVF_FIXED = W1S(34, 32, readable=False)
    CTR_FRZ = W1S(59, readable=False)


class IA32_PERF_GLOBAL_INUSE(Ia32Register):
    """Which counters software has set up."""

    encoding = Msr(0x392)

    PMC = RO(31, 0)
    FIXED = RO(34, 32)
    PMI = RO(63)  # some counter has its interrupt enabled


class IA32_DEBUGCTL(Ia32Register):
    """Debug control: what of it concerns the counters."""

    encoding = Msr(0x1D9)

    FREEZE_PERFMON_ON_PMI = RW(12)
    FREEZE_WHILE_SMM = RW(14)  # a mode that there is not


class IA32_X2APIC_LVT_PMI(Ia32Register):
    """The local APIC's entry for the performance monitoring interrupt. Intel SDM volume 3, "Local Vector Table"."""

    encoding = Msr(0x834)

    VECTOR = RW(7, 0)
    DELIVERY_MODE = RW(10, 8)  # 4: NMI
    DELIVERY_STATUS = RO(12)
    MASK = RW(16)  # set by the APIC when it delivers the interrupt; software clears it
