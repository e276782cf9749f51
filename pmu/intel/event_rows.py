"""Rows of Intel's events, for the models to choose from: what each means on a core of ours.

Codes and names: Intel's event list of Skylake (intel/perfmon), and the SDM's architectural events. A code is
UMASK:EVENT; with CMASK in bits 24 up, INV in bit 23 and E in bit 18 where the vendor's event has them.
"""

from __future__ import annotations

from collections.abc import Iterable

from emulator.probes import Probe
from pmu.event import Event, Support
from pmu.event_notes import BY_MODEL, DEMAND, L1D_REFILL, L2_REFILL, MODELLED, OWN_CYCLES, PREDICTORS, SLOTS, UNFED

FAR_TOO = "SYSCALL and INT n, which are far, are counted too"
BY_ITERATION = "REP string instructions count by iteration; hardware moves wider pieces"
BY_LINE = "by cache line: a load that crosses lines may count twice; of the core's model"
UOPS = "micro-operations of the core's model; none on a wrong path"
BOTH_WALKS = "of the core's model, for loads and stores together"
_APPROXIMATE = Support.APPROXIMATE

_L2_ACCESS = (Probe.L2_ACCESS_FETCH, Probe.L2_ACCESS_LOAD, Probe.L2_ACCESS_STORE)
_LL_ACCESS = (Probe.LL_ACCESS_FETCH, Probe.LL_ACCESS_LOAD, Probe.LL_ACCESS_STORE)
_LL_REFILL = (Probe.LL_REFILL_FETCH, Probe.LL_REFILL_LOAD, Probe.LL_REFILL_STORE)

_LOADS = (Probe.LOAD, Probe.SOFTWARE_PREFETCH)

FIXED = [  # the list gives them event 0x00
    Event(0x0100, "INST_RETIRED.ANY", (Probe.INST_RETIRED,)),
    Event(0x0200, "CPU_CLK_UNHALTED.THREAD", (Probe.CYCLES,), note=OWN_CYCLES),
    Event(0x0300, "CPU_CLK_UNHALTED.REF_TSC", (Probe.CYCLES,), _APPROXIMATE,
          "the time stamp counter runs at the core's frequency, so the same as cycles"),
]  # fmt: skip

RETIRED = [
    Event(0x013C, "CPU_CLK_UNHALTED.REF_XCLK", (Probe.CYCLES,), _APPROXIMATE,
          "the crystal clock runs at the core's frequency, so the same as cycles"),
    Event(0x003C, "CPU_CLK_UNHALTED.THREAD_P", (Probe.CYCLES,), note=OWN_CYCLES),
    Event(0x00C0, "INST_RETIRED.ANY_P", (Probe.INST_RETIRED,), note="REP string instructions retire once"),
    Event(0x00C4, "BR_INST_RETIRED.ALL_BRANCHES", (Probe.BR_RETIRED,)),
    Event(0x01C4, "BR_INST_RETIRED.CONDITIONAL", (Probe.BR_COND,)),
    Event(0x01C4, "BR_INST_RETIRED.COND", (Probe.BR_COND,)),
    Event(0x02C4, "BR_INST_RETIRED.NEAR_CALL", (Probe.BR_CALL,)),
    Event(0x08C4, "BR_INST_RETIRED.NEAR_RETURN", (Probe.BR_RETURN,)),
    Event(0x20C4, "BR_INST_RETIRED.NEAR_TAKEN", (Probe.BR_TAKEN,), _APPROXIMATE, FAR_TOO),
    Event(0x40C4, "BR_INST_RETIRED.FAR_BRANCH", (Probe.EXC_SVC,), _APPROXIMATE,
          "SYSCALL only: interrupts, faults and returns from the kernel are not counted"),
    Event(0x21D0, "MEM_INST_RETIRED.LOCK_LOADS", (Probe.LOCKED,)),
    Event(0x81D0, "MEM_INST_RETIRED.ALL_LOADS", _LOADS, _APPROXIMATE, f"with software prefetches; {BY_ITERATION}"),
    Event(0x82D0, "MEM_INST_RETIRED.ALL_STORES", (Probe.STORE,), _APPROXIMATE, BY_ITERATION),
    Event(0x83D0, "MEM_INST_RETIRED.ANY", (*_LOADS, Probe.STORE), _APPROXIMATE,
          f"{BY_ITERATION}; a read-modify-write counts twice"),
]  # fmt: skip

