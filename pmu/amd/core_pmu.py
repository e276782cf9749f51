"""core_pmu: AMD's core counters, PerfMonV2, with the events of one family, as Linux has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pmu.amd.event_rows import TOP_DOWN_ALIASES
from pmu.amd.registers import CORE_COUNTERS, MOST_COUNTERS
from pmu.amd.uncore import AMD_L3, AMD_UMC
from pmu.event import Event, EventList
from pmu.format_field import FormatField, Role
from pmu.generic_events import CacheId, CacheOp, CacheResult, HardwareId
from pmu.model import PmuModel
from pmu.x86_msr import AMD_MSR

PERFMON_V2, PMC_FREEZE = 1 << 0, 1 << 2  # CPUID.80000022H:EAX
NO_SOURCES = {
    "amd_l3": "this core models no caches",
    "amd_df": "no data fabric is modelled between cores and memory",
    "amd_umc": "this core models no memory behind caches",
    "ibs_fetch": "this core has no IBS; --unit ibs lends it one",
    "ibs_op": "this core has no IBS; --unit ibs lends it one",
    "cstate_core": "it is of Intel's parts",
    "cstate_pkg": "it is of Intel's parts",
    "power": "no energy is modelled",
    "power_core": "no energy is modelled",
}
FORMAT = (  # arch/x86/events/amd/core.c: amd_format_attr
    FormatField("event", 0, 7, upper=(32, 35)),
    FormatField("umask", 8, 15),
    FormatField("edge", 18, 18, Role.BY_EVENT),
    FormatField("inv", 23, 23, Role.BY_EVENT),
    FormatField("cmask", 24, 31, Role.BY_EVENT),
)
GENERIC_EVENTS = {  # amd_zen4_perfmon_event_map
    HardwareId.CPU_CYCLES: 0x76,
    HardwareId.INSTRUCTIONS: 0xC0,
    HardwareId.CACHE_REFERENCES: 0xFF60,
    HardwareId.CACHE_MISSES: 0x0964,
    HardwareId.BRANCH_INSTRUCTIONS: 0xC2,
    HardwareId.BRANCH_MISSES: 0xC3,
    HardwareId.STALLED_CYCLES_FRONTEND: 0xA9,
    HardwareId.REF_CPU_CYCLES: 0x1_0000_0120,
}
_READ, _PREFETCH, _ACCESS, _MISS = CacheOp.READ, CacheOp.PREFETCH, CacheResult.ACCESS, CacheResult.MISS
GENERIC_CACHE_EVENTS = {  # amd_hw_cache_event_ids_f17h, which has none of the last level, nor of nodes
    (CacheId.L1D, _READ, _ACCESS): 0x40,
    (CacheId.L1D, _READ, _MISS): 0xC860,
    (CacheId.L1D, _PREFETCH, _ACCESS): 0xFF5A,
    (CacheId.L1I, _READ, _ACCESS): 0x80,
    (CacheId.L1I, _READ, _MISS): 0x81,
    (CacheId.DTLB, _READ, _ACCESS): 0xFF45,
    (CacheId.DTLB, _READ, _MISS): 0xF045,
    (CacheId.ITLB, _READ, _ACCESS): 0x84,
    (CacheId.ITLB, _READ, _MISS): 0xFF85,
    (CacheId.BPU, _READ, _ACCESS): 0xC2,
    (CacheId.BPU, _READ, _MISS): 0xC3,
}


def core_pmu(name: str, rows: Sequence[Event], vendors_list: Mapping[int, str]) -> PmuModel:
    """`vendors_list`: what AMD lists of this family's events besides `rows`, by code."""
    names = {row.code: row.name for row in rows}
    generic = {event: names[code] for event, code in GENERIC_EVENTS.items()}
    return PmuModel(
        name=name,
        isa="x86_64",
        sysfs_name="cpu",
        driver="amd_core",
        version=2,
        identification=PERFMON_V2 | PMC_FREEZE,
        counters=CORE_COUNTERS,
        most_counters=MOST_COUNTERS,
        counter_width_bits=48,
        fixed_counters=(),
        events=EventList(rows),
        format=FORMAT,
        generic_events=generic,
        generic_cache_events={event: names[code] for event, code in GENERIC_CACHE_EVENTS.items()},
        sysfs_aliases={event.sysfs_name: found for event, found in generic.items()} | TOP_DOWN_ALIASES,
        sources=(AMD_MSR, AMD_L3, AMD_UMC),
        no_sources=NO_SOURCES,
        not_modelled=vendors_list,
    )
