"""PMUv3's system registers. Each is documented in Arm ARM DDI 0487 under its own name.

The PE that we model executes AArch64 only and implements EL2 and EL3, so PMCR_EL0.D is RES0 and PMCR_EL0.LC RES1. It
has no Statistical Profiling (PMCR_EL0.FZS is RES0), no multithreading (MT), no Secure EL2 and no Realms (SH, RLK, RLU,
RLH), no streaming SVE mode (VS), and no PMU exceptions (SYNC, PMEE, PMIAR_EL1).
"""

from __future__ import annotations

from typing import ClassVar

from emulator.sysregs import SysReg
from pmu.arm.version import INSTRUCTION_COUNTER, Version
from pmu.register import RO, RW, W1C, W1S, WO, Bank, Register

MOST_EVENT_COUNTERS = 31  # numbered 0..30
CYCLES = 31  # the cycle counter's bit in the set, clear and overflow registers, and its PMSELR_EL0.SEL
INSTRUCTIONS = 32  # ... and the instruction counter's


class ArmRegister(Register):
    """A register with its EL0 permissions: the PMUSERENR_EL0 bits of which one must be set, or None: never."""

    el0_read: ClassVar[int | None] = None
    el0_write: ClassVar[int | None] = None
    el0_traps: ClassVar[int] = 0  # PMUSERENR_EL0 bits that forbid in any case
    since: ClassVar[Version] = Version.V3P0
    option: ClassVar[str | None] = None  # that a PMU with the register has, by the architecture's name
    counter: ClassVar[int | None] = None  # whose register it is, of those that stand alone
    least_level: ClassVar[int] = 0  # exception level that may ever have it; EL0 has what el0_read and el0_write say
    monitor_trap: ClassVar[bool] = True  # whether MDCR_EL2.TPM and MDCR_EL3.TPM trap it
    enable: ClassVar[str | None] = None  # the field of MDCR_EL3 without which EL3 traps it


class PMUSERENR_EL0(ArmRegister):
    """User Enable Register. Readable at EL0 always; writable never."""

    encoding = SysReg(3, 3, 9, 14, 0)

    EN = RW(0)  # EL0 may access nearly all
    SW = RW(1)  # ... write PMSWINC_EL0; with UEN: all counters of it, whatever PMUACR_EL1 says
    CR = RW(2)  # ... read PMCCNTR_EL0; with UEN: read only
    ER = RW(3)  # ... read the event counters, access PMSELR_EL0; with UEN: read only
    UEN = RW(4)  # instead of EN: EL0 may access all but PMCR_EL0, of the counters that PMUACR_EL1 names
    IR = RW(5)  # with UEN: PMICNTR_EL0 is read only
    TID = RW(6)  # EL0 may not read PMCEID0_EL0 and 1


EN = PMUSERENR_EL0.EN.mask
SW = PMUSERENR_EL0.SW.mask
CR = PMUSERENR_EL0.CR.mask
ER = PMUSERENR_EL0.ER.mask
UEN = PMUSERENR_EL0.UEN.mask
IR = PMUSERENR_EL0.IR.mask
TID = PMUSERENR_EL0.TID.mask
ALL = EN | UEN
ALWAYS = -1
PMUSERENR_EL0.el0_read = ALWAYS


class PMCR_EL0(ArmRegister):
    """Control Register."""

    encoding = SysReg(3, 3, 9, 12, 0)
    el0_read = el0_write = EN
    el0_traps = UEN

    E = RW(0)  # counters count
    P = WO(1)  # reset the event counters
    C = WO(2)  # reset the cycle counter
    D = RO(3)  # clock divider: RES0 without AArch32
    X = RW(4)  # export of events: no effect
    DP = RW(5)  # the cycle counter stops, too, where event counting is frozen or prohibited
    LC = RO(6)  # PMCCNTR_EL0 overflows at bit 63: RES1 without AArch32
    LP = RW(7)  # event counters overflow at bit 63 and not at bit 31: from PMUv3p5 on
    FZO = RW(9)  # event counters stop while any of them has overflowed: from PMUv3p7 on
    N = RO(15, 11)  # number of event counters
    IDCODE = RO(23, 16)
    IMP = RO(31, 24)  # zero from PMUv3p7 on
    FZS = RO(32)  # freezing by Statistical Profiling: RES0 without that


