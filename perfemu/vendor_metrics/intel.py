"""Intel's: top-down microarchitecture analysis (TMA), and ratios beside it, by the names of Intel's perfmon metrics.

Level 1 and 2 are shares of the slots, from the top-down events, which these models have; where Intel's own formula for
the part has other events, as for Skylake's front end and retirement, it is that.
"""

from __future__ import annotations

from perfemu.vendor_metrics.metric import VendorMetric

_L1, _L2 = "TopdownL1", "TopdownL2"


def _share(name: str, formula: str, level: str, text: str, *, beyond: str = "") -> VendorMetric:
    """Of all slots; `beyond`: the share that it is a part of."""
    groups = (level, f"tma_{level.removeprefix('Topdown')}_group", *([f"{beyond}_group"] if beyond else []))
    return VendorMetric(name, formula, groups, text, "100%")


COMMON = (
    VendorMetric("tma_info_thread_clks", "CPU_CLK_UNHALTED.THREAD", ("Pipeline",), "cycles"),
    VendorMetric("tma_info_thread_ipc", "INST_RETIRED.ANY / tma_info_thread_clks", ("Ret", "Summary"),
                 "instructions in a cycle"),
    VendorMetric("tma_info_thread_cpi", "1 / tma_info_thread_ipc", ("Mem", "Pipeline"), "cycles of an instruction"),
    VendorMetric("tma_info_bad_spec_ipmispredict", "INST_RETIRED.ANY / BR_MISP_RETIRED.ALL_BRANCHES",
                 ("Bad", "BadSpec", "BrMispredicts"), "instructions to a mispredicted branch"),
    VendorMetric("tma_info_inst_mix_ipbranch", "INST_RETIRED.ANY / BR_INST_RETIRED.ALL_BRANCHES",
                 ("Branches", "Fed", "InsType"), "instructions to a branch"),
    VendorMetric("tma_info_inst_mix_iptb", "INST_RETIRED.ANY / BR_INST_RETIRED.NEAR_TAKEN",
                 ("Branches", "Fed", "FetchBW", "Frontend", "PGO"), "instructions to a taken branch"),
    VendorMetric("tma_info_inst_mix_ipcall", "INST_RETIRED.ANY / BR_INST_RETIRED.NEAR_CALL",
                 ("Branches", "Fed", "PGO"), "instructions to a call"),
    VendorMetric("tma_info_memory_l1mpki", "1e3 * MEM_LOAD_RETIRED.L1_MISS / INST_RETIRED.ANY",
                 ("CacheHits", "Mem"), "loads that L1D has not, per 1,000 instructions"),
    VendorMetric("tma_info_memory_l2mpki", "1e3 * MEM_LOAD_RETIRED.L2_MISS / INST_RETIRED.ANY",
                 ("Backend", "CacheHits", "Mem"), "loads that L2 has not, per 1,000 instructions"),
    VendorMetric("tma_info_memory_l3mpki", "1e3 * MEM_LOAD_RETIRED.L3_MISS / INST_RETIRED.ANY",
                 ("Mem",), "loads that L3 has not, per 1,000 instructions"),
)  # fmt: skip
_LEVEL_2 = (
    _share("tma_branch_mispredicts", r"topdown\-br\-mispredict / slots", _L2, "of operations behind wrong branches",
           beyond="tma_bad_speculation"),
    _share("tma_machine_clears", "tma_bad_speculation - tma_branch_mispredicts", _L2, "of the rest of bad speculation",
           beyond="tma_bad_speculation"),
    _share("tma_fetch_latency", r"topdown\-fetch\-lat / slots", _L2, "of cycles in which fetch gave nothing",
           beyond="tma_frontend_bound"),
    _share("tma_fetch_bandwidth", "tma_frontend_bound - tma_fetch_latency", _L2, "of the rest of the front end",
           beyond="tma_frontend_bound"),
    _share("tma_memory_bound", r"topdown\-mem\-bound / slots", _L2, "of loads and stores that were waited for",
           beyond="tma_backend_bound"),
    _share("tma_core_bound", "tma_backend_bound - tma_memory_bound", _L2, "of the rest of the back end",
           beyond="tma_backend_bound"),
)  # fmt: skip
BY_TOP_DOWN_EVENTS = (
    VendorMetric("tma_info_thread_slots", "slots", ("TmaL1", "tma_L1_group"), "slots"),
    _share("tma_frontend_bound", r"topdown\-fe\-bound / slots", _L1, "slots that got nothing to dispatch"),
    _share("tma_backend_bound", r"topdown\-be\-bound / slots", _L1, "slots for which there was no room"),
    _share("tma_bad_speculation", r"topdown\-bad\-spec / slots", _L1, "slots of what did not retire"),
    _share("tma_retiring", r"topdown\-retiring / slots", _L1, "slots of what retired"),
    *_LEVEL_2,
)
BY_SKYLAKES_EVENTS = (
    VendorMetric("tma_info_thread_slots", "4 * tma_info_thread_clks", ("TmaL1", "tma_L1_group"), "slots"),
    _share("tma_frontend_bound", "IDQ_UOPS_NOT_DELIVERED.CORE / tma_info_thread_slots", _L1,
           "slots that got nothing to dispatch"),
    _share("tma_backend_bound", r"topdown\-be\-bound / slots", _L1, "slots for which there was no room"),
    _share("tma_bad_speculation", r"topdown\-bad\-spec / slots", _L1, "slots of what did not retire"),
    _share("tma_retiring", "UOPS_RETIRED.RETIRE_SLOTS / tma_info_thread_slots", _L1, "slots of what retired"),
    *_LEVEL_2,
    VendorMetric("tma_info_thread_uoppi", "UOPS_RETIRED.RETIRE_SLOTS / INST_RETIRED.ANY", ("Pipeline", "Ret", "Retire"),
                 "micro-operations of an instruction"),
    VendorMetric("tma_divider", "ARITH.DIVIDER_ACTIVE / tma_info_thread_clks", ("tma_core_bound_group",),
                 "cycles in which the divider was busy", "100%"),
)  # fmt: skip