_ARCHITECTURAL = [  # SDM volume 3, "Pre-defined Architectural Performance Events"
    Event(0x412E, "LONGEST_LAT_CACHE.MISS", _LL_REFILL, _APPROXIMATE, DEMAND),
    Event(0x4F2E, "LONGEST_LAT_CACHE.REFERENCE", _LL_ACCESS, _APPROXIMATE, DEMAND),
    Event(0x00C5, "BR_MISP_RETIRED.ALL_BRANCHES", (Probe.BR_MISPREDICTED,), _APPROXIMATE, PREDICTORS),
]  # fmt: skip

_BRANCHES = [
    Event(0x10C4, "BR_INST_RETIRED.NOT_TAKEN", (Probe.BR_COND,), less=(Probe.BR_COND_TAKEN,)),
    Event(0x10C4, "BR_INST_RETIRED.COND_NTAKEN", (Probe.BR_COND,), less=(Probe.BR_COND_TAKEN,)),
    Event(0x01C5, "BR_MISP_RETIRED.CONDITIONAL", (Probe.BR_COND_MISPREDICTED,), _APPROXIMATE, PREDICTORS),
    Event(0x01E6, "BACLEARS.ANY", (Probe.BTB_MISS,), _APPROXIMATE,
          "taken branches whose target was not known at fetch, without a mispredict"),
    Event(0x0104_010D, "INT_MISC.CLEARS_COUNT", (Probe.BR_MISPREDICTED,), _APPROXIMATE,
          "mispredicted branches: machine clears are not modelled"),
]  # fmt: skip