class PMCNTENSET_EL0(ArmRegister):
    """Count Enable Set."""

    encoding = SysReg(3, 3, 9, 12, 1)
    el0_read = el0_write = ALL
    stored_in = "counter_enables"

    F0 = W1S(32)  # instruction counter
    C = W1S(31)  # cycle counter
    P = W1S(30, 0)  # event counters


class PMCNTENCLR_EL0(ArmRegister):
    """Count Enable Clear. The same bits as PMCNTENSET_EL0, written the other way."""

    encoding = SysReg(3, 3, 9, 12, 2)
    el0_read = el0_write = ALL
    stored_in = "counter_enables"

    F0 = W1C(32)
    C = W1C(31)
    P = W1C(30, 0)


class PMOVSCLR_EL0(ArmRegister):
    """Overflow Flag Status Clear."""

    encoding = SysReg(3, 3, 9, 12, 3)
    el0_read = el0_write = ALL
    stored_in = "overflows"

    F0 = W1C(32)
    C = W1C(31)
    P = W1C(30, 0)


class PMSWINC_EL0(ArmRegister):
    """Software Increment: counts one on each named counter that counts SW_INCR."""

    encoding = SysReg(3, 3, 9, 12, 4)
    el0_write = ALL | SW

    P = WO(30, 0)


class PMSELR_EL0(ArmRegister):
    """Event Counter Selection, for PMXEVTYPER_EL0 and PMXEVCNTR_EL0."""

    encoding = SysReg(3, 3, 9, 12, 5)
    el0_read = el0_write = ALL | ER

    SEL = RW(4, 0)


class PMCEID0_EL0(ArmRegister):
    """Common Event Identification 0: events 0x0000..0x001F below, 0x4000..0x401F above."""

    encoding = SysReg(3, 3, 9, 12, 6)
    el0_read = ALL
    el0_traps = TID

    ID = RO(31, 0)
    IDhi = RO(63, 32)


class PMCEID1_EL0(ArmRegister):
    """Common Event Identification 1: events 0x0020..0x003F below, 0x4020..0x403F above."""

    encoding = SysReg(3, 3, 9, 12, 7)
    el0_read = ALL
    el0_traps = TID

    ID = RO(31, 0)
    IDhi = RO(63, 32)


class PMCCNTR_EL0(ArmRegister):
    """Cycle Count Register."""

    encoding = SysReg(3, 3, 9, 13, 0)
    counter = CYCLES
    el0_read = ALL | CR
    el0_write = ALL

    CCNT = RW(63, 0)


class PMEVTYPERn_EL0(ArmRegister):
    """Event Type: what counter n counts, and at which privilege."""

    event_field = "evtCount"
    bank = Bank(MOST_EVENT_COUNTERS, "PMEVTYPER{}_EL0", lambda n: SysReg(3, 3, 14, 0b1100 | n >> 3, n & 7))
    el0_read = el0_write = ALL

    P = RW(31)  # 1: not at EL1
    U = RW(30)  # 1: not at EL0
    NSK = RW(29)  # Non-secure EL1 counts if this equals P
    NSU = RW(28)  # Non-secure EL0 counts if this equals U
    NSH = RW(27)  # 1: at EL2, which is not executed
    M = RW(26)  # EL3, which is not executed
    TC = RW(63, 61)  # with FEAT_PMUv3_TH, how a cycle's events compare with TH; bit 61: one is added, not as many
    TE = RW(60)  # with FEAT_PMUv3_EDGE: one is added where that begins to hold; TC's bit 61 is 0: or ceases to
    TLC = RW(55, 54)  # with FEAT_PMUv3_TH2, of odd counters: 1: else what counter n-1 adds; 2: then what that adds
    TH = RW(43, 32)
    evtCount = RW(15, 0)  # 9 to 0 before PMUv3p1


class PMCCFILTR_EL0(ArmRegister):
    """Cycle Count Filter: at which privilege the cycle counter counts; bits as in PMEVTYPER<n>_EL0."""

    encoding = SysReg(3, 3, 14, 15, 7)
    counter = CYCLES
    el0_read = el0_write = ALL

    P = RW(31)
    U = RW(30)
    NSK = RW(29)
    NSU = RW(28)
    NSH = RW(27)
    M = RW(26)


