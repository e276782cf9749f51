"""core_pmu: Intel's architectural perfmon with Skylake's events, or some of them, or with Redwood Cove's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pmu.event import Event, EventList
from pmu.format_field import FormatField, Role
from pmu.generic_events import CacheEvent, CacheId, CacheOp, CacheResult, HardwareId
from pmu.intel.event_rows import SKYLAKE, TOP_DOWN, TOP_DOWN_ALIASES
from pmu.intel.not_modelled import NOT_MODELLED
from pmu.intel.redwood_cove_not_modelled import REDWOOD_COVE_NOT_MODELLED
from pmu.intel.redwood_cove_rows import REDWOOD_COVE
from pmu.intel.uncore import GRANITE_RAPIDS_CHA, GRANITE_RAPIDS_IMC, SKYLAKE_CBOX, SKYLAKE_IMC
from pmu.model import CounterConstraint, FixedCounter, PmuModel
from pmu.x86_msr import INTEL_MSR

FIXED_COUNTERS = (
    FixedCounter("INST_RETIRED.ANY", 0x00C0, 48),
    FixedCounter("CPU_CLK_UNHALTED.THREAD", 0x003C, 48),
    FixedCounter("CPU_CLK_UNHALTED.REF_TSC", 0x0300, 48, programmable=False),
)
SLOTS = FixedCounter("TOPDOWN.SLOTS", 0x0400, 48, programmable=False)
METRICS = tuple(  # the fields of MSR_PERF_METRICS; the fifth, heavy operations, is not modelled
    f"PERF_METRICS.{field}" if field else ""
    for field in (
        *("RETIRING", "BAD_SPECULATION", "FRONTEND_BOUND", "BACKEND_BOUND"),
        *("", "BRANCH_MISPREDICTS", "FETCH_LATENCY", "MEMORY_BOUND"),
    )
)
_EVENT, _WHOLE = 0xFF, 0xFFFF
REDWOOD_COVE_CONSTRAINTS = (  # intel_glc_event_constraints
    CounterConstraint(_EVENT, 0x2E, 0x2E, 0xFF),
    CounterConstraint(_EVENT, 0x3C, 0x3C, 0xFF),
    CounterConstraint(_EVENT, 0x01, 0x8F, 0x0F),
    *(CounterConstraint(_WHOLE, code, code, 0x0F) for code in (0x01A3, 0x02A3, 0x08A3)),
    *(CounterConstraint(_WHOLE, code, code, 0x01) for code in (0x04A4, 0x08A4, 0x02CD)),
    CounterConstraint(_EVENT, 0xCE, 0xCE, 0x01),
    CounterConstraint(_EVENT, 0xD0, 0xDF, 0x0F),
)
NO_SOURCES = {
    "cstate_core": "CPUs here have no C-states but the one in which they are halted",
    "cstate_pkg": "packages here have no C-states",
    "power": "no energy is modelled",
    "uncore_arb": "no arbiter is modelled between cores and memory",
    "uncore_clock": "the uncore has no clock of its own here",
    **dict.fromkeys(
        ("uncore_iio", "uncore_irp", "uncore_upi", "uncore_pcu", "uncore_ubox", "uncore_b2cmi", "uncore_chacms"),
        "of the uncore there are memory and the last cache alone",
    ),
    **dict.fromkeys(("uncore_imc", "uncore_cbox", "uncore_cha"), "this core models no caches"),
}
FORMAT = (
    FormatField("event", 0, 7),
    FormatField("umask", 8, 15),
    FormatField("edge", 18, 18, Role.BY_EVENT),
    FormatField("pc", 19, 19, Role.NO_EFFECT),
    FormatField("any", 21, 21, Role.NO_EFFECT),
    FormatField("inv", 23, 23, Role.BY_EVENT),
    FormatField("cmask", 24, 31, Role.BY_EVENT),
)
CLOCK_AND_RETIRED = {  # arch/x86/events/intel/core.c: intel_perfmon_event_map
    HardwareId.CPU_CYCLES: "CPU_CLK_UNHALTED.THREAD_P",
    HardwareId.INSTRUCTIONS: "INST_RETIRED.ANY_P",
    HardwareId.BRANCH_INSTRUCTIONS: "BR_INST_RETIRED.ALL_BRANCHES",
    HardwareId.BUS_CYCLES: "CPU_CLK_UNHALTED.REF_XCLK",
    HardwareId.REF_CPU_CYCLES: "CPU_CLK_UNHALTED.REF_TSC",
}
RETIRED_CACHE_EVENTS = {  # skl_hw_cache_event_ids: what needs no cache, TLB or predictor
    (CacheId.L1D, CacheOp.READ, CacheResult.ACCESS): "MEM_INST_RETIRED.ALL_LOADS",
    (CacheId.L1D, CacheOp.WRITE, CacheResult.ACCESS): "MEM_INST_RETIRED.ALL_STORES",
    (CacheId.DTLB, CacheOp.READ, CacheResult.ACCESS): "MEM_INST_RETIRED.ALL_LOADS",
    (CacheId.DTLB, CacheOp.WRITE, CacheResult.ACCESS): "MEM_INST_RETIRED.ALL_STORES",
    (CacheId.BPU, CacheOp.READ, CacheResult.ACCESS): "BR_INST_RETIRED.ALL_BRANCHES",
}
_MODELLED = {
    HardwareId.CACHE_REFERENCES: "LONGEST_LAT_CACHE.REFERENCE",
    HardwareId.CACHE_MISSES: "LONGEST_LAT_CACHE.MISS",
    HardwareId.BRANCH_MISSES: "BR_MISP_RETIRED.ALL_BRANCHES",
}
_MODELLED_CACHE_EVENTS = {  # skl_hw_cache_event_ids; LL, which Linux counts by OFFCORE_RESPONSE, by its requests
    (CacheId.L1D, CacheOp.READ, CacheResult.MISS): "L1D.REPLACEMENT",
    (CacheId.L1I, CacheOp.READ, CacheResult.MISS): "ICACHE_64B.IFTAG_MISS",
    (CacheId.LL, CacheOp.READ, CacheResult.ACCESS): "OFFCORE_REQUESTS.DEMAND_DATA_RD",
    (CacheId.LL, CacheOp.READ, CacheResult.MISS): "OFFCORE_REQUESTS.L3_MISS_DEMAND_DATA_RD",
    (CacheId.LL, CacheOp.WRITE, CacheResult.ACCESS): "OFFCORE_REQUESTS.DEMAND_RFO",
    (CacheId.DTLB, CacheOp.READ, CacheResult.MISS): "DTLB_LOAD_MISSES.WALK_COMPLETED",
    (CacheId.DTLB, CacheOp.WRITE, CacheResult.MISS): "DTLB_STORE_MISSES.WALK_COMPLETED",
    (CacheId.ITLB, CacheOp.READ, CacheResult.ACCESS): "ITLB_MISSES.STLB_HIT",
    (CacheId.ITLB, CacheOp.READ, CacheResult.MISS): "ITLB_MISSES.WALK_COMPLETED",
    (CacheId.BPU, CacheOp.READ, CacheResult.MISS): "BR_MISP_RETIRED.ALL_BRANCHES",
}
_REDWOOD_COVE_CACHE_EVENTS = _MODELLED_CACHE_EVENTS | {  # glc_hw_cache_event_ids; LL as above, by its requests
    (CacheId.L1D, CacheOp.READ, CacheResult.MISS): "L2_RQSTS.ALL_DEMAND_DATA_RD",
    (CacheId.L1I, CacheOp.READ, CacheResult.MISS): "L2_RQSTS.ALL_CODE_RD",
}
del _REDWOOD_COVE_CACHE_EVENTS[CacheId.ITLB, CacheOp.READ, CacheResult.ACCESS]


def core_pmu(name: str, counters: int, generic_events: Mapping[HardwareId, str] = MappingProxyType({})) -> PmuModel:
    """Of a modelled core. `generic_events`: besides those of every Intel core."""
    found = perfmon_v4(
        name,
        counters,
        [*SKYLAKE, *TOP_DOWN],
        CLOCK_AND_RETIRED | _MODELLED,
        RETIRED_CACHE_EVENTS | _MODELLED_CACHE_EVENTS,
        TOP_DOWN_ALIASES,
    )
    return replace(
        found,
        generic_events={**found.generic_events, **generic_events},
        sources=(INTEL_MSR, SKYLAKE_CBOX, SKYLAKE_IMC),
        no_sources=NO_SOURCES | {"uncore_cha": "servers have it; clients like this one have uncore_cbox"},
    )


def perfmon_v4(
    name: str,
    counters: int,
    rows: Sequence[Event],
    generic_events: Mapping[HardwareId, str],
    generic_cache_events: Mapping[CacheEvent, str],
    further_aliases: Mapping[str, str] = MappingProxyType({}),
) -> PmuModel:
    """With `counters` general-purpose counters of 48 bits. sysfs names: the generic events'."""
    having = {row.name for row in rows}
    return PmuModel(
        name=name,
        isa="x86_64",
        sysfs_name="cpu",
        driver="intel_core",
        version=4,
        identification=1 << 12 | 1 << 13,  # IA32_PERF_CAPABILITIES: FREEZE_WHILE_SMM, FW_WRITE
        counters=counters,
        most_counters=32,
        counter_width_bits=48,
        fixed_counters=FIXED_COUNTERS,
        events=EventList(rows),
        format=FORMAT,
        generic_events=generic_events,
        generic_cache_events=generic_cache_events,
        sysfs_aliases={generic.sysfs_name: event for generic, event in generic_events.items()} | dict(further_aliases),
        sources=(INTEL_MSR,),
        no_sources=NO_SOURCES,
        not_modelled=NOT_MODELLED | {row.code: row.name for row in SKYLAKE if row.name not in having},
    )


def redwood_cove(name: str, counters: int) -> PmuModel:
    """Version 5, with slots on a fixed counter and MSR_PERF_METRICS. The latter's events, which Linux reads from it in
    shares of 255, are counted exactly, on counters of their own."""
    metrics = [row for row in TOP_DOWN if row.name != SLOTS.event]
    found = perfmon_v4(
        name,
        counters,
        [*REDWOOD_COVE, *metrics],
        CLOCK_AND_RETIRED | _MODELLED | {HardwareId.BUS_CYCLES: "CPU_CLK_UNHALTED.REF_TSC_P"},
        RETIRED_CACHE_EVENTS | _REDWOOD_COVE_CACHE_EVENTS,
        TOP_DOWN_ALIASES,
    )
    return replace(
        found,
        version=5,
        fixed_counters=(*FIXED_COUNTERS, SLOTS),
        metrics=METRICS,
        constraints=REDWOOD_COVE_CONSTRAINTS,
        sources=(INTEL_MSR, GRANITE_RAPIDS_CHA, GRANITE_RAPIDS_IMC),
        no_sources=NO_SOURCES | {"uncore_cbox": "clients have it; servers like this one have uncore_cha"},
        not_modelled=REDWOOD_COVE_NOT_MODELLED,
    )