_CACHES = [
    Event(0x0183, "ICACHE_64B.IFTAG_HIT", (Probe.L1I_ACCESS,), _APPROXIMATE, MODELLED, less=(Probe.L1I_REFILL,)),
    Event(0x0283, "ICACHE_64B.IFTAG_MISS", (Probe.L1I_REFILL,), _APPROXIMATE, DEMAND),
    Event(0x0151, "L1D.REPLACEMENT", (*L1D_REFILL, Probe.L1D_PREFETCH), _APPROXIMATE, MODELLED),
    Event(0x2124, "L2_RQSTS.DEMAND_DATA_RD_MISS", (Probe.L2_REFILL_LOAD,), _APPROXIMATE, DEMAND),
    Event(0x2224, "L2_RQSTS.RFO_MISS", (Probe.L2_REFILL_STORE,), _APPROXIMATE, DEMAND),
    Event(0x2424, "L2_RQSTS.CODE_RD_MISS", (Probe.L2_REFILL_FETCH,), _APPROXIMATE, DEMAND),
    Event(0x2724, "L2_RQSTS.ALL_DEMAND_MISS", L2_REFILL, _APPROXIMATE, DEMAND),
    Event(0x3824, "L2_RQSTS.PF_MISS", (Probe.L2_PREFETCH,), _APPROXIMATE, MODELLED),
    Event(0x3F24, "L2_RQSTS.MISS", (*L2_REFILL, Probe.L2_PREFETCH), _APPROXIMATE, MODELLED),
    Event(0xC124, "L2_RQSTS.DEMAND_DATA_RD_HIT", (Probe.L2_ACCESS_LOAD,), _APPROXIMATE, DEMAND,
          less=(Probe.L2_REFILL_LOAD,)),
    Event(0xC224, "L2_RQSTS.RFO_HIT", (Probe.L2_ACCESS_STORE,), _APPROXIMATE, DEMAND, less=(Probe.L2_REFILL_STORE,)),
    Event(0xC424, "L2_RQSTS.CODE_RD_HIT", (Probe.L2_ACCESS_FETCH,), _APPROXIMATE, DEMAND,
          less=(Probe.L2_REFILL_FETCH,)),
    Event(0xE124, "L2_RQSTS.ALL_DEMAND_DATA_RD", (Probe.L2_ACCESS_LOAD,), _APPROXIMATE, DEMAND),
    Event(0xE224, "L2_RQSTS.ALL_RFO", (Probe.L2_ACCESS_STORE,), _APPROXIMATE, DEMAND),
    Event(0xE424, "L2_RQSTS.ALL_CODE_RD", (Probe.L2_ACCESS_FETCH,), _APPROXIMATE, DEMAND),
    Event(0xE724, "L2_RQSTS.ALL_DEMAND_REFERENCES", _L2_ACCESS, _APPROXIMATE, DEMAND),
    Event(0x40F0, "L2_TRANS.L2_WB", (Probe.L2_WRITE_BACK,), _APPROXIMATE, MODELLED),
    Event(0x1FF1, "L2_LINES_IN.ALL", (*L2_REFILL, Probe.L2_PREFETCH), _APPROXIMATE, MODELLED),
    Event(0x01B0, "OFFCORE_REQUESTS.DEMAND_DATA_RD", (Probe.L2_REFILL_LOAD,), _APPROXIMATE, DEMAND),
    Event(0x02B0, "OFFCORE_REQUESTS.DEMAND_CODE_RD", (Probe.L2_REFILL_FETCH,), _APPROXIMATE, DEMAND),
    Event(0x04B0, "OFFCORE_REQUESTS.DEMAND_RFO", (Probe.L2_REFILL_STORE,), _APPROXIMATE, DEMAND),
    Event(0x10B0, "OFFCORE_REQUESTS.L3_MISS_DEMAND_DATA_RD", (Probe.LL_REFILL_LOAD,), _APPROXIMATE, DEMAND),
    Event(0x41D0, "MEM_INST_RETIRED.SPLIT_LOADS", (Probe.L1D_SPLIT_LOAD,)),
    Event(0x42D0, "MEM_INST_RETIRED.SPLIT_STORES", (Probe.L1D_SPLIT_STORE,)),
    Event(0x01D1, "MEM_LOAD_RETIRED.L1_HIT", (Probe.L1D_ACCESS_LOAD,), _APPROXIMATE, BY_LINE,
          less=(Probe.L1D_REFILL_LOAD,)),
    Event(0x02D1, "MEM_LOAD_RETIRED.L2_HIT", (Probe.L2_ACCESS_LOAD,), _APPROXIMATE, BY_LINE,
          less=(Probe.L2_REFILL_LOAD,)),
    Event(0x04D1, "MEM_LOAD_RETIRED.L3_HIT", (Probe.LL_ACCESS_LOAD,), _APPROXIMATE, BY_LINE,
          less=(Probe.LL_REFILL_LOAD,)),
    Event(0x08D1, "MEM_LOAD_RETIRED.L1_MISS", (Probe.L1D_REFILL_LOAD,), _APPROXIMATE, BY_LINE),
    Event(0x10D1, "MEM_LOAD_RETIRED.L2_MISS", (Probe.L2_REFILL_LOAD,), _APPROXIMATE, BY_LINE),
    Event(0x20D1, "MEM_LOAD_RETIRED.L3_MISS", (Probe.LL_REFILL_LOAD,), _APPROXIMATE, BY_LINE),
    Event(0x02D2, "MEM_LOAD_L3_HIT_RETIRED.XSNP_HIT", (Probe.FETCHED_HIT,), _APPROXIMATE, "stores' misses, too"),
    Event(0x04D2, "MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM", (Probe.FETCHED_HITM,), _APPROXIMATE, "stores' misses, too"),
]  # fmt: skip

