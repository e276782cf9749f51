"""Rows of AMD's events, for the models to choose from: what each means on a core of ours.

Codes and names: AMD's processor programming references of families 19h, models 10h and up, and 1Ah, as perf lists them.
A code is as in PERF_CTLx: EventSelect[11:8] in bits 35:32, the unit mask in 15:8. Bits of a unit mask add up; rows are
those sums that have a name, or that Linux counts by.
"""

from __future__ import annotations

from emulator.probes import Probe
from pmu.event import Event, Support
from pmu.event_notes import BY_MODEL, DEMAND, L1D_REFILL, L2_REFILL, MODELLED, OWN_CYCLES, PREDICTORS, SLOTS, UNFED

_APPROXIMATE = Support.APPROXIMATE
OPS = "micro-operations of the core's model; none on a wrong path"
WITH_FAR = "with SYSCALL and INT n; interrupts, faults and returns from the kernel are not counted"
BY_ITERATION = "REP string instructions count by iteration"
BOTH = f"{BY_ITERATION}; those of read-modify-writes, too, which hardware counts apart"
OF_ANY_SIZE = "of the core's model: of pages of any size"
STATELESS = f"{DEMAND}; hardware counts by the state of the line, too"
EARLIER = "in the lists of earlier parts, and Linux still counts by it"
OWN_MASK = "perfemu's own name for a unit mask that Linux counts by"
OWN_SLOTS = f"perfemu's own, under an event number that AMD has none for; {BY_MODEL}"

_L1D_ACCESS = (Probe.L1D_ACCESS_LOAD, Probe.L1D_ACCESS_STORE)
_L2_DATA = (Probe.L2_ACCESS_LOAD, Probe.L2_ACCESS_STORE)
_L2_ACCESS = (Probe.L2_ACCESS_FETCH, *_L2_DATA)
_L2_DATA_REFILL = (Probe.L2_REFILL_LOAD, Probe.L2_REFILL_STORE)
_LL_DATA = (Probe.LL_ACCESS_LOAD, Probe.LL_ACCESS_STORE)
_LL_DATA_REFILL = (Probe.LL_REFILL_LOAD, Probe.LL_REFILL_STORE)
_LL_ACCESS = (Probe.LL_ACCESS_FETCH, *_LL_DATA)
_LL_REFILL = (Probe.LL_REFILL_FETCH, *_LL_DATA_REFILL)
_DTLB_REFILL = (Probe.DTLB_REFILL_LOAD, Probe.DTLB_REFILL_STORE)
_DTLB_WALK = (Probe.DTLB_WALK_LOAD, Probe.DTLB_WALK_STORE)
_L2TLB_DATA = (Probe.L2TLB_ACCESS_LOAD, Probe.L2TLB_ACCESS_STORE)
_LOADS = (Probe.LOAD, Probe.SOFTWARE_PREFETCH)

