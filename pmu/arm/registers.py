"""PMUv3's system registers. Each is documented in Arm ARM DDI 0487 under its own name.

The PE that we model executes AArch64 only and implements EL2 and EL3, so PMCR_EL0.D is RES0 and PMCR_EL0.LC RES1.
"""

from __future__ import annotations

from typing import ClassVar

from emulator.sysregs import SysReg
from pmu.register import RO, RW, W1C, W1S, WO, Bank, Register

MOST_EVENT_COUNTERS = 31  # numbered 0..30
CYCLE_COUNTER = 31  # the cycle counter's bit in the set, clear and overflow registers, and its PMSELR_EL0.SEL


class ArmRegister(Register):
    """A register with its EL0 permissions: the PMUSERENR_EL0 bits of which one must be set, or None: never."""

    el0_read: ClassVar[int | None] = None
    el0_write: ClassVar[int | None] = None


class PMUSERENR_EL0(ArmRegister):
    """User Enable Register. Readable at EL0 always; writable never."""

    encoding = SysReg(3, 3, 9, 14, 0)

    EN = RW(0)  # EL0 may access nearly all
    SW = RW(1)  # ... write PMSWINC_EL0
    CR = RW(2)  # ... read PMCCNTR_EL0
    ER = RW(3)  # ... read the event counters, access PMSELR_EL0


EN = PMUSERENR_EL0.EN.mask
SW = PMUSERENR_EL0.SW.mask
CR = PMUSERENR_EL0.CR.mask
ER = PMUSERENR_EL0.ER.mask
ALWAYS = -1
PMUSERENR_EL0.el0_read = ALWAYS


class PMCR_EL0(ArmRegister):
    """Control Register."""

    encoding = SysReg(3, 3, 9, 12, 0)
    el0_read = el0_write = EN

    E = RW(0)  # counters count
    P = WO(1)  # reset the event counters
    C = WO(2)  # reset the cycle counter
    D = RO(3)  # clock divider: RES0 without AArch32
    X = RW(4)  # export of events: no effect
    DP = RW(5)  # stop the cycle counter where counting is prohibited: never so in user mode
    LC = RO(6)  # PMCCNTR_EL0 overflows at bit 63: RES1 without AArch32
    N = RO(15, 11)  # number of event counters
    IDCODE = RO(23, 16)
    IMP = RO(31, 24)


class PMCNTENSET_EL0(ArmRegister):
    """Count Enable Set."""

    encoding = SysReg(3, 3, 9, 12, 1)
    el0_read = el0_write = EN
    stored_in = "counter_enables"

    C = W1S(31)  # cycle counter
    P = W1S(30, 0)  # event counters


class PMCNTENCLR_EL0(ArmRegister):
    """Count Enable Clear. The same bits as PMCNTENSET_EL0, written the other way."""

    encoding = SysReg(3, 3, 9, 12, 2)
    el0_read = el0_write = EN
    stored_in = "counter_enables"

    C = W1C(31)
    P = W1C(30, 0)


class PMOVSCLR_EL0(ArmRegister):
    """Overflow Flag Status Clear."""

    encoding = SysReg(3, 3, 9, 12, 3)
    el0_read = el0_write = EN
    stored_in = "overflows"

    C = W1C(31)
    P = W1C(30, 0)


class PMSWINC_EL0(ArmRegister):
    """Software Increment: counts one on each named counter that counts SW_INCR."""

    encoding = SysReg(3, 3, 9, 12, 4)
    el0_write = EN | SW

    P = WO(30, 0)


class PMSELR_EL0(ArmRegister):
    """Event Counter Selection, for PMXEVTYPER_EL0 and PMXEVCNTR_EL0."""

    encoding = SysReg(3, 3, 9, 12, 5)
    el0_read = el0_write = EN | ER

    SEL = RW(4, 0)


class PMCEID0_EL0(ArmRegister):
    """Common Event Identification 0: events 0x0000..0x001F below, 0x4000..0x401F above."""

    encoding = SysReg(3, 3, 9, 12, 6)
    el0_read = EN

    ID = RO(31, 0)
    IDhi = RO(63, 32)


class PMCEID1_EL0(ArmRegister):
    """Common Event Identification 1: events 0x0020..0x003F below, 0x4020..0x403F above."""

    encoding = SysReg(3, 3, 9, 12, 7)
    el0_read = EN

    ID = RO(31, 0)
    IDhi = RO(63, 32)


class PMCCNTR_EL0(ArmRegister):
    """Cycle Count Register."""

    encoding = SysReg(3, 3, 9, 13, 0)
    el0_read = EN | CR
    el0_write = EN

    CCNT = RW(63, 0)


class PMEVTYPERn_EL0(ArmRegister):
    """Event Type: what counter n counts, and at which privilege."""

    bank = Bank(MOST_EVENT_COUNTERS, "PMEVTYPER{}_EL0", lambda n: SysReg(3, 3, 14, 0b1100 | n >> 3, n & 7))
    el0_read = el0_write = EN

    P = RW(31)  # 1: not at EL1
    U = RW(30)  # 1: not at EL0
    NSK = RW(29)  # Non-secure EL1 counts if this equals P
    NSU = RW(28)  # Non-secure EL0 counts if this equals U
    NSH = RW(27)  # 1: at EL2, which is not executed
    M = RW(26)  # EL3, which is not executed
    evtCount = RW(15, 0)


class PMCCFILTR_EL0(ArmRegister):
    """Cycle Count Filter: at which privilege the cycle counter counts; bits as in PMEVTYPER<n>_EL0."""

    encoding = SysReg(3, 3, 14, 15, 7)
    el0_read = el0_write = EN

    P = RW(31)
    U = RW(30)
    NSK = RW(29)
    NSU = RW(28)
    NSH = RW(27)
    M = RW(26)


class PMXEVTYPER_EL0(ArmRegister):
    """Selected Event Type: PMEVTYPER<SEL>_EL0, or PMCCFILTR_EL0 for SEL 31."""

    encoding = SysReg(3, 3, 9, 13, 1)
    el0_read = el0_write = EN


class PMEVCNTRn_EL0(ArmRegister):
    """Event Count: counter n."""

    bank = Bank(MOST_EVENT_COUNTERS, "PMEVCNTR{}_EL0", lambda n: SysReg(3, 3, 14, 0b1000 | n >> 3, n & 7))
    el0_read = EN | ER
    el0_write = EN

    COUNT = RW(31, 0)


class PMXEVCNTR_EL0(ArmRegister):
    """Selected Event Count: PMEVCNTR<SEL>_EL0."""

    encoding = SysReg(3, 3, 9, 13, 2)
    el0_read = EN | ER
    el0_write = EN


class PMOVSSET_EL0(ArmRegister):
    """Overflow Flag Status Set. The same bits as PMOVSCLR_EL0."""

    encoding = SysReg(3, 3, 9, 14, 3)
    el0_read = el0_write = EN
    stored_in = "overflows"

    C = W1S(31)
    P = W1S(30, 0)


class PMINTENSET_EL1(ArmRegister):
    """Interrupt Enable Set."""

    encoding = SysReg(3, 0, 9, 14, 1)
    stored_in = "interrupt_enables"

    C = W1S(31)
    P = W1S(30, 0)


class PMINTENCLR_EL1(ArmRegister):
    """Interrupt Enable Clear. The same bits as PMINTENSET_EL1."""

    encoding = SysReg(3, 0, 9, 14, 2)
    stored_in = "interrupt_enables"

    C = W1C(31)
    P = W1C(30, 0)
