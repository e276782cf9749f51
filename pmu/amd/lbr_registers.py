"""Registers of AMD's last branch stack, version 2. AMD64 Architecture Programmer's Manual volume 2, "Last Branch Stack
Registers", and its table of MSRs."""

from __future__ import annotations

from emulator.sysregs import Msr
from pmu.register import RW, Bank, Register

LBR_V2_ENTRIES = 16  # of Zen 4 and Zen 5


class DBG_EXTN_CFG(Register):
    """Debug extensions: what of it concerns the last branch stack."""

    encoding = Msr(0xC000_010F)

    LBRV2EN = RW(6)


class LBR_SELECT(Register):
    """Which branches are not recorded: a one suppresses."""

    encoding = Msr(0xC000_010E)

    CPL_EQ_0 = RW(0)  # those that end at privilege 0
    CPL_GT_0 = RW(1)  # ... at any other
    JCC = RW(2)
    CALL_NEAR_REL = RW(3)
    CALL_NEAR_IND = RW(4)
    RET_NEAR = RW(5)
    JMP_NEAR_IND = RW(6)
    JMP_NEAR_REL = RW(7)
    FAR_BRANCH = RW(8)


class LastBranchFromIpx(Register):
    """Where the branch is before which x others are newer."""

    bank = Bank(LBR_V2_ENTRIES, "LastBranchFromIp{}", lambda n: Msr(0xC001_0300 + 2 * n))

    LbrFrom = RW(57, 0)
    LbrFromSignExt = RW(62, 58)
    MisPredict = RW(63)


class LastBranchToIpx(Register):
    """Where it went."""

    bank = Bank(LBR_V2_ENTRIES, "LastBranchToIp{}", lambda n: Msr(0xC001_0301 + 2 * n))

    LbrTo = RW(57, 0)
    LbrToSignExt = RW(60, 58)
    Spec = RW(62)  # recorded before it retired; with Valid, it has retired since
    Valid = RW(63)