_RETIRED = [
    Event(0xC0, "ex_ret_instr", (Probe.INST_RETIRED,), note="REP string instructions retire once"),
    Event(0xC1, "ex_ret_ops", (Probe.UOPS_RETIRED,), _APPROXIMATE, OPS),
    Event(0xC2, "ex_ret_brn", (Probe.BR_RETIRED,), _APPROXIMATE, WITH_FAR),
    Event(0xC3, "ex_ret_brn_misp", (Probe.BR_MISPREDICTED,), _APPROXIMATE, PREDICTORS),
    Event(0xC4, "ex_ret_brn_tkn", (Probe.BR_TAKEN,), _APPROXIMATE, WITH_FAR),
    Event(0xC6, "ex_ret_brn_far", (Probe.EXC_SVC,), _APPROXIMATE,
          "SYSCALL only: interrupts, faults and returns from the kernel are not counted"),
    Event(0xC8, "ex_ret_near_ret", (Probe.BR_RETURN,)),
    Event(0xC9, "ex_ret_near_ret_mispred", (Probe.BR_RETURN_MISPREDICTED,), _APPROXIMATE, PREDICTORS),
    Event(0xCA, "ex_ret_brn_ind_misp", (Probe.BR_INDIRECT_MISPREDICTED,), _APPROXIMATE, PREDICTORS),
    Event(0xCC, "ex_ret_ind_brch_instr", (Probe.BR_INDIRECT,), _APPROXIMATE, "without returns"),
    Event(0xD1, "ex_ret_cond", (Probe.BR_COND,)),
    Event(0x1_0000_00C7, "ex_ret_msprd_brnch_instr_dir_msmtch", (Probe.BR_COND_MISPREDICTED,), _APPROXIMATE,
          PREDICTORS),
    Event(0x1_0000_00C9, "ex_ret_uncond_brnch_instr", (Probe.BR_RETIRED,), _APPROXIMATE, WITH_FAR,
          less=(Probe.BR_COND,)),
    Event(0x1_0000_00D0, "ex_ret_fused_instr", (Probe.FUSED,), _APPROXIMATE, "of the core's model"),
    Event(0xD3, "ex_div_busy", (Probe.DIVIDER_ACTIVE,), _APPROXIMATE, BY_MODEL),
    Event(0xD4, "ex_div_count", (Probe.DIV_OP,), _APPROXIMATE, "divisions of integers, one each"),
    Event(0x1BD6, "ex_no_retire.all", (Probe.CYCLES,), _APPROXIMATE, BY_MODEL, less=(Probe.CYCLES_RETIRING,)),
    Event(0x76, "ls_not_halted_cyc", (Probe.CYCLES,), note=OWN_CYCLES),
    Event(0x1_0000_0120, "ls_not_halted_p0_cyc.p0_freq_cyc", (Probe.CYCLES,), _APPROXIMATE,
          "the core's frequency is always that of P0, so the same as cycles"),
]  # fmt: skip

_LOAD_STORE = [
    Event(0x0129, "ls_dispatch.ld_dispatch", _LOADS, _APPROXIMATE, f"with software prefetches; {BOTH}"),
    Event(0x0229, "ls_dispatch.store_dispatch", (Probe.STORE,), _APPROXIMATE, BOTH),
    Event(0x0224, "ls_bad_status2.stli_other", (Probe.STORE_FORWARD_BLOCKED,), _APPROXIMATE, "of the core's model"),
    Event(0x35, "ls_stlf", (Probe.STORE_FORWARD,), _APPROXIMATE, "of the core's model"),
    Event(0x40, "ls_dc_accesses", _L1D_ACCESS, _APPROXIMATE, f"by cache line, of the core's model; {EARLIER}"),
    Event(0x0143, "ls_dmnd_fills_from_sys.local_l2", _L2_DATA, _APPROXIMATE, DEMAND, less=_L2_DATA_REFILL),
    Event(0x0243, "ls_dmnd_fills_from_sys.local_ccx", _LL_DATA, _APPROXIMATE, DEMAND, less=_LL_DATA_REFILL),
    Event(0x0843, "ls_dmnd_fills_from_sys.dram_io_near", _LL_DATA_REFILL, _APPROXIMATE, DEMAND),
    Event(0xFF43, "ls_dmnd_fills_from_sys.all", L1D_REFILL, _APPROXIMATE, DEMAND),
    Event(0xFF44, "ls_any_fills_from_sys.all", (*L1D_REFILL, Probe.L1D_PREFETCH), _APPROXIMATE, MODELLED),
    Event(0xDF5A, "ls_hw_pf_dc_fills.all", (Probe.L1D_PREFETCH,), _APPROXIMATE, MODELLED),
    Event(0xFF5A, "ls_hw_pf_dc_fills.ff", (Probe.L1D_PREFETCH,), _APPROXIMATE, OWN_MASK, listed=False),
    Event(0x0145, "ls_l1_d_tlb_miss.tlb_reload_4k_l2_hit", _L2TLB_DATA, _APPROXIMATE, OF_ANY_SIZE, less=_DTLB_WALK),
    Event(0x1045, "ls_l1_d_tlb_miss.tlb_reload_4k_l2_miss", _DTLB_WALK, _APPROXIMATE, OF_ANY_SIZE),
    Event(0xF045, "ls_l1_d_tlb_miss.all_l2_miss", _DTLB_WALK, _APPROXIMATE, MODELLED),
    Event(0xFF45, "ls_l1_d_tlb_miss.all", _DTLB_REFILL, _APPROXIMATE, MODELLED),
    Event(0x0147, "ls_misal_loads.ma64", (Probe.L1D_SPLIT_LOAD,)),
    Event(0x074B, "ls_pref_instr_disp.all", (Probe.SOFTWARE_PREFETCH,), _APPROXIMATE, "none on a wrong path"),
]  # fmt: skip

