"""The Activity Monitors' system registers. Each is documented in Arm ARM DDI 0487 under its own name.

The PE that we model implements EL3, which is the highest: only there are counters started, stopped and written. There
is no AArch32, nor an external interface, nor Debug state, so that AMCR_EL0.HDBG holds what was written, and no more.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from emulator.sysregs import SysReg
from pmu.register import RO, RW, W1C, W1S, Bank, Register

ARCHITECTED, MOST_AUXILIARY = 4, 16  # counters of the two groups
CORE, CONSTANT, INSTRUCTIONS, MEMORY_STALLS = range(ARCHITECTED)  # numbers in the first
EVENTS = 0x0011, 0x4004, 0x0008, 0x4005  # CPU_CYCLES, CNT_CYCLES, INST_RETIRED, STALL_BACKEND_MEM
WITH_OFFSETS = CORE, INSTRUCTIONS, MEMORY_STALLS


class Version(IntEnum):
    """ID_AA64PFR0_EL1.AMU."""

    V1 = 1  # FEAT_AMUv1
    V1P1 = 2  # FEAT_AMUv1p1


class AmuRegister(Register):
    """A register with the exception levels that may reach it, if nothing traps it."""

    least_level: ClassVar[int] = 0
    written_from: ClassVar[int | None] = None  # the least level that may write; None: read only
    since: ClassVar[Version] = Version.V1
    trapped: ClassVar[bool] = True  # by CPTR_EL2.TAM and CPTR_EL3.TAM
    user_enable: ClassVar[bool] = True  # EL0 needs AMUSERENR_EL0.EN


class AMCR_EL0(AmuRegister):
    """Control Register."""

    encoding = SysReg(3, 3, 13, 2, 0)
    written_from = 3

    HDBG = RW(10)  # counters stop in Debug state, which there is not
    CG1RZ = RW(17)  # the auxiliary counters read as zero below the highest level: from v1p1 on


class AMCFGR_EL0(AmuRegister):
    """Configuration Register."""

    encoding = SysReg(3, 3, 13, 2, 1)

    N = RO(7, 0)  # number of counters, minus one
    SIZE = RO(13, 8)  # bits of one, minus one
    HDBG = RO(24)  # AMCR_EL0.HDBG is there
    NCG = RO(31, 28)  # number of groups, minus one


class AMCGCR_EL0(AmuRegister):
    """Counter Group Configuration Register."""

    encoding = SysReg(3, 3, 13, 2, 2)

    CG0NC = RO(7, 0)  # number of architected counters
    CG1NC = RO(15, 8)  # number of auxiliary ones


class AMUSERENR_EL0(AmuRegister):
    """User Enable Register."""

    encoding = SysReg(3, 3, 13, 2, 3)
    written_from = 1
    user_enable = False

    EN = RW(0)  # EL0 may read all


class AMCNTENCLR0_EL0(AmuRegister):
    """Count Enable Clear Register 0."""

    encoding = SysReg(3, 3, 13, 2, 4)
    written_from = 3
    stored_in = "architected_enables"

    P = W1C(3, 0)


class AMCNTENSET0_EL0(AmuRegister):
    """Count Enable Set Register 0. The same bits as AMCNTENCLR0_EL0, written the other way."""

    encoding = SysReg(3, 3, 13, 2, 5)
    written_from = 3
    stored_in = "architected_enables"

    P = W1S(3, 0)


class AMCG1IDR_EL0(AmuRegister):
    """Counter Group 1 Identification Register: which auxiliary counters, and which of their offsets, are there."""

    encoding = SysReg(3, 3, 13, 2, 6)
    since = Version.V1P1

    AMEVCNTR1 = RO(15, 0)
    AMEVCNTOFF1 = RO(31, 16)


class AMCNTENCLR1_EL0(AmuRegister):
    """Count Enable Clear Register 1."""

    encoding = SysReg(3, 3, 13, 3, 0)
    written_from = 3
    stored_in = "auxiliary_enables"

    P = W1C(15, 0)


class AMCNTENSET1_EL0(AmuRegister):
    """Count Enable Set Register 1."""

    encoding = SysReg(3, 3, 13, 3, 1)
    written_from = 3
    stored_in = "auxiliary_enables"

    P = W1S(15, 0)


class AMEVCNTR0n_EL0(AmuRegister):
    """Event Counter Register 0: architected counter n."""

    bank = Bank(ARCHITECTED, "AMEVCNTR0{}_EL0", lambda n: SysReg(3, 3, 13, 0b0100 | n >> 3, n & 7))
    written_from = 3

    ACNT = RW(63, 0)


class AMEVTYPER0n_EL0(AmuRegister):
    """Event Type Register 0: what architected counter n counts."""

    bank = Bank(ARCHITECTED, "AMEVTYPER0{}_EL0", lambda n: SysReg(3, 3, 13, 0b0110 | n >> 3, n & 7))

    evtCount = RO(15, 0)


class AMEVCNTR1n_EL0(AmuRegister):
    """Event Counter Register 1: auxiliary counter n."""

    bank = Bank(MOST_AUXILIARY, "AMEVCNTR1{}_EL0", lambda n: SysReg(3, 3, 13, 0b1100 | n >> 3, n & 7))
    written_from = 3

    ACNT = RW(63, 0)


class AMEVTYPER1n_EL0(AmuRegister):
    """Event Type Register 1: what auxiliary counter n counts. Fixed, as the architecture allows."""

    bank = Bank(MOST_AUXILIARY, "AMEVTYPER1{}_EL0", lambda n: SysReg(3, 3, 13, 0b1110 | n >> 3, n & 7))

    evtCount = RO(15, 0)


class AMEVCNTVOFF0n_EL2(AmuRegister):
    """Event Counter Virtual Offset Register 0: what EL1 and EL0 see less of architected counter n. None of n = 1."""

    bank = Bank(ARCHITECTED, "AMEVCNTVOFF0{}_EL2", lambda n: SysReg(3, 4, 13, 0b1000 | n >> 3, n & 7))
    least_level = written_from = 2
    since = Version.V1P1

    VOffset = RW(63, 0)


class AMEVCNTVOFF1n_EL2(AmuRegister):
    """Event Counter Virtual Offset Register 1: the same of auxiliary counter n."""

    bank = Bank(MOST_AUXILIARY, "AMEVCNTVOFF1{}_EL2", lambda n: SysReg(3, 4, 13, 0b1010 | n >> 3, n & 7))
    least_level = written_from = 2
    since = Version.V1P1

    VOffset = RW(63, 0)


class CPTR_EL2(AmuRegister):
    """Architectural Feature Trap Register of EL2: its field for the activity monitors, while HCR_EL2.E2H is zero."""

    encoding = SysReg(3, 4, 1, 1, 2)
    least_level = written_from = 2
    trapped = False

    TAM = RW(30)  # trap EL1 and EL0


class CPTR_EL3(AmuRegister):
    """Architectural Feature Trap Register of EL3."""

    encoding = SysReg(3, 6, 1, 1, 2)
    least_level = written_from = 3
    trapped = False

    TAM = RW(30)  # trap all lower levels


class HCR_EL2(AmuRegister):
    """Hypervisor Configuration Register."""

    encoding = SysReg(3, 4, 1, 1, 0)
    least_level = written_from = 2
    since = Version.V1P1
    trapped = False

    AMVOFFEN = RW(51)  # EL1 and EL0 see counters less their offsets


class SCR_EL3(AmuRegister):
    """Secure Configuration Register."""

    encoding = SysReg(3, 6, 1, 1, 0)
    least_level = written_from = 3
    since = Version.V1P1
    trapped = False

    AMVOFFEN = RW(35)  # EL2 may reach the offsets, and they have an effect
