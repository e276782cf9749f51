"""union perf_mem_data_src of uapi/linux/perf_event.h: where a sample's data came from."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class Op(IntFlag):
    """PERF_MEM_OP_*"""

    NA = 0x01
    LOAD = 0x02
    STORE = 0x04
    PFETCH = 0x08
    EXEC = 0x10


class Level(IntFlag):
    """PERF_MEM_LVL_*"""

    NA = 0x01
    HIT = 0x02
    MISS = 0x04
    L1 = 0x08
    LFB = 0x10
    L2 = 0x20
    L3 = 0x40
    LOC_RAM = 0x80
    REM_RAM1 = 0x100
    REM_RAM2 = 0x200
    REM_CCE1 = 0x400
    REM_CCE2 = 0x800
    IO = 0x1000
    UNC = 0x2000


class Snoop(IntFlag):
    """PERF_MEM_SNOOP_*"""

    NA = 0x01
    NONE = 0x02
    HIT = 0x04
    MISS = 0x08
    HITM = 0x10


class Lock(IntFlag):
    """PERF_MEM_LOCK_*"""

    NA = 0x01
    LOCKED = 0x02


class Tlb(IntFlag):
    """PERF_MEM_TLB_*"""

    NA = 0x01
    HIT = 0x02
    MISS = 0x04
    L1 = 0x08
    L2 = 0x10
    WK = 0x20
    OS = 0x40


class LevelNumber(IntEnum):
    """PERF_MEM_LVLNUM_*"""

    L1 = 0x1
    L2 = 0x2
    L3 = 0x3
    L4 = 0x4
    CXL = 0x9
    IO = 0xA
    ANY_CACHE = 0xB
    LFB = 0xC
    RAM = 0xD
    PMEM = 0xE
    NA = 0xF


class Hops(IntEnum):
    """PERF_MEM_HOPS_*, as 6.12 numbers them."""

    HOPS_0 = 1
    HOPS_1 = 2
    HOPS_2 = 3
    HOPS_3 = 4


class Blocked(IntFlag):
    """PERF_MEM_BLK_*"""

    NA = 0x01
    DATA = 0x02
    ADDR = 0x04


class DataSource:
    """The word, from its parts."""

    NOT_AVAILABLE = Op.NA | Level.NA << 5 | Snoop.NA << 19 | Lock.NA << 24 | Tlb.NA << 26 | LevelNumber.NA << 33
    """PERF_MEM_NA"""

    @staticmethod
    def pack(
        *,
        op: int = Op.NA,
        level: int = 0,
        snoop: int = 0,
        lock: int = 0,
        tlb: int = 0,
        level_number: int = 0,
        remote: int = 0,
        blocked: int = 0,
        hops: int = 0,
    ) -> int:
        return (
            op
            | level << 5
            | snoop << 19
            | lock << 24
            | tlb << 26
            | level_number << 33
            | remote << 37
            | blocked << 40
            | hops << 43
        )