_L2 = [
    Event(0x0260, "l2_request_g1.l2_hw_pf", (Probe.L2_PREFETCH,), _APPROXIMATE, f"those that miss; {MODELLED}"),
    Event(0x1060, "l2_request_g1.cacheable_ic_read", (Probe.L2_ACCESS_FETCH,), _APPROXIMATE, DEMAND),
    Event(0x4060, "l2_request_g1.rd_blk_x", (Probe.L2_ACCESS_STORE,), _APPROXIMATE, DEMAND),
    Event(0x8060, "l2_request_g1.rd_blk_l", (Probe.L2_ACCESS_LOAD,), _APPROXIMATE, DEMAND),
    Event(0xC860, "l2_request_g1.c8", _L2_DATA, _APPROXIMATE, f"{OWN_MASK}; {DEMAND}", listed=False),
    Event(0x0164, "l2_cache_req_stat.ic_fill_miss", (Probe.L2_REFILL_FETCH,), _APPROXIMATE, DEMAND),
    Event(0x0664, "l2_cache_req_stat.ic_hit_in_l2", (Probe.L2_ACCESS_FETCH,), _APPROXIMATE, DEMAND,
          less=(Probe.L2_REFILL_FETCH,)),
    Event(0x0764, "l2_cache_req_stat.ic_access_in_l2", (Probe.L2_ACCESS_FETCH,), _APPROXIMATE, DEMAND),
    Event(0x0864, "l2_cache_req_stat.ls_rd_blk_c", _L2_DATA_REFILL, _APPROXIMATE, DEMAND),
    Event(0x0964, "l2_cache_req_stat.ic_dc_miss_in_l2", L2_REFILL, _APPROXIMATE, DEMAND),
    Event(0x1064, "l2_cache_req_stat.ls_rd_blk_x", (Probe.L2_ACCESS_STORE,), _APPROXIMATE, STATELESS,
          less=(Probe.L2_REFILL_STORE,)),
    Event(0xF064, "l2_cache_req_stat.dc_hit_in_l2", _L2_DATA, _APPROXIMATE, DEMAND, less=_L2_DATA_REFILL),
    Event(0xF664, "l2_cache_req_stat.ic_dc_hit_in_l2", _L2_ACCESS, _APPROXIMATE, DEMAND, less=L2_REFILL),
    Event(0xF864, "l2_cache_req_stat.dc_access_in_l2", _L2_DATA, _APPROXIMATE, DEMAND),
    Event(0xFF64, "l2_cache_req_stat.all", _L2_ACCESS, _APPROXIMATE, DEMAND),
]  # fmt: skip

