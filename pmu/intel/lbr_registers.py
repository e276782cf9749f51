"""Registers of Skylake's last branch records. Intel SDM volume 3, "Last Branch, Interrupt, and Exception Recording for
Processors based on Skylake Microarchitecture"; numbers from volume 4, "MSRs in the 6th Generation Intel Core"."""

from __future__ import annotations

from emulator.sysregs import Msr
from pmu.intel.registers import Ia32Register
from pmu.register import RW, Bank

LBR_ENTRIES = 32


class MSR_LBR_SELECT(Ia32Register):
    """Which branches are not recorded: a one suppresses."""

    encoding = Msr(0x1C8)

    CPL_EQ_0 = RW(0)  # those that end at privilege 0
    CPL_NEQ_0 = RW(1)  # ... at any other
    JCC = RW(2)
    NEAR_REL_CALL = RW(3)
    NEAR_IND_CALL = RW(4)
    NEAR_RET = RW(5)
    NEAR_IND_JMP = RW(6)
    NEAR_REL_JMP = RW(7)
    FAR_BRANCH = RW(8)
    EN_CALLSTACK = RW(9)  # records are a stack: returns take their calls away


class MSR_LASTBRANCH_TOS(Ia32Register):
    """The number of the newest record."""

    encoding = Msr(0x1C9)

    TOS = RW(4, 0)


class MSR_LASTBRANCH_x_FROM_IP(Ia32Register):
    """Where branch x is."""

    bank = Bank(LBR_ENTRIES, "MSR_LASTBRANCH_{}_FROM_IP", lambda n: Msr(0x680 + n))

    ADDRESS = RW(63, 0)


class MSR_LASTBRANCH_x_TO_IP(Ia32Register):
    """Where branch x went."""

    bank = Bank(LBR_ENTRIES, "MSR_LASTBRANCH_{}_TO_IP", lambda n: Msr(0x6C0 + n))

    ADDRESS = RW(63, 0)


class MSR_LBR_INFO_x(Ia32Register):
    """What is known of branch x. There are no transactions here: hardware never sets their bits."""

    bank = Bank(LBR_ENTRIES, "MSR_LBR_INFO_{}", lambda n: Msr(0xDC0 + n))

    CYC_CNT = RW(15, 0)  # core clocks since the record before, at most 65,535
    TSX_ABORT = RW(61)
    IN_TSX = RW(62)
    MISPRED = RW(63)
