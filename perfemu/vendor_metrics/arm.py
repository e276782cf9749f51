"""Arm's: the telemetry specification of Neoverse N1 (Arm 107668), whose events other cores have, too, and top-down
analysis by slots (Arm DDI 0487, "Top-down accounting"). Arm's formulae for what retires and what does not need
operations that were executed in vain, which nobody here counts: here they are of the model's top-down events.
"""

from __future__ import annotations

from perfemu.vendor_metrics.metric import VendorMetric

_PER_1000 = "per 1,000 instructions"


def _ratio(name: str, part: str, whole: str, unit: str, group: str, text: str) -> VendorMetric:
    return VendorMetric(name, f"{part} / {whole}", ("Miss_Ratio", group), text, f"1per {unit}")


def _mpki(name: str, event: str, group: str, text: str) -> VendorMetric:
    return VendorMetric(name, f"{event} / INST_RETIRED * 1e3", ("MPKI", group), f"{text} {_PER_1000}", "1MPKI")


def _mix(name: str, event: str, text: str) -> VendorMetric:
    formula = f"{event} / INST_SPEC * 100"
    return VendorMetric(name, formula, ("Operation_Mix",), f"operations that are {text}", "1percent of operations")


def _of_slots(name: str, formula: str, text: str) -> VendorMetric:
    return VendorMetric(name, formula, ("TopdownL1",), text, "100percent of slots")


ARM = (
    VendorMetric("ipc", "INST_RETIRED / CPU_CYCLES", ("General",), "instructions in a cycle", "1per cycle"),
    VendorMetric("frontend_stalled_cycles", "STALL_FRONTEND / CPU_CYCLES * 100", ("Cycle_Accounting",),
                 "cycles without dispatch for want of instructions", "1percent of cycles"),
    VendorMetric("backend_stalled_cycles", "STALL_BACKEND / CPU_CYCLES * 100", ("Cycle_Accounting",),
                 "cycles without dispatch for want of room", "1percent of cycles"),
    _ratio("branch_misprediction_ratio", "BR_MIS_PRED_RETIRED", "BR_RETIRED", "branch", "Branch_Effectiveness",
           "branches whose prediction was wrong"),
    _mpki("branch_mpki", "BR_MIS_PRED_RETIRED", "Branch_Effectiveness", "mispredicted branches"),
    _ratio("itlb_walk_ratio", "ITLB_WALK", "L1I_TLB", "TLB access", "ITLB_Effectiveness", "walks for instructions"),
    _mpki("itlb_mpki", "ITLB_WALK", "ITLB_Effectiveness", "walks for instructions"),
    _ratio("l1i_tlb_miss_ratio", "L1I_TLB_REFILL", "L1I_TLB", "TLB access", "ITLB_Effectiveness", "L1I TLB misses"),
    _mpki("l1i_tlb_mpki", "L1I_TLB_REFILL", "ITLB_Effectiveness", "L1I TLB misses"),
    _ratio("dtlb_walk_ratio", "DTLB_WALK", "L1D_TLB", "TLB access", "DTLB_Effectiveness", "walks for data"),
    _mpki("dtlb_mpki", "DTLB_WALK", "DTLB_Effectiveness", "walks for data"),
    _ratio("l1d_tlb_miss_ratio", "L1D_TLB_REFILL", "L1D_TLB", "TLB access", "DTLB_Effectiveness", "L1D TLB misses"),
    _mpki("l1d_tlb_mpki", "L1D_TLB_REFILL", "DTLB_Effectiveness", "L1D TLB misses"),
    VendorMetric("l2_tlb_miss_ratio", "L2D_TLB_REFILL / L2D_TLB",
                 ("Miss_Ratio", "DTLB_Effectiveness", "ITLB_Effectiveness"), "L2 TLB misses", "1per TLB access"),
    VendorMetric("l2_tlb_mpki", "L2D_TLB_REFILL / INST_RETIRED * 1e3",
                 ("MPKI", "DTLB_Effectiveness", "ITLB_Effectiveness"), f"L2 TLB misses {_PER_1000}", "1MPKI"),
    _ratio("l1i_cache_miss_ratio", "L1I_CACHE_REFILL", "L1I_CACHE", "cache access", "L1I_Cache_Effectiveness",
           "L1I misses"),
    _mpki("l1i_cache_mpki", "L1I_CACHE_REFILL", "L1I_Cache_Effectiveness", "L1I misses"),
    _ratio("l1d_cache_miss_ratio", "L1D_CACHE_REFILL", "L1D_CACHE", "cache access", "L1D_Cache_Effectiveness",
           "L1D misses"),
    _mpki("l1d_cache_mpki", "L1D_CACHE_REFILL", "L1D_Cache_Effectiveness", "L1D misses"),
    _ratio("l2_cache_miss_ratio", "L2D_CACHE_REFILL", "L2D_CACHE", "cache access", "L2_Cache_Effectiveness",
           "L2 misses"),
    _mpki("l2_cache_mpki", "L2D_CACHE_REFILL", "L2_Cache_Effectiveness", "L2 misses"),
    VendorMetric("ll_cache_read_hit_ratio", "(LL_CACHE_RD - LL_CACHE_MISS_RD) / LL_CACHE_RD",
                 ("LL_Cache_Effectiveness",), "reads that the last level has", "1per cache access"),
    _ratio("ll_cache_read_miss_ratio", "LL_CACHE_MISS_RD", "LL_CACHE_RD", "cache access", "LL_Cache_Effectiveness",
           "reads that the last level has not"),
    _mpki("ll_cache_read_mpki", "LL_CACHE_MISS_RD", "LL_Cache_Effectiveness", "reads that the last level has not"),
    _mix("branch_percentage", "(BR_IMMED_SPEC + BR_INDIRECT_SPEC)", "branches"),
    _mix("crypto_percentage", "CRYPTO_SPEC", "cryptographic"),
    _mix("integer_dp_percentage", "DP_SPEC", "integer data processing"),
    _mix("load_percentage", "LD_SPEC", "loads"),
    _mix("scalar_fp_percentage", "VFP_SPEC", "scalar floating point"),
    _mix("simd_percentage", "ASE_SPEC", "Advanced SIMD"),
    _mix("store_percentage", "ST_SPEC", "stores"),
)  # fmt: skip
SLOTS = (  # where PMMIR_EL1 says how many there are
    _of_slots("frontend_bound", "STALL_SLOT_FRONTEND / (#slots * CPU_CYCLES)", "slots that got nothing to dispatch"),
    _of_slots("backend_bound", "STALL_SLOT_BACKEND / (#slots * CPU_CYCLES)", "slots for which there was no room"),
    _of_slots("bad_speculation", r"topdown\-bad\-spec / (#slots * CPU_CYCLES)",
              "slots of operations that did not retire"),
    _of_slots("retiring", r"topdown\-retiring / (#slots * CPU_CYCLES)",
              "slots of operations that retired"),
)  # fmt: skip