_FETCH = [
    Event(0x80, "ic_fw32", (Probe.L1I_ACCESS,), _APPROXIMATE, f"by cache line, of the core's model; {EARLIER}"),
    Event(0x81, "ic_fw32_miss", (Probe.L1I_REFILL,), _APPROXIMATE, f"by cache line, of the core's model; {EARLIER}"),
    Event(0x82, "ic_cache_fill_l2", (Probe.L2_ACCESS_FETCH,), _APPROXIMATE, DEMAND, less=(Probe.L2_REFILL_FETCH,)),
    Event(0x83, "ic_cache_fill_sys", (Probe.L2_REFILL_FETCH,), _APPROXIMATE, DEMAND),
    Event(0x84, "bp_l1_tlb_miss_l2_tlb_hit", (Probe.L2TLB_ACCESS_FETCH,), _APPROXIMATE, MODELLED,
          less=(Probe.ITLB_WALK,)),
    Event(0x0185, "bp_l1_tlb_miss_l2_tlb_miss.if4k", (Probe.ITLB_WALK,), _APPROXIMATE, OF_ANY_SIZE),
    Event(0x0F85, "bp_l1_tlb_miss_l2_tlb_miss.all", (Probe.ITLB_WALK,), _APPROXIMATE, MODELLED),
    Event(0xFF85, "bp_l1_tlb_miss_l2_tlb_miss.ff", (Probe.ITLB_WALK,), _APPROXIMATE, OWN_MASK, listed=False),
    Event(0x91, "bp_de_redirect", (Probe.BTB_MISS,), _APPROXIMATE,
          "taken branches whose target was not known at fetch, without a mispredict"),
    Event(0x0194, "bp_l1_tlb_fetch_hit.if4k", (Probe.ITLB_ACCESS,), _APPROXIMATE, OF_ANY_SIZE,
          less=(Probe.ITLB_REFILL,)),
    Event(0x0794, "bp_l1_tlb_fetch_hit.all", (Probe.ITLB_ACCESS,), _APPROXIMATE, MODELLED, less=(Probe.ITLB_REFILL,)),
    Event(0x1_0000_078E, "ic_tag_hit_miss.instruction_cache_hit", (Probe.L1I_ACCESS,), _APPROXIMATE, MODELLED,
          less=(Probe.L1I_REFILL,)),
    Event(0x1_0000_188E, "ic_tag_hit_miss.instruction_cache_miss", (Probe.L1I_REFILL,), _APPROXIMATE, MODELLED),
    Event(0x1_0000_1F8E, "ic_tag_hit_miss.all_instruction_cache_accesses", (Probe.L1I_ACCESS,), _APPROXIMATE, MODELLED),
]  # fmt: skip

_PIPELINE = [
    Event(0xA9, "de_op_queue_empty", (Probe.STALL_FRONTEND,), _APPROXIMATE, BY_MODEL),
    Event(0x07AA, "de_src_op_disp.all", (Probe.UOPS_DISPATCHED,), _APPROXIMATE, OPS),
    Event(0x1_0000_01A0, "de_no_dispatch_per_slot.no_ops_from_frontend", (Probe.SLOTS_FRONTEND,), _APPROXIMATE, UNFED),
    Event(0x1_0000_1EA0, "de_no_dispatch_per_slot.backend_stalls", (Probe.SLOTS_BACKEND,), _APPROXIMATE, BY_MODEL),
]  # fmt: skip

OWN = [  # what top-down analysis asks for, beyond what AMD's PMU has
    Event(0xF_0000_01D0, "slots", SLOTS, _APPROXIMATE, OWN_SLOTS),
    Event(0xF_0000_02D0, "slots_bad_speculation", (Probe.SLOTS_BAD_SPECULATION,), _APPROXIMATE, OWN_SLOTS),
    Event(0xF_0000_04D0, "slots_fetch_latency", (Probe.SLOTS_FRONTEND_LATENCY,), _APPROXIMATE, OWN_SLOTS),
    Event(0xF_0000_08D0, "slots_memory_bound", (Probe.SLOTS_BACKEND_MEMORY,), _APPROXIMATE, OWN_SLOTS),
]  # fmt: skip
TOP_DOWN_ALIASES = {  # Linux's names for the events of Intel's PMU that count the same
    "slots": "slots",
    "topdown-retiring": "ex_ret_ops",
    "topdown-bad-spec": "slots_bad_speculation",
    "topdown-fe-bound": "de_no_dispatch_per_slot.no_ops_from_frontend",
    "topdown-be-bound": "de_no_dispatch_per_slot.backend_stalls",
    "topdown-br-mispredict": "slots_bad_speculation",
    "topdown-fetch-lat": "slots_fetch_latency",
    "topdown-mem-bound": "slots_memory_bound",
}

_COMMON = [*_RETIRED, *_LOAD_STORE, *_L2, *_FETCH, *_PIPELINE, *OWN]