_TLBS = [
    Event(0x0108, "DTLB_LOAD_MISSES.MISS_CAUSES_A_WALK", (Probe.DTLB_WALK_LOAD,), _APPROXIMATE, MODELLED),
    Event(0x0208, "DTLB_LOAD_MISSES.WALK_COMPLETED_4K", (Probe.DTLB_WALK_LOAD,), _APPROXIMATE, MODELLED),
    Event(0x0E08, "DTLB_LOAD_MISSES.WALK_COMPLETED", (Probe.DTLB_WALK_LOAD,), _APPROXIMATE, MODELLED),
    Event(0x1008, "DTLB_LOAD_MISSES.WALK_PENDING", (Probe.DTLB_WALK_CYCLES,), _APPROXIMATE, BOTH_WALKS),
    Event(0x2008, "DTLB_LOAD_MISSES.STLB_HIT", (Probe.L2TLB_ACCESS_LOAD,), _APPROXIMATE, MODELLED,
          less=(Probe.DTLB_WALK_LOAD,)),
    Event(0x0149, "DTLB_STORE_MISSES.MISS_CAUSES_A_WALK", (Probe.DTLB_WALK_STORE,), _APPROXIMATE, MODELLED),
    Event(0x0249, "DTLB_STORE_MISSES.WALK_COMPLETED_4K", (Probe.DTLB_WALK_STORE,), _APPROXIMATE, MODELLED),
    Event(0x0E49, "DTLB_STORE_MISSES.WALK_COMPLETED", (Probe.DTLB_WALK_STORE,), _APPROXIMATE, MODELLED),
    Event(0x2049, "DTLB_STORE_MISSES.STLB_HIT", (Probe.L2TLB_ACCESS_STORE,), _APPROXIMATE, MODELLED,
          less=(Probe.DTLB_WALK_STORE,)),
    Event(0x0185, "ITLB_MISSES.MISS_CAUSES_A_WALK", (Probe.ITLB_WALK,), _APPROXIMATE, MODELLED),
    Event(0x0285, "ITLB_MISSES.WALK_COMPLETED_4K", (Probe.ITLB_WALK,), _APPROXIMATE, MODELLED),
    Event(0x0E85, "ITLB_MISSES.WALK_COMPLETED", (Probe.ITLB_WALK,), _APPROXIMATE, MODELLED),
    Event(0x1085, "ITLB_MISSES.WALK_PENDING", (Probe.ITLB_WALK_CYCLES,), _APPROXIMATE, MODELLED),
    Event(0x2085, "ITLB_MISSES.STLB_HIT", (Probe.L2TLB_ACCESS_FETCH,), _APPROXIMATE, MODELLED,
          less=(Probe.ITLB_WALK,)),
    Event(0x11D0, "MEM_INST_RETIRED.STLB_MISS_LOADS", (Probe.DTLB_WALK_LOAD,), _APPROXIMATE, MODELLED),
    Event(0x12D0, "MEM_INST_RETIRED.STLB_MISS_STORES", (Probe.DTLB_WALK_STORE,), _APPROXIMATE, MODELLED),
]  # fmt: skip

_PIPELINE = [
    Event(0x0203, "LD_BLOCKS.STORE_FORWARD", (Probe.STORE_FORWARD_BLOCKED,), _APPROXIMATE, "of the core's model"),
    Event(0x0107, "LD_BLOCKS_PARTIAL.ADDRESS_ALIAS", (Probe.ALIAS_4K,), _APPROXIMATE, "of the core's model"),
    Event(0x010E, "UOPS_ISSUED.ANY", (Probe.UOPS_DISPATCHED,), _APPROXIMATE, UOPS),
    Event(0x0180_010E, "UOPS_ISSUED.STALL_CYCLES", (Probe.STALL_FRONTEND, Probe.STALL_BACKEND), _APPROXIMATE, BY_MODEL),
    Event(0x0100_0114, "ARITH.DIVIDER_ACTIVE", (Probe.DIVIDER_ACTIVE,), _APPROXIMATE, BY_MODEL),
    Event(0x019C, "IDQ_UOPS_NOT_DELIVERED.CORE", (Probe.SLOTS_FRONTEND,), _APPROXIMATE, UNFED),
    Event(0x0400_019C, "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", (Probe.STALL_FRONTEND,), _APPROXIMATE,
          BY_MODEL),
    Event(0x01A2, "RESOURCE_STALLS.ANY", (Probe.STALL_BACKEND,), _APPROXIMATE, BY_MODEL),
    Event(0x08A2, "RESOURCE_STALLS.SB", (Probe.STALL_STORE_BUFFER,), _APPROXIMATE, BY_MODEL),
    Event(0x1400_14A3, "CYCLE_ACTIVITY.STALLS_MEM_ANY", (Probe.STALL_BACKEND_MEMORY,), _APPROXIMATE,
          "cycles without dispatch while the oldest micro-operation waits for memory"),
    Event(0x01B1, "UOPS_EXECUTED.THREAD", (Probe.UOPS_DISPATCHED,), _APPROXIMATE, UOPS),
    Event(0x02C2, "UOPS_RETIRED.RETIRE_SLOTS", (Probe.UOPS_RETIRED,), _APPROXIMATE, UOPS),
    Event(0x0180_02C2, "UOPS_RETIRED.STALL_CYCLES", (Probe.CYCLES,), _APPROXIMATE, BY_MODEL,
          less=(Probe.CYCLES_RETIRING,)),
    Event(0x04C2, "UOPS_RETIRED.MACRO_FUSED", (Probe.FUSED,), _APPROXIMATE, "of the core's model"),
]  # fmt: skip

