"""core_pmu: PMUv3 of one of Arm's cores, or of a version: what all have in common, with the events of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from pmu.arm.event_rows import OWN, ROWS, TOP_DOWN_ALIASES, core_rows
from pmu.arm.not_modelled import COMMON, is_announced, is_common
from pmu.arm.registers import PMEVTYPERn_EL0
from pmu.arm.version import EDGES, INSTRUCTION_COUNTER, THRESHOLDS, Version
from pmu.event import EventList
from pmu.format_field import FormatField, Role
from pmu.generic_events import CacheEvent, CacheId, CacheOp, CacheResult, HardwareId
from pmu.model import FixedCounter, PmuModel

FORMAT = (
    FormatField("event", 0, 15),
    FormatField("long", 0, 0, Role.OPTION, "config1"),
    FormatField("rdpmc", 1, 1, Role.OPTION, "config1"),
)
# As Linux has them whether or not the PMU has thresholds.
_NO_THRESHOLDS = (
    FormatField("threshold", 5, 16, Role.ABSENT, "config1"),
    FormatField("threshold_compare", 3, 4, Role.NO_EFFECT, "config1"),
    FormatField("threshold_count", 2, 2, Role.NO_EFFECT, "config1"),
)
_THRESHOLDS = (
    FormatField("threshold", 5, 16, Role.BY_EVENT, "config1", code_lo=PMEVTYPERn_EL0.TH.lo),
    FormatField("threshold_compare", 3, 4, Role.BY_EVENT, "config1", code_lo=PMEVTYPERn_EL0.TC.lo + 1),
    FormatField("threshold_count", 2, 2, Role.BY_EVENT, "config1", code_lo=PMEVTYPERn_EL0.TC.lo),
)
GENERIC_EVENTS = {  # drivers/perf/arm_pmuv3.c: armv8_pmuv3_perf_map
    HardwareId.CPU_CYCLES: "CPU_CYCLES",
    HardwareId.INSTRUCTIONS: "INST_RETIRED",
    HardwareId.CACHE_REFERENCES: "L1D_CACHE",
    HardwareId.CACHE_MISSES: "L1D_CACHE_REFILL",
    HardwareId.BRANCH_INSTRUCTIONS: "BR_RETIRED",
    HardwareId.BRANCH_MISSES: "BR_MIS_PRED",
    HardwareId.BUS_CYCLES: "BUS_CYCLES",
    HardwareId.STALLED_CYCLES_FRONTEND: "STALL_FRONTEND",
    HardwareId.STALLED_CYCLES_BACKEND: "STALL_BACKEND",
}
GENERIC_CACHE_EVENTS = {  # armv8_pmuv3_perf_cache_map
    (CacheId.L1D, CacheOp.READ, CacheResult.ACCESS): "L1D_CACHE",
    (CacheId.L1D, CacheOp.READ, CacheResult.MISS): "L1D_CACHE_REFILL",
    (CacheId.L1I, CacheOp.READ, CacheResult.ACCESS): "L1I_CACHE",
    (CacheId.L1I, CacheOp.READ, CacheResult.MISS): "L1I_CACHE_REFILL",
    (CacheId.LL, CacheOp.READ, CacheResult.ACCESS): "LL_CACHE_RD",
    (CacheId.LL, CacheOp.READ, CacheResult.MISS): "LL_CACHE_MISS_RD",
    (CacheId.DTLB, CacheOp.READ, CacheResult.ACCESS): "L1D_TLB",
    (CacheId.DTLB, CacheOp.READ, CacheResult.MISS): "L1D_TLB_REFILL",
    (CacheId.ITLB, CacheOp.READ, CacheResult.ACCESS): "L1I_TLB",
    (CacheId.ITLB, CacheOp.READ, CacheResult.MISS): "L1I_TLB_REFILL",
    (CacheId.BPU, CacheOp.READ, CacheResult.ACCESS): "BR_PRED",
    (CacheId.BPU, CacheOp.READ, CacheResult.MISS): "BR_MIS_PRED",
}


def core_pmu(
    name: str,
    part: str,
    events: str,
    cache_events: Mapping[CacheEvent, str] = MappingProxyType({}),
    *,
    third_level: bool = True,
    not_modelled: Mapping[int, str] = MappingProxyType({}),
) -> PmuModel:
    """The PMU of `part`, which has the named `events`.

    `cache_events` is what Linux knows of this part besides the above. `third_level`: whether its last cache is an L3.
    `not_modelled`: events of the part's own without a row.
    """
    return pmu_v3(
        name,
        EventList(core_rows(part, events, third_level)),
        GENERIC_EVENTS,
        GENERIC_CACHE_EVENTS | dict(cache_events),
        TOP_DOWN_ALIASES,
        not_modelled,
    )


def pmu_v3(
    name: str,
    events: EventList,
    generic_events: Mapping[HardwareId, str],
    generic_cache_events: Mapping[CacheEvent, str] = MappingProxyType({}),
    further_aliases: Mapping[str, str] = MappingProxyType({}),
    not_modelled: Mapping[int, str] = MappingProxyType({}),
    *,
    version: Version = Version.V3P1,
    options: Iterable[str] = (),
) -> PmuModel:
    """PMUv3 as every model here has it: six counters, and cycles; with `options` of the architecture by its names.

    sysfs names, as arm_pmuv3.c gives them, the common events that PMCEID0/1 announce, in lower case.
    """
    fixed = [FixedCounter("CPU_CYCLES", 0x0011, 64)]
    if INSTRUCTION_COUNTER in options:
        fixed.append(FixedCounter("INST_RETIRED", 0x0008, 64))
    lacking = {row.code: row.name for row in ROWS.values() if is_common(row.code) and events.by_code(row.code) is None}
    announced = [row.name for row in events if row.listed and is_announced(row.code)]
    return PmuModel(
        name=name,
        isa="aarch64",
        sysfs_name="armv8_pmuv3_0",
        driver="arm_pmuv3",
        version=version,
        options=frozenset(options),
        identification=0x41 << 24,  # PMCR_EL0.IMP: Arm Limited; IDCODE 0: see MIDR_EL1
        counters=6,
        most_counters=31,
        counter_width_bits=64 if version >= Version.V3P5 else 32,
        fixed_counters=tuple(fixed),
        events=events,
        format=FORMAT + (_THRESHOLDS if THRESHOLDS in options else _NO_THRESHOLDS),
        generic_events=generic_events,
        generic_cache_events=generic_cache_events,
        sysfs_aliases={event.lower(): event for event in announced} | dict(further_aliases),
        not_modelled={**COMMON, **lacking, **not_modelled},
        edge_bit=PMEVTYPERn_EL0.TE.mask if EDGES in options else 0,
    )


def pmu_of_version(name: str, version: Version, options: Iterable[str] = ()) -> PmuModel:
    """A PMU of no real part: the version of the architecture, with all common events that anything here counts."""
    most = 0x3FF if version < Version.V3P1 else 0xFFFF
    rows = [row for row in ROWS.values() if row.code <= most and (is_common(row.code) or row in OWN)]
    return pmu_v3(
        name,
        EventList(rows),
        GENERIC_EVENTS,
        GENERIC_CACHE_EVENTS,
        TOP_DOWN_ALIASES,
        version=version,
        options=options,
    )
