"""Registers of AMD's core performance counters, version 2 (PerfMonV2).

AMD64 Architecture Programmer's Manual volume 2, "Performance Monitoring Counters", and its table of MSRs.
Reserved bits ignore writes, as AMD's do, but those of DebugCtl.
"""

from __future__ import annotations

from emulator.sysregs import Msr
from pmu.register import RO, RW, W1C, W1S, Bank, Register

CORE_COUNTERS = 6  # that have MSR numbers
LEGACY_COUNTERS = 4  # that have the numbers of the K7's as well
MOST_COUNTERS = 32  # of measuring PMUs


class PERF_CTLx(Register):
    """Performance Event Select: what counter x counts, and when. With PerfCtrExtCore the registers alternate."""

    event_field = "EventSelectLow"
    bank = Bank(CORE_COUNTERS, "PERF_CTL{}", lambda n: Msr(0xC001_0200 + 2 * n))

    EventSelectLow = RW(7, 0)
    UnitMask = RW(15, 8)
    User = RW(16)  # OsUserMode: count at privilege 1, 2, 3
    Os = RW(17)  # count at privilege 0
    Edge = RW(18)
    Int = RW(20)  # interrupt on overflow
    En = RW(22)
    Inv = RW(23)  # invert the comparison with CntMask
    CntMask = RW(31, 24)  # count cycles with at least so many events
    EventSelectHigh = RW(35, 32)
    GuestOnly = RW(40)  # both or none: count anywhere
    HostOnly = RW(41)


RAW_EVENT_MASK = (  # AMD64_RAW_EVENT_MASK: what selects an event, and how it is counted
    PERF_CTLx.EventSelectLow.mask
    | PERF_CTLx.EventSelectHigh.mask
    | PERF_CTLx.UnitMask.mask
    | PERF_CTLx.Edge.mask
    | PERF_CTLx.Inv.mask
    | PERF_CTLx.CntMask.mask
)


class PERF_CTRx(Register):
    """Counter x."""

    bank = Bank(CORE_COUNTERS, "PERF_CTR{}", lambda n: Msr(0xC001_0201 + 2 * n))

    CTR = RW(47, 0)


class PerfEvtSelx(Register):
    """PERF_CTL0-3 under the numbers that the K7 had for them."""

    again = True
    bank = Bank(LEGACY_COUNTERS, "PerfEvtSel{}", lambda n: Msr(0xC001_0000 + n))


class PerfCtrx(Register):
    """PERF_CTR0-3 under the numbers that the K7 had for them."""

    again = True
    bank = Bank(LEGACY_COUNTERS, "PerfCtr{}", lambda n: Msr(0xC001_0004 + n))


class PerfCntrGlobalStatus(Register):
    """Overflow status."""

    encoding = Msr(0xC000_0300)

    PerfCntrOvfl = RO(57, 0)
    LBRSF = RO(58)  # the last branch stack stands still since an overflow, by DebugCtl.FLBRI
    PMCF = RO(59)  # counters stand still since an overflow, by DebugCtl.FPCI


class PerfCntrGlobalCtl(Register):
    """Which counters may count."""

    encoding = Msr(0xC000_0301)

    PerfCntrEn = RW(57, 0)


class PerfCntrGlobalStatusClr(Register):
    """Clears bits of PerfCntrGlobalStatus."""

    encoding = Msr(0xC000_0302)

    PerfCntrOvfl = W1C(57, 0, readable=False)
    LBRSF = W1C(58, readable=False)
    PMCF = W1C(59, readable=False)


class PerfCntrGlobalStatusSet(Register):
    """Sets bits of PerfCntrGlobalStatus."""

    encoding = Msr(0xC000_0303)

    PerfCntrOvfl = W1S(57, 0, readable=False)
    LBRSF = W1S(58, readable=False)
    PMCF = W1S(59, readable=False)


class DebugCtl(Register):
    """Debug control: what of it concerns the counters and the last branch stack."""

    encoding = Msr(0x1D9)
    reserved_bits_fault = True

    FLBRI = RW(11)  # freeze the last branch stack on an overflow that interrupts
    FPCI = RW(12)  # freeze the counters on an overflow that interrupts


class LVT_PMC(Register):
    """The local APIC's entry for the performance counters' interrupt, as the x2APIC numbers it."""

    encoding = Msr(0x834)

    VECTOR = RW(7, 0)
    MT = RW(10, 8)  # message type; 4: NMI
    M = RW(16)  # mask. Unlike Intel's APICs, AMD's do not set it when they deliver the interrupt
