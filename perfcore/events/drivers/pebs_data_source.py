"""What a PEBS record says of its data, as perf_mem_data_src. As arch/x86/events/intel/ds.c of Linux 6.12."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from perfcore.abi.memory import Blocked, DataSource, Level, LevelNumber, Lock, Op, Snoop, Tlb


class DataKind(Enum):
    """How an event's records are to be read: the flags PERF_X86_EVENT_PEBS_* of its constraint."""

    NONE = "none"
    LOAD_LATENCY = "LDLAT"
    STORE_LATENCY = "STLAT"
    LOAD = "LD_HSW"
    STORE = "ST_HSW"


_HIT = Level.HIT
_SOURCES: dict[int, tuple[int, int, int]] = {  # pebs_data_source, as intel_pmu_pebs_data_source_skl has it
    0x0: (Level.MISS, LevelNumber.L3, Snoop.NA),
    0x1: (Level.L1 | _HIT, LevelNumber.L1, Snoop.NONE),
    0x2: (Level.LFB | _HIT, LevelNumber.LFB, Snoop.NONE),
    0x3: (Level.L2 | _HIT, LevelNumber.L2, Snoop.NONE),
    0x4: (Level.L3 | _HIT, LevelNumber.L3, Snoop.NONE),
    0x5: (Level.L3 | _HIT, LevelNumber.L3, Snoop.MISS),
    0x6: (Level.L3 | _HIT, LevelNumber.L3, Snoop.HIT),
    0x7: (Level.L3 | _HIT, LevelNumber.L3, Snoop.HITM),
    0xA: (Level.LOC_RAM | _HIT, LevelNumber.RAM, Snoop.HIT),
}  # the others are of other nodes and of memory that is not RAM
_SOURCE, _STLB_MISS, _LOCKED = 0xF, 1 << 4, 1 << 5
_L1D_HIT = 1 << 0  # of a store


def kind_of(code: int, *, store_latency: bool) -> DataKind:
    """Of an event with this code (event and umask), as the constraints of Skylake and Golden Cove have it.

    `store_latency`: stores are sampled as loads are.
    """
    event, umask = code & 0xFF, code >> 8 & 0xFF
    if event == 0xCD and umask == 0x1:
        return DataKind.LOAD_LATENCY
    if event == 0xCD and umask == 0x2 and store_latency:
        return DataKind.STORE_LATENCY
    if event == 0xD0 and umask in (0x12, 0x42, 0x82):
        return DataKind.STORE
    if (event == 0xD0 and umask in (0x11, 0x21, 0x41, 0x81)) or event in (0xD1, 0xD2, 0xD3):
        return DataKind.LOAD
    return DataKind.NONE


@lru_cache(256)
def data_source(kind: DataKind, word: int) -> int:
    """get_data_src()"""
    if kind is DataKind.NONE:
        return DataSource.NOT_AVAILABLE
    if kind in (DataKind.LOAD, DataKind.STORE):  # precise_datala_hsw()
        found = int(DataSource.NOT_AVAILABLE) & ~int(Op.NA)
        if kind is DataKind.LOAD:
            return found | int(Op.LOAD)
        hit = int(Level.HIT if word & _L1D_HIT else Level.MISS)
        return found & ~(int(Level.NA) << 5) | int(Op.STORE) | (int(Level.L1) | hit) << 5
    level, number, snoop = _SOURCES.get(word & _SOURCE, _SOURCES[0])
    return DataSource.pack(
        op=Op.LOAD if kind is DataKind.LOAD_LATENCY else Op.STORE,
        level=level,
        snoop=snoop,
        lock=Lock.LOCKED if word & _LOCKED else 0,
        tlb=Tlb.MISS | Tlb.L2 if word & _STLB_MISS else Tlb.HIT | Tlb.L1 | Tlb.L2,
        level_number=number,
        blocked=Blocked.NA,  # a core before Golden Cove does not know it, and of none is there anything to tell here
    )