class PMXEVTYPER_EL0(ArmRegister):
    """Selected Event Type: PMEVTYPER<SEL>_EL0, or PMCCFILTR_EL0 for SEL 31."""

    again = True
    encoding = SysReg(3, 3, 9, 13, 1)
    el0_read = el0_write = ALL


class PMEVCNTRn_EL0(ArmRegister):
    """Event Count: counter n."""

    bank = Bank(MOST_EVENT_COUNTERS, "PMEVCNTR{}_EL0", lambda n: SysReg(3, 3, 14, 0b1000 | n >> 3, n & 7))
    el0_read = ALL | ER
    el0_write = ALL

    EVCNT = RW(63, 0)  # 31 to 0 before PMUv3p5


class PMXEVCNTR_EL0(ArmRegister):
    """Selected Event Count: PMEVCNTR<SEL>_EL0."""

    again = True
    encoding = SysReg(3, 3, 9, 13, 2)
    el0_read = ALL | ER
    el0_write = ALL


class PMOVSSET_EL0(ArmRegister):
    """Overflow Flag Status Set. The same bits as PMOVSCLR_EL0."""

    encoding = SysReg(3, 3, 9, 14, 3)
    el0_read = el0_write = ALL
    stored_in = "overflows"

    F0 = W1S(32)
    C = W1S(31)
    P = W1S(30, 0)


class PMINTENSET_EL1(ArmRegister):
    """Interrupt Enable Set."""

    encoding = SysReg(3, 0, 9, 14, 1)
    stored_in = "interrupt_enables"

    F0 = W1S(32)
    C = W1S(31)
    P = W1S(30, 0)


class PMINTENCLR_EL1(ArmRegister):
    """Interrupt Enable Clear. The same bits as PMINTENSET_EL1."""

    encoding = SysReg(3, 0, 9, 14, 2)
    stored_in = "interrupt_enables"

    F0 = W1C(32)
    C = W1C(31)
    P = W1C(30, 0)


class PMMIR_EL1(ArmRegister):
    """Machine Identification: what the core's events mean."""

    encoding = SysReg(3, 0, 9, 14, 6)
    since = Version.V3P4

    SLOTS = RO(7, 0)  # by which STALL_SLOT may grow in a cycle
    BUS_SLOTS = RO(15, 8)  # by which BUS_ACCESS may; 0: not told
    BUS_WIDTH = RO(19, 16)  # bytes of an access: log2 plus one; 0: not told
    THWIDTH = RO(23, 20)  # bits of PMEVTYPER<n>_EL0.TH; 0: no thresholds
    EDGE = RO(27, 24)  # 0: no edges; 1: PMEVTYPER<n>_EL0.TE; 2: and TLC


class PMUACR_EL1(ArmRegister):
    """User Access Control: the counters that EL0 may reach with PMUSERENR_EL0.UEN."""

    encoding = SysReg(3, 0, 9, 14, 4)
    since = Version.V3P9
    enable = "EnPM2"

    F0 = RW(32)
    C = RW(31)
    P = RW(30, 0)


class PMZR_EL0(ArmRegister):
    """Zero with mask: each counter that is named becomes zero."""

    encoding = SysReg(3, 3, 9, 13, 4)
    el0_write = ALL
    since = Version.V3P9

    F0 = WO(32)
    C = WO(31)
    P = WO(30, 0)


class PMICNTR_EL0(ArmRegister):
    """Instruction Count Register."""

    encoding = SysReg(3, 3, 9, 4, 0)
    el0_read = el0_write = UEN
    since = Version.V3P9
    enable = "EnPM2"
    option = INSTRUCTION_COUNTER
    counter = INSTRUCTIONS

    ICNT = RW(63, 0)


class PMICFILTR_EL0(ArmRegister):
    """Instruction Counter Filter: at which privilege it counts; bits as in PMEVTYPER<n>_EL0."""

    encoding = SysReg(3, 3, 9, 6, 0)
    el0_read = el0_write = UEN
    since = Version.V3P9
    enable = "EnPM2"
    option = INSTRUCTION_COUNTER
    counter = INSTRUCTIONS

    P = RW(31)
    U = RW(30)
    NSK = RW(29)
    NSU = RW(28)
    NSH = RW(27)
    M = RW(26)
    evtCount = RO(15, 0)  # INST_RETIRED
