"""Rows of PMUv3 events, for the models of Arm's cores to choose from: what each event means on a core of ours.

Codes and names: Arm ARM DDI 0487, "Common event numbers", and the cores' technical reference manuals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from emulator.probes import Probe
from pmu.event import Event, Support
from pmu.event_notes import BY_MODEL, DEMAND, L1D_REFILL, L2_REFILL, MODELLED, OWN_CYCLES, PREDICTORS, SLOTS, UNFED

NO_SPECULATION = "nothing is executed speculatively: counts what retires"
ONE_ACCESS = "one for an instruction that reads or writes; hardware may count a pair or an unaligned access as two"
FROM_EL0 = "counted at EL0, where the exception is taken from"
STORE_WRITES = "the line that a store needs counts as written"
LINES = "lines, where hardware counts the beats of its bus"
OURS = f"{BY_MODEL}; an event of perfemu's own"
_APPROXIMATE = Support.APPROXIMATE

_L1D_ACCESS = (Probe.L1D_ACCESS_LOAD, Probe.L1D_ACCESS_STORE)
_L2_READ = (Probe.L2_ACCESS_FETCH, Probe.L2_ACCESS_LOAD)
_LL_READ = (Probe.LL_ACCESS_FETCH, Probe.LL_ACCESS_LOAD)
_LL_READ_MISS = (Probe.LL_REFILL_FETCH, Probe.LL_REFILL_LOAD)
_DTLB_ACCESS = (Probe.DTLB_ACCESS_LOAD, Probe.DTLB_ACCESS_STORE)
_DTLB_REFILL = (Probe.DTLB_REFILL_LOAD, Probe.DTLB_REFILL_STORE)
_DTLB_WALK = (Probe.DTLB_WALK_LOAD, Probe.DTLB_WALK_STORE)

_RETIRED = [
    Event(0x0000, "SW_INCR", (), note="counted by writes to PMSWINC_EL0"),
    Event(0x0006, "LD_RETIRED", (Probe.LOAD,)),
    Event(0x0007, "ST_RETIRED", (Probe.STORE,)),
    Event(0x0008, "INST_RETIRED", (Probe.INST_RETIRED,)),
    Event(0x0009, "EXC_TAKEN", (Probe.EXC_TAKEN,), _APPROXIMATE, FROM_EL0),
    Event(0x000C, "PC_WRITE_RETIRED", (Probe.BR_TAKEN,), note="branches that are taken; SVC is not one"),
    Event(0x000D, "BR_IMMED_RETIRED", (Probe.BR_IMMED,)),
    Event(0x000E, "BR_RETURN_RETIRED", (Probe.BR_RETURN,)),
    Event(0x000F, "UNALIGNED_LDST_RETIRED", (Probe.UNALIGNED_LOAD, Probe.UNALIGNED_STORE)),
    Event(0x0011, "CPU_CYCLES", (Probe.CYCLES,), note=OWN_CYCLES),
    Event(0x0013, "MEM_ACCESS", (Probe.LOAD, Probe.STORE), _APPROXIMATE, ONE_ACCESS),
    Event(0x001B, "INST_SPEC", (Probe.INST_RETIRED,), _APPROXIMATE, NO_SPECULATION),
    Event(0x001E, "CHAIN", (), note="counts overflows of the even counter before an odd one", listed=False),
    Event(0x0021, "BR_RETIRED", (Probe.BR_RETIRED,)),
]  # fmt: skip

_BRANCHES = [
    Event(0x0010, "BR_MIS_PRED", (Probe.BR_MISPREDICTED,), _APPROXIMATE, NO_SPECULATION),
    Event(0x0012, "BR_PRED", (Probe.BR_RETIRED,), _APPROXIMATE, NO_SPECULATION),
    Event(0x0022, "BR_MIS_PRED_RETIRED", (Probe.BR_MISPREDICTED,), _APPROXIMATE, PREDICTORS),
]  # fmt: skip

_CACHES = [
    Event(0x0001, "L1I_CACHE_REFILL", (Probe.L1I_REFILL,), _APPROXIMATE, DEMAND),
    Event(0x0003, "L1D_CACHE_REFILL", L1D_REFILL, _APPROXIMATE, DEMAND),
    Event(0x0004, "L1D_CACHE", _L1D_ACCESS, _APPROXIMATE, MODELLED),
    Event(0x0014, "L1I_CACHE", (Probe.L1I_ACCESS,), _APPROXIMATE, MODELLED),
    Event(0x0015, "L1D_CACHE_WB", (Probe.L1D_WRITE_BACK,), _APPROXIMATE, MODELLED),
    Event(0x0016, "L2D_CACHE", (*_L2_READ, Probe.L2_ACCESS_STORE, Probe.L1D_WRITE_BACK), _APPROXIMATE, DEMAND),
    Event(0x0017, "L2D_CACHE_REFILL", L2_REFILL, _APPROXIMATE, DEMAND),
    Event(0x0018, "L2D_CACHE_WB", (Probe.L2_WRITE_BACK,), _APPROXIMATE, MODELLED),
    Event(0x0019, "BUS_ACCESS", (*L2_REFILL, Probe.L2_WRITE_BACK), _APPROXIMATE, LINES),
    Event(0x001D, "BUS_CYCLES", (Probe.CYCLES,), _APPROXIMATE, "the bus runs at the core's frequency"),
    Event(0x002A, "L3D_CACHE_REFILL", (*_LL_READ_MISS, Probe.LL_REFILL_STORE), _APPROXIMATE, DEMAND),
    Event(0x002B, "L3D_CACHE", (*_LL_READ, Probe.LL_ACCESS_STORE, Probe.L2_WRITE_BACK), _APPROXIMATE, DEMAND),
    Event(0x0036, "LL_CACHE_RD", _LL_READ, _APPROXIMATE, STORE_WRITES),
    Event(0x0037, "LL_CACHE_MISS_RD", _LL_READ_MISS, _APPROXIMATE, STORE_WRITES),
    Event(0x0040, "L1D_CACHE_RD", (Probe.L1D_ACCESS_LOAD,), _APPROXIMATE, MODELLED),
    Event(0x0041, "L1D_CACHE_WR", (Probe.L1D_ACCESS_STORE,), _APPROXIMATE, MODELLED),
    Event(0x0042, "L1D_CACHE_REFILL_RD", (Probe.L1D_REFILL_LOAD,), _APPROXIMATE, DEMAND),
    Event(0x0043, "L1D_CACHE_REFILL_WR", (Probe.L1D_REFILL_STORE,), _APPROXIMATE, DEMAND),
    Event(0x0044, "L1D_CACHE_REFILL_INNER", L1D_REFILL, _APPROXIMATE, f"from a cache; {DEMAND}",
          less=(Probe.LL_REFILL_LOAD, Probe.LL_REFILL_STORE)),
    Event(0x0045, "L1D_CACHE_REFILL_OUTER", (Probe.LL_REFILL_LOAD, Probe.LL_REFILL_STORE), _APPROXIMATE,
          f"from memory; {DEMAND}"),
    Event(0x0046, "L1D_CACHE_WB_VICTIM", (Probe.L1D_WRITE_BACK,), _APPROXIMATE, MODELLED),
    Event(0x0048, "L1D_CACHE_INVAL", (Probe.INVALIDATED,), _APPROXIMATE, "by other cores' stores"),
    Event(0x0050, "L2D_CACHE_RD", _L2_READ, _APPROXIMATE, STORE_WRITES),
    Event(0x0051, "L2D_CACHE_WR", (Probe.L2_ACCESS_STORE, Probe.L1D_WRITE_BACK), _APPROXIMATE, STORE_WRITES),
    Event(0x0052, "L2D_CACHE_REFILL_RD", (Probe.L2_REFILL_FETCH, Probe.L2_REFILL_LOAD), _APPROXIMATE, STORE_WRITES),
    Event(0x0053, "L2D_CACHE_REFILL_WR", (Probe.L2_REFILL_STORE,), _APPROXIMATE, STORE_WRITES),
    Event(0x0056, "L2D_CACHE_WB_VICTIM", (Probe.L2_WRITE_BACK,), _APPROXIMATE, MODELLED),
    Event(0x0060, "BUS_ACCESS_RD", L2_REFILL, _APPROXIMATE, LINES),
    Event(0x0061, "BUS_ACCESS_WR", (Probe.L2_WRITE_BACK,), _APPROXIMATE, LINES),
    Event(0x00A0, "L3D_CACHE_RD", _LL_READ, _APPROXIMATE, STORE_WRITES),
    Event(0x00A2, "L3D_CACHE_REFILL_RD", _LL_READ_MISS, _APPROXIMATE, STORE_WRITES),
    Event(0x00C1, "L2D_CACHE_REFILL_PREFETCH", (Probe.L2_PREFETCH,), _APPROXIMATE, MODELLED),
    Event(0x00C2, "L1D_CACHE_REFILL_PREFETCH", (Probe.L1D_PREFETCH,), _APPROXIMATE, MODELLED),
]  # fmt: skip

_TLBS = [
    Event(0x0002, "L1I_TLB_REFILL", (Probe.ITLB_REFILL,), _APPROXIMATE, MODELLED),
    Event(0x0005, "L1D_TLB_REFILL", _DTLB_REFILL, _APPROXIMATE, MODELLED),
    Event(0x0025, "L1D_TLB", _DTLB_ACCESS, _APPROXIMATE, MODELLED),
    Event(0x0026, "L1I_TLB", (Probe.ITLB_ACCESS,), _APPROXIMATE, MODELLED),
    Event(0x002D, "L2D_TLB_REFILL", (Probe.ITLB_WALK, *_DTLB_WALK), _APPROXIMATE, MODELLED),
    Event(0x002F, "L2D_TLB", (Probe.L2TLB_ACCESS_FETCH, Probe.L2TLB_ACCESS_LOAD, Probe.L2TLB_ACCESS_STORE),
          _APPROXIMATE, MODELLED),
    Event(0x0034, "DTLB_WALK", _DTLB_WALK, _APPROXIMATE, MODELLED),
    Event(0x0035, "ITLB_WALK", (Probe.ITLB_WALK,), _APPROXIMATE, MODELLED),
    Event(0x004C, "L1D_TLB_REFILL_RD", (Probe.DTLB_REFILL_LOAD,), _APPROXIMATE, MODELLED),
    Event(0x004D, "L1D_TLB_REFILL_WR", (Probe.DTLB_REFILL_STORE,), _APPROXIMATE, MODELLED),
    Event(0x004E, "L1D_TLB_RD", (Probe.DTLB_ACCESS_LOAD,), _APPROXIMATE, MODELLED),
    Event(0x004F, "L1D_TLB_WR", (Probe.DTLB_ACCESS_STORE,), _APPROXIMATE, MODELLED),
    Event(0x005C, "L2D_TLB_REFILL_RD", (Probe.ITLB_WALK, Probe.DTLB_WALK_LOAD), _APPROXIMATE, MODELLED),
    Event(0x005D, "L2D_TLB_REFILL_WR", (Probe.DTLB_WALK_STORE,), _APPROXIMATE, MODELLED),
    Event(0x005E, "L2D_TLB_RD", (Probe.L2TLB_ACCESS_FETCH, Probe.L2TLB_ACCESS_LOAD), _APPROXIMATE, MODELLED),
    Event(0x005F, "L2D_TLB_WR", (Probe.L2TLB_ACCESS_STORE,), _APPROXIMATE, MODELLED),
]  # fmt: skip

_PIPELINE = [
    Event(0x0023, "STALL_FRONTEND", (Probe.STALL_FRONTEND,), _APPROXIMATE, BY_MODEL),
    Event(0x0024, "STALL_BACKEND", (Probe.STALL_BACKEND,), _APPROXIMATE, BY_MODEL),
    Event(0x003A, "OP_RETIRED", (Probe.UOPS_RETIRED,), _APPROXIMATE, "micro-operations of the core's model"),
    Event(0x003B, "OP_SPEC", (Probe.UOPS_DISPATCHED,), _APPROXIMATE, NO_SPECULATION),
    Event(0x003C, "STALL", (Probe.STALL_FRONTEND, Probe.STALL_BACKEND), _APPROXIMATE, BY_MODEL),
    Event(0x003D, "STALL_SLOT_BACKEND", (Probe.SLOTS_BACKEND,), _APPROXIMATE, BY_MODEL),
    Event(0x003E, "STALL_SLOT_FRONTEND", (Probe.SLOTS_FRONTEND,), _APPROXIMATE, UNFED),
    Event(0x003F, "STALL_SLOT", (Probe.SLOTS_FRONTEND, Probe.SLOTS_BACKEND), _APPROXIMATE, BY_MODEL),
    Event(0x4005, "STALL_BACKEND_MEM", (Probe.STALL_BACKEND_MEMORY,), _APPROXIMATE, BY_MODEL),
]  # fmt: skip

_SPECULATIVE = [
    Event(0x0066, "MEM_ACCESS_RD", (Probe.LOAD,), _APPROXIMATE, ONE_ACCESS),
    Event(0x0067, "MEM_ACCESS_WR", (Probe.STORE,), _APPROXIMATE, ONE_ACCESS),
    Event(0x0068, "UNALIGNED_LD_SPEC", (Probe.UNALIGNED_LOAD,), _APPROXIMATE, NO_SPECULATION),
    Event(0x0069, "UNALIGNED_ST_SPEC", (Probe.UNALIGNED_STORE,), _APPROXIMATE, NO_SPECULATION),
    Event(0x006A, "UNALIGNED_LDST_SPEC", (Probe.UNALIGNED_LOAD, Probe.UNALIGNED_STORE), _APPROXIMATE, NO_SPECULATION),
    Event(0x006C, "LDREX_SPEC", (Probe.LOAD_EXCLUSIVE,), _APPROXIMATE, NO_SPECULATION),
    Event(0x006F, "STREX_SPEC", (Probe.STORE_EXCLUSIVE,), _APPROXIMATE, NO_SPECULATION),
    Event(0x0070, "LD_SPEC", (Probe.LOAD,), _APPROXIMATE, NO_SPECULATION),
    Event(0x0071, "ST_SPEC", (Probe.STORE,), _APPROXIMATE, NO_SPECULATION),
    Event(0x0072, "LDST_SPEC", (Probe.LOAD, Probe.STORE), _APPROXIMATE,
          f"{NO_SPECULATION}; an atomic that reads and writes counts twice"),
    Event(0x0073, "DP_SPEC", (Probe.INT_OP,), _APPROXIMATE, NO_SPECULATION),
    Event(0x0074, "ASE_SPEC", (Probe.SIMD_OP,), _APPROXIMATE, NO_SPECULATION),
    Event(0x0075, "VFP_SPEC", (Probe.FP_OP,), _APPROXIMATE, NO_SPECULATION),
    Event(0x0076, "PC_WRITE_SPEC", (Probe.BR_TAKEN,), _APPROXIMATE, NO_SPECULATION),
    Event(0x0077, "CRYPTO_SPEC", (Probe.CRYPTO_OP,), _APPROXIMATE, NO_SPECULATION),
    Event(0x0078, "BR_IMMED_SPEC", (Probe.BR_IMMED,), _APPROXIMATE, NO_SPECULATION),
    Event(0x0079, "BR_RETURN_SPEC", (Probe.BR_RETURN,), _APPROXIMATE, NO_SPECULATION),
    Event(0x007A, "BR_INDIRECT_SPEC", (Probe.BR_INDIRECT, Probe.BR_RETURN), _APPROXIMATE, NO_SPECULATION),
    Event(0x007C, "ISB_SPEC", (Probe.ISB,), _APPROXIMATE, NO_SPECULATION),
    Event(0x007D, "DSB_SPEC", (Probe.DSB,), _APPROXIMATE, NO_SPECULATION),
    Event(0x007E, "DMB_SPEC", (Probe.DMB,), _APPROXIMATE, NO_SPECULATION),
]  # fmt: skip

_EXCEPTIONS = [
    Event(0x0081, "EXC_UNDEF", (Probe.EXC_UNDEF,), _APPROXIMATE, FROM_EL0),
    Event(0x0082, "EXC_SVC", (Probe.EXC_SVC,), _APPROXIMATE, FROM_EL0),
    Event(0x0083, "EXC_PABORT", (Probe.EXC_PABORT,), _APPROXIMATE, FROM_EL0),
    Event(0x0084, "EXC_DABORT", (Probe.EXC_DABORT,), _APPROXIMATE, FROM_EL0),
]  # fmt: skip

_CORTEX_A55 = [  # its technical reference manual, "PMU events"
    Event(0x00C9, "BR_COND_PRED", (Probe.BR_COND,), _APPROXIMATE, NO_SPECULATION),
    Event(0x00CA, "BR_INDIRECT_MIS_PRED", (Probe.BR_INDIRECT_MISPREDICTED, Probe.BR_RETURN_MISPREDICTED),
          _APPROXIMATE, NO_SPECULATION),
    Event(0x00CC, "BR_COND_MIS_PRED", (Probe.BR_COND_MISPREDICTED,), _APPROXIMATE, NO_SPECULATION),
    Event(0x00CD, "BR_INDIRECT_ADDR_PRED", (Probe.BR_INDIRECT,), _APPROXIMATE, NO_SPECULATION),
    Event(0x00CE, "BR_RETURN_ADDR_PRED", (Probe.BR_RETURN,), _APPROXIMATE, NO_SPECULATION),
    Event(0x00CF, "BR_RETURN_ADDR_MIS_PRED", (Probe.BR_RETURN_MISPREDICTED,), _APPROXIMATE, NO_SPECULATION),
]  # fmt: skip

OWN = [  # what top-down analysis asks for and no Arm core has; numbers from the space that implementations may use
    Event(0x03F0, "SLOTS", SLOTS, _APPROXIMATE, OURS),
    Event(0x03F1, "SLOTS_BAD_SPECULATION", (Probe.SLOTS_BAD_SPECULATION,), _APPROXIMATE, OURS),
    Event(0x03F2, "SLOTS_FETCH_LATENCY", (Probe.SLOTS_FRONTEND_LATENCY,), _APPROXIMATE, OURS),
    Event(0x03F3, "SLOTS_MEMORY_BOUND", (Probe.SLOTS_BACKEND_MEMORY,), _APPROXIMATE, OURS),
]  # fmt: skip

ROWS = {
    event.name: event
    for event in sorted(
        [
            *_RETIRED, *_BRANCHES, *_CACHES, *_TLBS, *_PIPELINE, *_SPECULATIVE, *_EXCEPTIONS, *_CORTEX_A55, *OWN,
        ],
        key=lambda event: event.code,
    )
}  # fmt: skip
ARCHITECTURAL = (  # what a model's core fires, whether the real part has the event or not
    *(name for name, event in ROWS.items() if event.code < 0x40),
    "STALL_BACKEND_MEM",
)
TOP_DOWN_ALIASES = {  # Linux's names for the events of Intel's PMU that count the same
    "slots": "SLOTS",
    "topdown-retiring": "OP_RETIRED",
    "topdown-bad-spec": "SLOTS_BAD_SPECULATION",
    "topdown-fe-bound": "STALL_SLOT_FRONTEND",
    "topdown-be-bound": "STALL_SLOT_BACKEND",
    "topdown-br-mispredict": "SLOTS_BAD_SPECULATION",
    "topdown-fetch-lat": "SLOTS_FETCH_LATENCY",
    "topdown-mem-bound": "SLOTS_MEMORY_BOUND",
}


def rows(names: str) -> list[Event]:
    """The rows of these names, which spaces part, by code."""
    return sorted((ROWS[name] for name in names.split()), key=lambda event: event.code)


_LAST_LEVEL_IS_L2 = {  # where there is no third
    "LL_CACHE_RD": _L2_READ,
    "LL_CACHE_MISS_RD": (Probe.L2_REFILL_FETCH, Probe.L2_REFILL_LOAD),
    "L3D_CACHE": None,
    "L3D_CACHE_REFILL": None,
}


def core_rows(part: str, names: str, third_level: bool) -> Iterator[Event]:
    """What the PMU of the real `part` has of these rows, and beyond that every architectural event.

    A row that the part lacks says so.
    """
    listed = {row.name for row in rows(names)}
    for name, row in ROWS.items():
        event = row
        if not third_level and name in _LAST_LEVEL_IS_L2:
            probes = _LAST_LEVEL_IS_L2[name]
            if probes is None:
                continue
            event = replace(row, probes=probes, note=f"the last level is the second; {row.note}")
        if name in listed or event in OWN:
            yield event
        elif name in ARCHITECTURAL:
            lacking = f"no real {part} has it"
            yield replace(event, note=f"{event.note}; {lacking}" if event.note else lacking)
