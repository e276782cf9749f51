"""Events that Linux knows on every CPU's PMU: the numbers of uapi/linux/perf_event.h, and perf's names for them."""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class NamedNumber(IntEnum):
    """A number of the ABI and what perf calls it: first the name that it prints, then what it takes for the same."""

    names: tuple[str, ...]

    def __new__(cls, number: int, *names: str) -> Self:
        member = int.__new__(cls, number)
        member._value_ = number
        member.names = names
        return member


class HardwareId(NamedNumber):
    """enum perf_hw_id (attr.config of PERF_TYPE_HARDWARE)."""

    CPU_CYCLES = 0, "cycles", "cpu-cycles"
    INSTRUCTIONS = 1, "instructions"
    CACHE_REFERENCES = 2, "cache-references"
    CACHE_MISSES = 3, "cache-misses"
    BRANCH_INSTRUCTIONS = 4, "branches", "branch-instructions"
    BRANCH_MISSES = 5, "branch-misses"
    BUS_CYCLES = 6, "bus-cycles"
    STALLED_CYCLES_FRONTEND = 7, "stalled-cycles-frontend", "idle-cycles-frontend"
    STALLED_CYCLES_BACKEND = 8, "stalled-cycles-backend", "idle-cycles-backend"
    REF_CPU_CYCLES = 9, "ref-cycles"

    @property
    def sysfs_name(self) -> str:
        """Its alias in sysfs ``events/`` on x86: arch/x86/events/core.c, EVENT_ATTR."""
        spelled = self.name.lower().replace("_", "-")
        return spelled if spelled in self.names else self.names[0]


class CacheId(NamedNumber):
    """enum perf_hw_cache_id: bits 0..7 of attr.config of PERF_TYPE_HW_CACHE."""

    L1D = 0, "L1-dcache", "l1-d", "l1d", "L1-data"
    L1I = 1, "L1-icache", "l1-i", "l1i", "L1-instruction"
    LL = 2, "LLC", "L2"
    DTLB = 3, "dTLB", "d-tlb", "Data-TLB"
    ITLB = 4, "iTLB", "i-tlb", "Instruction-TLB"
    BPU = 5, "branch", "bpu", "btb", "bpc"
    NODE = 6, "node"


class CacheOp(NamedNumber):
    """enum perf_hw_cache_op_id: bits 8..15. The first name stands before "-misses", the second alone."""

    READ = 0, "load", "loads", "read"
    WRITE = 1, "store", "stores", "write"
    PREFETCH = 2, "prefetch", "prefetches", "speculative-read", "speculative-load"


class CacheResult(NamedNumber):
    """enum perf_hw_cache_op_result_id: bits 16..23. perf prints no name for an access."""

    ACCESS = 0, "refs", "Reference", "ops", "access"
    MISS = 1, "misses", "miss"


CacheEvent = tuple[CacheId, CacheOp, CacheResult]


def cache_config(cache: CacheId, op: CacheOp, result: CacheResult) -> int:
    """attr.config of a PERF_TYPE_HW_CACHE event."""
    return cache | op << 8 | result << 16


def cache_event(config: int) -> CacheEvent:
    """The event of such a config; ValueError where the ABI has none."""
    return CacheId(config & 0xFF), CacheOp(config >> 8 & 0xFF), CacheResult(config >> 16 & 0xFF)
