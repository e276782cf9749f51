"""Registers of architectural last branch records. Intel SDM volume 3, "Architectural Last Branch Records"; numbers from
volume 4, table "IA-32 Architectural MSRs"."""

from __future__ import annotations

from emulator.sysregs import Msr
from pmu.intel.registers import Ia32Register
from pmu.register import RW, Bank

ARCH_LBR_ENTRIES = 32


class IA32_LBR_CTL(Ia32Register):
    """Which branches are recorded, if any."""

    encoding = Msr(0x14CE)

    LBREn = RW(0)
    OS = RW(1)  # those that end at privilege 0
    USR = RW(2)  # ... at any other
    CALL_STACK = RW(3)  # records are a stack: returns take their calls away
    COND = RW(16)
    NEAR_REL_JMP = RW(17)
    NEAR_IND_JMP = RW(18)
    NEAR_REL_CALL = RW(19)
    NEAR_IND_CALL = RW(20)
    NEAR_RET = RW(21)
    OTHER_BRANCH = RW(22)


class IA32_LBR_DEPTH(Ia32Register):
    """How many records there are. A write makes all of them empty."""

    encoding = Msr(0x14CF)

    DEPTH = RW(63, 0)


class IA32_LBR_x_INFO(Ia32Register):
    """What is known of the branch before which x others are newer. There are no transactions here: hardware never sets
    their bits."""

    bank = Bank(ARCH_LBR_ENTRIES, "IA32_LBR_{}_INFO", lambda n: Msr(0x1200 + n))

    CYC_CNT = RW(15, 0)  # core clocks since the record before, at most 65,535
    BR_TYPE = RW(59, 56)
    CYC_CNT_VALID = RW(60)
    TSX_ABORT = RW(61)
    IN_TSX = RW(62)
    MISPRED = RW(63)


class IA32_LBR_x_FROM_IP(Ia32Register):
    """Where it is."""

    bank = Bank(ARCH_LBR_ENTRIES, "IA32_LBR_{}_FROM_IP", lambda n: Msr(0x1500 + n))

    ADDRESS = RW(63, 0)


class IA32_LBR_x_TO_IP(Ia32Register):
    """Where it went."""

    bank = Bank(ARCH_LBR_ENTRIES, "IA32_LBR_{}_TO_IP", lambda n: Msr(0x1600 + n))

    ADDRESS = RW(63, 0)
