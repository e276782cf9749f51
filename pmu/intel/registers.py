"""Registers of architectural performance monitoring, versions 2 to 6.

Intel SDM volume 3, chapter "Performance Monitoring"; numbers from volume 4, table "IA-32 Architectural MSRs". Writing a
one to an undeclared bit is #GP(0) on hardware, and an error here; so is one to a bit that a version or a model has not
(`reserved_in`).
"""

from __future__ import annotations

from emulator.sysregs import Msr
from pmu.register import RO, RW, W1C, W1S, Bank, Register

ARCHITECTURAL_COUNTERS = 8  # general-purpose counters that have MSR numbers
MOST_COUNTERS = 32  # that IA32_PERF_GLOBAL_CTRL has bits for; those above 8 exist in measuring PMUs only
FIXED_COUNTERS = 4
SLOTS = 3  # the fixed counter of slots, whose shares MSR_PERF_METRICS has
RDPMC_FIXED = 1 << 30  # in ECX of RDPMC: a fixed counter
RDPMC_METRICS = 1 << 29  # ... MSR_PERF_METRICS
FIXED_SHIFT = 32  # the fixed counters' first bit in the global registers


class Ia32Register(Register):
    """A model-specific register."""

    reserved_bits_fault = True


class IA32_PERFEVTSELx(Ia32Register):
    """Performance Event Select: what general-purpose counter x counts, and when."""

    event_field = "EVENT"
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
    ADAPTIVE = RW(34)  # its PEBS records have the groups of MSR_PEBS_DATA_CFG


class IA32_PMCx(Ia32Register):
    """General-purpose counter x. A write takes 32 bits and sign-extends them to the counter's width."""

    bank = Bank(ARCHITECTURAL_COUNTERS, "IA32_PMC{}", lambda n: Msr(0xC1 + n))

    COUNT = RW(63, 0)


class IA32_A_PMCx(Ia32Register):
    """General-purpose counter x again; a write takes the full width."""

    again = True
    bank = Bank(ARCHITECTURAL_COUNTERS, "IA32_A_PMC{}", lambda n: Msr(0x4C1 + n))

    COUNT = RW(47, 0)


class IA32_FIXED_CTRx(Ia32Register):
    """Fixed-function counter x: 0 instructions, 1 cycles, 2 cycles of the time stamp counter, 3 slots."""

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
    PEBS_BASELINE = RO(14)
    PERF_METRICS_AVAILABLE = RO(15)


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
    EN3_OS = RW(12)
    EN3_USR = RW(13)
    ANY3 = RW(14)
    PMI3 = RW(15)
    ADAPTIVE0 = RW(32)  # its PEBS records have the groups of MSR_PEBS_DATA_CFG
    ADAPTIVE1 = RW(36)
    ADAPTIVE2 = RW(40)
    ADAPTIVE3 = RW(44)


class IA32_PERF_GLOBAL_STATUS(Ia32Register):
    """Overflow status."""

    encoding = Msr(0x38E)
    stored_in = "global_status"

    OVF_PMC = RO(31, 0)
    OVF_FIXED = RO(35, 32)
    OVF_PERF_METRICS = RO(48)
    TRACE_TOPA_PMI = RO(55)  # a region of Intel PT's output that interrupts is full
    LBR_FRZ = RO(58)  # branch records stand still since an interrupt, by IA32_DEBUGCTL.FREEZE_LBRS_ON_PMI
    CTR_FRZ = RO(59)  # counters stand still since an interrupt, by IA32_DEBUGCTL.FREEZE_PERFMON_ON_PMI
    OVF_BUFFER = RO(62)  # the DS area's PEBS index has reached its threshold


class IA32_PERF_GLOBAL_CTRL(Ia32Register):
    """Which counters may count."""

    encoding = Msr(0x38F)

    EN_PMC = RW(31, 0)
    EN_FIXED = RW(35, 32)
    EN_PERF_METRICS = RW(48)


