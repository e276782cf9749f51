"""The Statistical Profiling Extension's system registers. Each is documented in Arm ARM DDI 0487 under its own name.

All are of EL1: at EL0 they are UNDEFINED. The PE that we model has no EL2 in which others' buffers would be
(PMSCR_EL2, PMBLIMITR_EL1.nVM), no SVE (events 17 and 18), and none of what FEAT_SPEv1p3 and later ones brought.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from emulator.sysregs import SysReg
from pmu.register import RO, RW, Register


class SpeVersion(IntEnum):
    """ID_AA64DFR0_EL1.PMSVer."""

    V1 = 1  # FEAT_SPE
    V1P1 = 2  # FEAT_SPEv1p1: the alignment event
    V1P2 = 3  # FEAT_SPEv1p2: PMSNEVFR_EL1, events of branches that are not taken


class SpeRegister(Register):
    """One of EL1."""

    since: ClassVar[SpeVersion] = SpeVersion.V1


class PMSCR_EL1(SpeRegister):
    """Statistical Profiling Control Register."""

    encoding = SysReg(3, 0, 9, 9, 0)

    E0SPE = RW(0)  # EL0 is profiled
    E1SPE = RW(1)  # EL1 is
    CX = RW(3)  # records have CONTEXTIDR_EL1
    PA = RW(4)  # ... physical addresses of data
    TS = RW(5)  # ... timestamps
    PCT = RW(7, 6)  # which counter these are of: the physical and the virtual one show the same


class PMSNEVFR_EL1(SpeRegister):
    """Sampling Inverted Event Filter Register: records with any of these events are left out."""

    encoding = SysReg(3, 0, 9, 9, 1)
    since = SpeVersion.V1P2

    E = RW(63, 0)


class PMSICR_EL1(SpeRegister):
    """Sampling Interval Counter Register: operations that are left until the next sample."""

    encoding = SysReg(3, 0, 9, 9, 2)

    COUNT = RW(31, 0)
    ECOUNT = RO(63, 56)  # RES0 without PMSIDR_EL1.ERnd


class PMSIRR_EL1(SpeRegister):
    """Sampling Interval Reload Register."""

    encoding = SysReg(3, 0, 9, 9, 3)

    RND = RW(0)  # add a pseudo-random number of eight bits
    INTERVAL = RW(31, 8)  # of the counter's bits 31 to 8


class PMSFCR_EL1(SpeRegister):
    """Sampling Filter Control Register."""

    encoding = SysReg(3, 0, 9, 9, 4)

    FE = RW(0)  # filter by events
    FT = RW(1)  # ... by types
    FL = RW(2)  # ... by latency
    FnE = RW(3)  # ... by events that are not: from FEAT_SPEv1p2 on
    B = RW(16)  # types: branches
    LD = RW(17)  # loads
    ST = RW(18)  # stores


class PMSEVFR_EL1(SpeRegister):
    """Sampling Event Filter Register: records without one of these events are left out."""

    encoding = SysReg(3, 0, 9, 9, 5)

    E = RW(63, 0)


class PMSLATFR_EL1(SpeRegister):
    """Sampling Latency Filter Register."""

    encoding = SysReg(3, 0, 9, 9, 6)

    MINLAT = RW(11, 0)  # cycles: the least total latency; twelve bits, as PMSIDR_EL1.CountSize has it


class PMSIDR_EL1(SpeRegister):
    """Sampling Profiling ID Register."""

    encoding = SysReg(3, 0, 9, 9, 7)

    FE = RO(0)
    FT = RO(1)
    FL = RO(2)
    ArchInst = RO(3)  # what is counted are instructions, not micro-operations
    LDS = RO(4)  # the data source of loads is told
    ERnd = RO(5)  # how the random number comes in
    FnE = RO(6)
    Interval = RO(11, 8)  # the recommended least interval
    MaxSize = RO(15, 12)  # of a record: log2 of bytes
    CountSize = RO(19, 16)  # of latencies
    Format = RO(23, 20)
    PBT = RO(24)


class PMBLIMITR_EL1(SpeRegister):
    """Profiling Buffer Limit Address Register."""

    encoding = SysReg(3, 0, 9, 10, 0)

    E = RW(0)  # the buffer is enabled
    FM = RO(2, 1)  # when full: stop, and say so; the only mode
    LIMIT = RW(63, 12)


class PMBPTR_EL1(SpeRegister):
    """Profiling Buffer Write Pointer Register. Its low bits are RES0, as PMBIDR_EL1.Align says."""

    encoding = SysReg(3, 0, 9, 10, 1)

    PTR = RW(63, 6)


class PMBSR_EL1(SpeRegister):
    """Profiling Buffer Status/syndrome Register."""

    encoding = SysReg(3, 0, 9, 10, 3)

    MSS = RW(15, 0)  # of buffer management events and faults: why
    COLL = RW(16)  # operations were chosen too soon after others
    S = RW(17)  # the buffer needs service, and the interrupt is asserted; nothing is profiled until then
    EA = RW(18)  # an external abort
    DL = RW(19)  # data were lost
    EC = RW(31, 26)  # class: 0 buffer management, 0x24 a fault of stage 1


class PMBIDR_EL1(SpeRegister):
    """Profiling Buffer ID Register."""

    encoding = SysReg(3, 0, 9, 10, 7)

    Align = RO(3, 0)  # of the write pointer: log2 of bytes
    P = RO(4)  # the buffer is a higher exception level's
    F = RO(5)  # the access flag of its pages is managed


EVENTS = {  # that PMSEVFR_EL1 and PMSNEVFR_EL1 can name: RES0 are all others
    SpeVersion.V1: 1 << 1 | 1 << 3 | 1 << 5 | 1 << 7,
    SpeVersion.V1P1: 1 << 1 | 1 << 3 | 1 << 5 | 1 << 7 | 1 << 11,
    SpeVersion.V1P2: 1 << 1 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 11,
}
TOLD_EVENTS = {  # ... and that records tell of
    SpeVersion.V1: (1 << 11) - 1,
    SpeVersion.V1P1: (1 << 12) - 1,
    SpeVersion.V1P2: (1 << 12) - 1,
}
BUFFER_MANAGEMENT, STAGE_1_FAULT = 0x00, 0x24  # PMBSR_EL1.EC
BUFFER_FILLED, TRANSLATION_FAULT = 0x01, 0x04  # PMBSR_EL1.MSS: BSC; FSC, at level 0
INTERVALS = {256: 0, 512: 2, 768: 3, 1024: 4, 1536: 5, 2048: 6, 3072: 7, 4096: 8}  # PMSIDR_EL1.Interval
