"""Registers of AMD's Instruction-Based Sampling. AMD64 APM volume 2, "Instruction-Based Sampling"; PPR of family 1Ah.

Reserved bits ignore writes, as AMD's do. What hardware writes reads as it was written; software may write it, too, but
for bits that say what a sample is.
"""

from __future__ import annotations

from emulator.sysregs import Msr
from pmu.register import RO, RW, Register


class IBS_FETCH_CTL(Register):
    """Which fetch is sampled, and what became of it."""

    encoding = Msr(0xC001_1030)

    IbsFetchMaxCnt = RW(15, 0)  # in units of 16 fetches
    IbsFetchCnt = RW(31, 16)  # likewise
    IbsFetchLat = RO(47, 32)  # cycles
    IbsFetchEn = RW(48)
    IbsFetchVal = RW(49)  # there is a sample; nothing is counted while there is
    IbsFetchComp = RO(50)  # the fetch was completed
    IbsIcMiss = RO(51)
    IbsPhyAddrValid = RO(52)
    IbsL1TlbPgSz = RO(54, 53)  # 0: 4 KiB
    IbsL1TlbMiss = RO(55)
    IbsL2TlbMiss = RO(56)
    IbsRandEn = RW(57)  # the lowest four bits of the count begin at random
    IbsFetchL2Miss = RO(58)
    IbsFetchL3MissOnly = RW(59)
    IbsFetchOcMiss = RO(60)  # no op cache is modelled: 0
    IbsFetchL3Miss = RO(61)


class IBS_FETCH_LINADDR(Register):
    """Where the fetch was, as the program has it."""

    encoding = Msr(0xC001_1031)

    IbsFetchLinAd = RW(63, 0)


class IBS_FETCH_PHYSADDR(Register):
    """... and in memory, if IBS_FETCH_CTL.IbsPhyAddrValid."""

    encoding = Msr(0xC001_1032)

    IbsFetchPhysAd = RW(51, 0)


class IBS_OP_CTL(Register):
    """Which op is sampled."""

    encoding = Msr(0xC001_1033)

    IbsOpMaxCnt = RW(15, 0)  # bits 19:4 of the count
    IbsOpL3MissOnly = RW(16)
    IbsOpEn = RW(17)
    IbsOpVal = RW(18)  # there is a sample; nothing is counted while there is
    IbsOpCntCtl = RW(19)  # count dispatched ops, rather than cycles
    IbsOpMaxCntExt = RW(26, 20)  # bits 26:20 of the count
    IbsOpCurCnt = RW(58, 32)


class IBS_OP_RIP(Register):
    """The instruction of the op."""

    encoding = Msr(0xC001_1034)

    IbsOpRip = RW(63, 0)


class IBS_OP_DATA(Register):
    """How it went through the pipeline, and what kind of branch it was."""

    encoding = Msr(0xC001_1035)

    IbsCompToRetCtr = RW(15, 0)  # cycles from its completion until it retired
    IbsTagToRetCtr = RW(31, 16)  # ... from its dispatch
    IbsOpReturn = RW(34)
    IbsOpBrnTaken = RW(35)
    IbsOpBrnMisp = RW(36)
    IbsOpBrnRet = RW(37)  # it was a branch
    IbsRipInvalid = RW(38)
    IbsOpBrnFuse = RW(39)
    IbsOpMicrocode = RW(40)


class IBS_OP_DATA2(Register):
    """Where a load's data came from, behind L2."""

    encoding = Msr(0xC001_1036)

    DataSrcLo = RW(2, 0)
    RmtNode = RW(4)
    CacheHitSt = RW(5)  # 0: the line was modified there
    DataSrcHi = RW(7, 6)


class IBS_OP_DATA3(Register):
    """What a load or store met in the first levels."""

    encoding = Msr(0xC001_1037)

    IbsLdOp = RW(0)
    IbsStOp = RW(1)
    IbsDcL1TlbMiss = RW(2)
    IbsDcL2TlbMiss = RW(3)
    IbsDcL1TlbHit2M = RW(4)
    IbsDcL1TlbHit1G = RW(5)
    IbsDcL2TlbHit2M = RW(6)
    IbsDcMiss = RW(7)
    IbsDcMisAcc = RW(8)
    IbsDcWcMemAcc = RW(13)
    IbsDcUcMemAcc = RW(14)
    IbsDcLockedOp = RW(15)
    DcMissNoMabAlloc = RW(16)
    IbsDcLinAddrValid = RW(17)
    IbsDcPhyAddrValid = RW(18)
    IbsDcL2TlbHit1G = RW(19)
    L2Miss = RW(20)
    IbsSwPf = RW(21)
    IbsOpMemWidth = RW(25, 22)  # 1, 2, 3 ...: 1, 2, 4 ... bytes; 0: none of these
    IbsOpDcMissOpenMemReqs = RW(31, 26)
    IbsDcMissLat = RW(47, 32)  # cycles
    IbsTlbRefillLat = RW(63, 48)


class IBS_DC_LINADDR(Register):
    """Its data address, if IBS_OP_DATA3.IbsDcLinAddrValid."""

    encoding = Msr(0xC001_1038)

    IbsDcLinAd = RW(63, 0)


class IBS_DC_PHYSADDR(Register):
    """... in memory, if IBS_OP_DATA3.IbsDcPhyAddrValid."""

    encoding = Msr(0xC001_1039)

    IbsDcPhysAd = RW(51, 0)


class IBS_CTL(Register):
    """Which entry of the local APIC's extended vectors is IBS's."""

    encoding = Msr(0xC001_103A)

    LvtOffset = RO(3, 0)
    LvtOffsetVal = RO(8)


class IBS_BRTARGET(Register):
    """Where a branch went."""

    encoding = Msr(0xC001_103B)

    IbsBrTarget = RW(63, 0)


class IC_IBS_EXTD_CTL(Register):
    """More of the fetch."""

    encoding = Msr(0xC001_103C)

    IbsItlbRefillLat = RO(15, 0)  # cycles
