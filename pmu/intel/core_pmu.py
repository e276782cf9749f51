"""core_pmu: Intel's architectural perfmon, version 4, on a core that is modelled; with Skylake's events."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pmu.event import EventList
from pmu.intel.event_rows import SKYLAKE, TOP_DOWN, TOP_DOWN_ALIASES
from pmu.intel.not_modelled import NOT_MODELLED
from pmu.model import FixedCounter, FormatField, PmuModel, Role

FIXED_COUNTERS = (
    FixedCounter("INST_RETIRED.ANY", 0x00C0, 48),
    FixedCounter("CPU_CLK_UNHALTED.THREAD", 0x003C, 48),
    FixedCounter("CPU_CLK_UNHALTED.REF_TSC", 0x0300, 48, programmable=False),
)
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
    "PERF_COUNT_HW_CPU_CYCLES": "CPU_CLK_UNHALTED.THREAD_P",
    "PERF_COUNT_HW_INSTRUCTIONS": "INST_RETIRED.ANY_P",
    "PERF_COUNT_HW_BRANCH_INSTRUCTIONS": "BR_INST_RETIRED.ALL_BRANCHES",
    "PERF_COUNT_HW_BUS_CYCLES": "CPU_CLK_UNHALTED.REF_XCLK",
    "PERF_COUNT_HW_REF_CPU_CYCLES": "CPU_CLK_UNHALTED.REF_TSC",
}
RETIRED_CACHE_EVENTS = {  # skl_hw_cache_event_ids: what needs no cache, TLB or predictor
    ("L1D", "OP_READ", "RESULT_ACCESS"): "MEM_INST_RETIRED.ALL_LOADS",
    ("L1D", "OP_WRITE", "RESULT_ACCESS"): "MEM_INST_RETIRED.ALL_STORES",
    ("DTLB", "OP_READ", "RESULT_ACCESS"): "MEM_INST_RETIRED.ALL_LOADS",
    ("DTLB", "OP_WRITE", "RESULT_ACCESS"): "MEM_INST_RETIRED.ALL_STORES",
    ("BPU", "OP_READ", "RESULT_ACCESS"): "BR_INST_RETIRED.ALL_BRANCHES",
}
RETIRED_ALIASES = {
    "cpu-cycles": "CPU_CLK_UNHALTED.THREAD_P",
    "instructions": "INST_RETIRED.ANY_P",
    "branch-instructions": "BR_INST_RETIRED.ALL_BRANCHES",
    "bus-cycles": "CPU_CLK_UNHALTED.REF_XCLK",
    "ref-cycles": "CPU_CLK_UNHALTED.REF_TSC",
}
_MODELLED = {
    "PERF_COUNT_HW_CACHE_REFERENCES": "LONGEST_LAT_CACHE.REFERENCE",
    "PERF_COUNT_HW_CACHE_MISSES": "LONGEST_LAT_CACHE.MISS",
    "PERF_COUNT_HW_BRANCH_MISSES": "BR_MISP_RETIRED.ALL_BRANCHES",
}
_MODELLED_CACHE_EVENTS = {  # skl_hw_cache_event_ids; LL, which Linux counts by OFFCORE_RESPONSE, by its requests
    ("L1D", "OP_READ", "RESULT_MISS"): "L1D.REPLACEMENT",
    ("L1I", "OP_READ", "RESULT_MISS"): "ICACHE_64B.IFTAG_MISS",
    ("LL", "OP_READ", "RESULT_ACCESS"): "OFFCORE_REQUESTS.DEMAND_DATA_RD",
    ("LL", "OP_READ", "RESULT_MISS"): "OFFCORE_REQUESTS.L3_MISS_DEMAND_DATA_RD",
    ("LL", "OP_WRITE", "RESULT_ACCESS"): "OFFCORE_REQUESTS.DEMAND_RFO",
    ("DTLB", "OP_READ", "RESULT_MISS"): "DTLB_LOAD_MISSES.WALK_COMPLETED",
    ("DTLB", "OP_WRITE", "RESULT_MISS"): "DTLB_STORE_MISSES.WALK_COMPLETED",
    ("ITLB", "OP_READ", "RESULT_ACCESS"): "ITLB_MISSES.STLB_HIT",
    ("ITLB", "OP_READ", "RESULT_MISS"): "ITLB_MISSES.WALK_COMPLETED",
    ("BPU", "OP_READ", "RESULT_MISS"): "BR_MISP_RETIRED.ALL_BRANCHES",
}
_MODELLED_ALIASES = {
    "cache-references": "LONGEST_LAT_CACHE.REFERENCE",
    "cache-misses": "LONGEST_LAT_CACHE.MISS",
    "branch-misses": "BR_MISP_RETIRED.ALL_BRANCHES",
}


def core_pmu(name: str, counters: int, generic_events: Mapping[str, str] = MappingProxyType({})) -> PmuModel:
    """With `counters` general-purpose counters of 48 bits, and `generic_events` besides those of every Intel core."""
    return PmuModel(
        name=name,
        isa="x86_64",
        sysfs_name="cpu",
        driver="intel_core",
        version=4,
        identification=1 << 13,  # IA32_PERF_CAPABILITIES.FW_WRITE
        counters=counters,
        most_counters=32,
        counter_width_bits=48,
        fixed_counters=FIXED_COUNTERS,
        events=EventList([*SKYLAKE, *TOP_DOWN]),
        format=FORMAT,
        generic_events=CLOCK_AND_RETIRED | _MODELLED | dict(generic_events),
        generic_cache_events=RETIRED_CACHE_EVENTS | _MODELLED_CACHE_EVENTS,
        sysfs_aliases=RETIRED_ALIASES | _MODELLED_ALIASES | TOP_DOWN_ALIASES,
        not_modelled=NOT_MODELLED,
    )