class IA32_PERF_GLOBAL_STATUS_RESET(Ia32Register):
    """Clears bits of IA32_PERF_GLOBAL_STATUS. Called IA32_PERF_GLOBAL_OVF_CTRL before version 4."""

    encoding = Msr(0x390)
    stored_in = "global_status"

    OVF_PMC = W1C(31, 0, readable=False)
    OVF_FIXED = W1C(35, 32, readable=False)
    OVF_PERF_METRICS = W1C(48, readable=False)
    TRACE_TOPA_PMI = W1C(55, readable=False)
    LBR_FRZ = W1C(58, readable=False)
    CTR_FRZ = W1C(59, readable=False)
    OVF_UNCORE = W1C(61, readable=False)  # never set
    OVF_BUFFER = W1C(62, readable=False)
    COND_CHGD = W1C(63, readable=False)  # never set


class IA32_PERF_GLOBAL_STATUS_SET(Ia32Register):
    """Sets bits of IA32_PERF_GLOBAL_STATUS."""

    encoding = Msr(0x391)
    stored_in = "global_status"

    OVF_PMC = W1S(31, 0, readable=False)
    OVF_FIXED = W1S(35, 32, readable=False)
    OVF_PERF_METRICS = W1S(48, readable=False)
    TRACE_TOPA_PMI = W1S(55, readable=False)
    LBR_FRZ = W1S(58, readable=False)
    CTR_FRZ = W1S(59, readable=False)
    OVF_BUFFER = W1S(62, readable=False)


class IA32_PERF_GLOBAL_INUSE(Ia32Register):
    """Which counters software has set up."""

    encoding = Msr(0x392)

    PMC = RO(31, 0)
    FIXED = RO(35, 32)
    PMI = RO(63)  # some counter has its interrupt enabled


class IA32_PMC_GPx_CTR(Ia32Register):
    """General-purpose counter x once more, with its full width: version 6."""

    again = True
    bank = Bank(ARCHITECTURAL_COUNTERS, "IA32_PMC_GP{}_CTR", lambda n: Msr(0x1900 + 4 * n))

    COUNT = RW(47, 0)


class IA32_PMC_GPx_CFG_A(IA32_PERFEVTSELx):
    """IA32_PERFEVTSELx under another number: version 6."""

    again = True
    bank = Bank(ARCHITECTURAL_COUNTERS, "IA32_PMC_GP{}_CFG_A", lambda n: Msr(0x1901 + 4 * n))


class IA32_PMC_FXx_CTR(Ia32Register):
    """Fixed-function counter x once more: version 6."""

    again = True
    bank = Bank(FIXED_COUNTERS, "IA32_PMC_FX{}_CTR", lambda n: Msr(0x1980 + 4 * n))

    COUNT = RW(47, 0)


class MSR_PERF_METRICS(Ia32Register):
    """Where the slots that fixed counter 3 has counted went: shares of 255."""

    encoding = Msr(0x329)

    RETIRING = RW(7, 0)
    BAD_SPECULATION = RW(15, 8)
    FRONTEND_BOUND = RW(23, 16)
    BACKEND_BOUND = RW(31, 24)
    HEAVY_OPERATIONS = RW(39, 32)  # of those that retire; nobody here knows it: 0
    BRANCH_MISPREDICTS = RW(47, 40)  # of bad speculation
    FETCH_LATENCY = RW(55, 48)  # of the frontend's
    MEMORY_BOUND = RW(63, 56)  # of the backend's


class IA32_DEBUGCTL(Ia32Register):
    """Debug control: what of it concerns the counters, branch records, and the branch trace store."""

    encoding = Msr(0x1D9)

    LBR = RW(0)  # branches are recorded
    TR = RW(6)  # branch trace messages are made
    BTS = RW(7)  # ... and stored by the DS area, rather than told on a bus
    BTINT = RW(8)  # an interrupt comes at the threshold; else the buffer is circular
    BTS_OFF_OS = RW(9)  # none at CPL 0
    BTS_OFF_USR = RW(10)  # none above
    FREEZE_LBRS_ON_PMI = RW(11)
    FREEZE_PERFMON_ON_PMI = RW(12)
    FREEZE_WHILE_SMM = RW(14)  # a mode that there is not


