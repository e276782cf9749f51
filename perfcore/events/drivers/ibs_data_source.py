"""What a sample of ibs_op says of its data: perf_mem_data_src and weights. As perf_ibs_get_data_src() of Linux 6.12."""

from __future__ import annotations

from functools import lru_cache

from perfcore.abi.memory import DataSource, Hops, Level, LevelNumber, Lock, Op, Snoop, Tlb
from pmu.amd.ibs_registers import IBS_OP_DATA, IBS_OP_DATA2, IBS_OP_DATA3

_HIT = Level.HIT
_SOURCES = {  # g_zen4_data_src: DataSrc -> level, its number, remote, hops
    1: (Level.L3 | _HIT, LevelNumber.L3, 0, 0),  # LOC_CACHE
    2: (Level.REM_CCE1 | _HIT, LevelNumber.ANY_CACHE, 1, Hops.HOPS_0),  # NEAR_CCX_CACHE
    3: (Level.LOC_RAM | _HIT, LevelNumber.RAM, 0, 0),  # DRAM
    5: (Level.REM_CCE2 | _HIT, LevelNumber.ANY_CACHE, 1, Hops.HOPS_1),  # FAR_CCX_CACHE
    6: (0, LevelNumber.PMEM, 0, 0),
    7: (Level.IO | _HIT, LevelNumber.IO, 0, 0),
    8: (0, LevelNumber.CXL, 0, 0),  # EXT_MEM
}
_CACHES = (1, 2, 5)


_SAYS = (1 << IBS_OP_DATA3.IbsSwPf.hi + 1) - 1  # the bits of IBS_OP_DATA3 that it depends on


def data_source(data2: int, data3: int) -> int:
    """perf_mem_data_src of a sample with these registers; PERF_MEM_NA where the op is neither a load nor a store."""
    return _data_source(data2, data3 & _SAYS)


@lru_cache(1024)
def _data_source(data2: int, data3: int) -> int:
    found = IBS_OP_DATA3(data3)
    if not (found.IbsLdOp or found.IbsStOp):
        return DataSource.NOT_AVAILABLE
    op = Op.LOAD if found.IbsLdOp else Op.STORE
    where = IBS_OP_DATA2(data2)
    source = where.DataSrcHi << 3 | where.DataSrcLo
    level, number, remote, hops = _level(found, op, source)
    snoop = Snoop.NA
    behind_l2 = op is Op.LOAD and not level & (Level.L1 | Level.L2)
    if behind_l2 and source in _CACHES and not where.CacheHitSt:
        snoop = Snoop.HITM
    return DataSource.pack(
        op=op,
        level=level,
        snoop=snoop,
        lock=Lock.LOCKED if found.IbsDcLockedOp else Lock.NA,
        tlb=_tlb(found),
        level_number=number,
        remote=remote,
        hops=hops,
    )


def _level(found: IBS_OP_DATA3, op: Op, source: int) -> tuple[int, int, int, int]:
    """perf_ibs_get_mem_lvl(): level, its number, remote, hops."""
    if not found.IbsDcMiss:
        return Level.L1 | _HIT, LevelNumber.L1, 0, 0
    if not found.L2Miss:
        return Level.L2 | _HIT, LevelNumber.L2, 0, 0
    if op is Op.LOAD and source in _SOURCES:
        return _SOURCES[source]
    if found.DcMissNoMabAlloc:
        return Level.LFB | _HIT, LevelNumber.LFB, 0, 0
    return Level.NA, LevelNumber.NA, 0, 0


def _tlb(found: IBS_OP_DATA3) -> int:
    """perf_ibs_get_tlb_lvl()"""
    if not found.IbsDcLinAddrValid:
        return Tlb.NA
    if not found.IbsDcL1TlbMiss:
        return Tlb.L1 | Tlb.HIT
    return Tlb.L2 | (Tlb.MISS if found.IbsDcL2TlbMiss else Tlb.HIT)


def weight_of(data: int, data3: int, *, structured: bool) -> int:
    """PERF_SAMPLE_WEIGHT, or _STRUCT: cycles of a load that missed L1D, and those from its dispatch on."""
    found = IBS_OP_DATA3(data3)
    if not (found.IbsDcMiss and found.IbsLdOp):
        return 0
    return found.IbsDcMissLat | (IBS_OP_DATA(data).IbsTagToRetCtr << 32 if structured else 0)