def _stalls(first: str, second: str, rob: str) -> list[Event]:
    """Cycles without dispatch, by what they waited for: AMD renamed them."""
    return [
        Event(0x02AE, f"{first}.load_queue_rsrc_stall", (Probe.STALL_LOAD_QUEUE,), _APPROXIMATE, BY_MODEL),
        Event(0x04AE, f"{first}.store_queue_rsrc_stall", (Probe.STALL_STORE_BUFFER,), _APPROXIMATE, BY_MODEL),
        Event(0x20AF, f"{second}.{rob}", (Probe.STALL_ROB,), _APPROXIMATE, BY_MODEL),
    ]


def _all_l2_requests(data: int, demand: int, every: int) -> list[Event]:
    """By the unit masks of sums, which are not those of every part."""
    return [
        Event(data << 8 | 0x60, "l2_request_g1.all_dc", _L2_DATA, _APPROXIMATE, DEMAND),
        Event(demand << 8 | 0x60, "l2_request_g1.all_no_prefetch", _L2_ACCESS, _APPROXIMATE, DEMAND),
        Event(every << 8 | 0x60, "l2_request_g1.all", (*_L2_ACCESS, Probe.L2_PREFETCH), _APPROXIMATE, MODELLED),
    ]


def _miss_buffers(demand: int, prefetch: int) -> list[Event]:
    """By the unit masks of one part."""
    name, every = "ls_mab_alloc", demand | prefetch
    fills = (*L1D_REFILL, Probe.L1D_PREFETCH)
    return [
        Event(demand << 8 | 0x41, f"{name}.load_store_allocations", L1D_REFILL, _APPROXIMATE, MODELLED),
        Event(prefetch << 8 | 0x41, f"{name}.hardware_prefetcher_allocations", (Probe.L1D_PREFETCH,), _APPROXIMATE,
              MODELLED),
        Event(every << 8 | 0x41, f"{name}.all_allocations", fills, _APPROXIMATE, MODELLED),
    ]  # fmt: skip


def _every_access(name: str) -> Event:
    note = f"{BY_ITERATION}; a read-modify-write counts twice"
    return Event(0x0729, name, (*_LOADS, Probe.STORE), _APPROXIMATE, note)


def by_code(rows: list[Event]) -> list[Event]:
    """By event and unit mask."""
    return sorted(rows, key=lambda row: (row.code >> 32, row.code & 0xFF, row.code))


ZEN4 = by_code([
    *_COMMON,
    *_stalls("de_dis_dispatch_token_stalls1", "de_dis_dispatch_token_stalls2", "retire_token_stall"),
    *_all_l2_requests(0xE8, 0xF9, 0xFF),
    *_miss_buffers(0x3F, 0x40),
    _every_access("all_data_cache_accesses"),
])  # fmt: skip
_DYNAMIC = "de_dispatch_stall_cycle_dynamic_tokens_part"
ZEN5 = by_code([
    *_COMMON,
    *_stalls(f"{_DYNAMIC}1", f"{_DYNAMIC}2", "retq"),
    *_all_l2_requests(0xE0, 0xF1, 0xF7),
    *_miss_buffers(0x07, 0x08),
    _every_access("ls_dispatch.all"),
    Event(0xFF60, "l2_request_g1.ff", (*_L2_ACCESS, Probe.L2_PREFETCH), _APPROXIMATE, OWN_MASK, listed=False),
    Event(0x029F, "bp_redirects.ex_redir", (Probe.BR_MISPREDICTED,), _APPROXIMATE, PREDICTORS),
    Event(0x01CB, "ex_ret_mmx_fp_instr.x87", (Probe.FP_OP,), _APPROXIMATE, "those that compute"),
    Event(0x1_0000_0265, "l2_fill_rsp_src.local_ccx", _LL_ACCESS, _APPROXIMATE, DEMAND, less=_LL_REFILL),
    Event(0x1_0000_0865, "l2_fill_rsp_src.dram_io_near", _LL_REFILL, _APPROXIMATE, DEMAND),
    Event(0x1_0000_DE65, "l2_fill_rsp_src.all", (*L2_REFILL, Probe.L2_PREFETCH), _APPROXIMATE, MODELLED),
])  # fmt: skip