class IA32_X2APIC_LVT_PMI(Ia32Register):
    """The local APIC's entry for the performance monitoring interrupt. Intel SDM volume 3, "Local Vector Table"."""

    encoding = Msr(0x834)

    VECTOR = RW(7, 0)
    DELIVERY_MODE = RW(10, 8)  # 4: NMI
    DELIVERY_STATUS = RO(12)
    MASK = RW(16)  # set by the APIC when it delivers the interrupt; software clears it


_ANY = (IA32_PERFEVTSELx.ANY.mask, sum(IA32_FIXED_CTR_CTRL.fields[f"ANY{n}"].mask for n in range(FIXED_COUNTERS)))
_ADAPTIVE = sum(IA32_FIXED_CTR_CTRL.fields[f"ADAPTIVE{n}"].mask for n in range(FIXED_COUNTERS))
BRANCH_TRACE = sum(IA32_DEBUGCTL.fields[name].mask for name in ("TR", "BTS", "BTINT", "BTS_OFF_OS", "BTS_OFF_USR"))
_ANY_VERSIONS = (3, 4)
_STREAMLINED = 4  # the version that freezes by a status bit
ARCHITECTURAL_LBRS = 0x3F  # IA32_PERF_CAPABILITIES.LBR_FMT: their registers are IA32_LBR_*, with an enable of their own


def reserved_in(version: int, counters: int, fixed: int, capabilities: int) -> dict[type[Register], int]:
    """Declared bits that are reserved for want of a counter or a feature, by register.

    `counters`, `fixed`: masks of those that there are; `capabilities`: IA32_PERF_CAPABILITIES. Versions 3 and 4 have
    ANY. Of later ones the manual says that software shall not set it; that it faults is our choice, and KVM's. Who has
    a branch trace store, or Intel PT, takes its bits away from these.
    """
    has = IA32_PERF_CAPABILITIES(capabilities)
    metrics = 0 if has.PERF_METRICS_AVAILABLE else IA32_PERF_GLOBAL_CTRL.EN_PERF_METRICS.mask
    absent = ~counters & 0xFFFF_FFFF | (~fixed & (1 << FIXED_COUNTERS) - 1) << FIXED_SHIFT | metrics
    trace = IA32_PERF_GLOBAL_STATUS.TRACE_TOPA_PMI.mask
    frozen = 0 if version >= _STREAMLINED else IA32_PERF_GLOBAL_STATUS.CTR_FRZ.mask
    debug = BRANCH_TRACE | (0 if has.FREEZE_WHILE_SMM else IA32_DEBUGCTL.FREEZE_WHILE_SMM.mask)
    if not has.LBR_FMT or version < _STREAMLINED:
        frozen |= IA32_PERF_GLOBAL_STATUS.LBR_FRZ.mask
    if not has.LBR_FMT:
        debug |= IA32_DEBUGCTL.FREEZE_LBRS_ON_PMI.mask
    if has.LBR_FMT in (0, ARCHITECTURAL_LBRS):
        debug |= IA32_DEBUGCTL.LBR.mask
    any_select, any_fixed = (0, 0) if version in _ANY_VERSIONS else _ANY
    if not has.PEBS_BASELINE:
        any_select |= IA32_PERFEVTSELx.ADAPTIVE.mask
        any_fixed |= _ADAPTIVE
    buffer = 0 if has.PEBS_REC_FMT else IA32_PERF_GLOBAL_STATUS_SET.OVF_BUFFER.mask
    of_a_counter = 0b1111 | IA32_FIXED_CTR_CTRL.ADAPTIVE0.mask
    absent_control = sum(of_a_counter << 4 * n for n in range(FIXED_COUNTERS) if not fixed >> n & 1)
    return {
        IA32_PERFEVTSELx: any_select,
        IA32_PMC_GPx_CFG_A: any_select,
        IA32_FIXED_CTR_CTRL: absent_control | any_fixed,
        IA32_PERF_GLOBAL_CTRL: absent,
        IA32_PERF_GLOBAL_STATUS_RESET: absent | frozen | trace,
        IA32_PERF_GLOBAL_STATUS_SET: absent | frozen | buffer | trace,
        IA32_DEBUGCTL: debug,
    }