OWN_SLOTS = f"as PERF_METRICS of Intel's later parts has it, but on any counter; {BY_MODEL}"
TOP_DOWN = [  # the encodings that Linux gives to the fixed counter of slots and to the fields of PERF_METRICS
    Event(0x0400, "TOPDOWN.SLOTS", SLOTS, _APPROXIMATE, OWN_SLOTS),
    Event(0x8000, "PERF_METRICS.RETIRING", (Probe.UOPS_RETIRED,), _APPROXIMATE, OWN_SLOTS),
    Event(0x8100, "PERF_METRICS.BAD_SPECULATION", (Probe.SLOTS_BAD_SPECULATION,), _APPROXIMATE, OWN_SLOTS),
    Event(0x8200, "PERF_METRICS.FRONTEND_BOUND", (Probe.SLOTS_FRONTEND,), _APPROXIMATE, OWN_SLOTS),
    Event(0x8300, "PERF_METRICS.BACKEND_BOUND", (Probe.SLOTS_BACKEND,), _APPROXIMATE, OWN_SLOTS),
    Event(0x8500, "PERF_METRICS.BRANCH_MISPREDICTS", (Probe.SLOTS_BAD_SPECULATION,), _APPROXIMATE, OWN_SLOTS),
    Event(0x8600, "PERF_METRICS.FETCH_LATENCY", (Probe.SLOTS_FRONTEND_LATENCY,), _APPROXIMATE, OWN_SLOTS),
    Event(0x8700, "PERF_METRICS.MEMORY_BOUND", (Probe.SLOTS_BACKEND_MEMORY,), _APPROXIMATE, OWN_SLOTS),
]  # fmt: skip
TOP_DOWN_ALIASES = {  # arch/x86/events/intel/core.c: icl_td_events_attrs, spr_td_events_attrs
    "slots": "TOPDOWN.SLOTS",
    "topdown-retiring": "PERF_METRICS.RETIRING",
    "topdown-bad-spec": "PERF_METRICS.BAD_SPECULATION",
    "topdown-fe-bound": "PERF_METRICS.FRONTEND_BOUND",
    "topdown-be-bound": "PERF_METRICS.BACKEND_BOUND",
    "topdown-br-mispredict": "PERF_METRICS.BRANCH_MISPREDICTS",
    "topdown-fetch-lat": "PERF_METRICS.FETCH_LATENCY",
    "topdown-mem-bound": "PERF_METRICS.MEMORY_BOUND",
}


def by_code(rows: Iterable[Event]) -> list[Event]:
    """The fixed counters' first, then by event and umask."""
    return sorted(rows, key=lambda row: (row.code & 0xFF, row.code))


SKYLAKE = [*FIXED, *by_code([*RETIRED, *_ARCHITECTURAL, *_BRANCHES, *_CACHES, *_TLBS, *_PIPELINE])]
