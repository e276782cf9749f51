"""AMD's: pipeline utilisation of Zen 4 and 5 (Processor Programming Reference, "Pipeline Utilization"), and the ratios
of caches, branches and TLBs beside it, by the names that perf has for them.
"""

from __future__ import annotations

from perfemu.vendor_metrics.metric import VendorMetric

_IN_ALL = "total_dispatch_slots"
_PER_1000 = "per 1,000 instructions"


def _pipeline(slots: int, names: tuple[str, ...], unit: str) -> tuple[VendorMetric, ...]:
    """Of a core that dispatches `slots` in a cycle; `names` of level 2: latency, bandwidth, mispredicts, restarts,
    memory, CPU, fastpath, microcode.

    AMD's formulae for bad speculation and for level 2 need operations that were dispatched in vain, single cycles and
    restarts, which nobody here counts; the model's top-down events know the same of each slot.
    """

    def level_1(name: str, formula: str, text: str, of: str = unit) -> VendorMetric:
        return VendorMetric(name, f"d_ratio({formula}, {_IN_ALL})", ("PipelineL1",), text, f"100%{of}")

    def level_2(number: int, whole: str, formula: str, text: str, of: str = unit) -> VendorMetric:
        return VendorMetric(names[number], formula, ("PipelineL2", f"{whole}_group"), text, f"100%{of}")

    ops = "ops" if unit else ""
    in_all = "1slots" if unit else ""
    return (
        VendorMetric(_IN_ALL, f"{slots} * ls_not_halted_cyc", (_IN_ALL,), "slots for dispatch", in_all),
        level_1("frontend_bound", "de_no_dispatch_per_slot.no_ops_from_frontend",
                "slots for which the front end had nothing"),
        level_1("bad_speculation", _event("bad-spec"), "of operations that did not retire", ops),
        level_1("backend_bound", "de_no_dispatch_per_slot.backend_stalls", "slots for which there was no room"),
        level_1("smt_contention", "de_no_dispatch_per_slot.smt_contention", "slots that the other thread had"),
        level_1("retiring", "ex_ret_ops", "of operations that retired"),
        level_2(0, "frontend_bound", _share("fetch-lat"), "of cycles in which it had nothing at all"),
        level_2(1, "frontend_bound", f"frontend_bound - {_share('fetch-lat')}", "of cycles in which it had too little"),
        level_2(2, "bad_speculation", _share("br-mispredict"), "behind mispredicted branches", ops),
        level_2(3, "bad_speculation", f"bad_speculation - {_share('br-mispredict')}", "of other restarts", ops),
        level_2(4, "backend_bound", _share("mem-bound"), "while memory was waited for"),
        level_2(5, "backend_bound", f"backend_bound - {_share('mem-bound')}", "of other stalls"),
        level_2(6, "retiring", "retiring * (1 - d_ratio(ex_ret_ucode_ops, ex_ret_ops))", "of fastpath operations"),
        level_2(7, "retiring", "retiring * d_ratio(ex_ret_ucode_ops, ex_ret_ops)", "of microcode's"),
    )  # fmt: skip


def _share(event: str) -> str:
    return f"d_ratio({_event(event)}, {_IN_ALL})"


def _event(name: str) -> str:
    return f"topdown-{name}".replace("-", r"\-")


def _memory(suffix: str) -> tuple[VendorMetric, ...]:
    """Zen 5's are of instructions (``_pti``), Zen 4's are counts."""

    def row(name: str, formula: str, group: str, text: str) -> VendorMetric:
        if not suffix:
            return VendorMetric(name, formula, (group,), text)
        formula = f"({formula})" if "+" in formula else formula
        return VendorMetric(
            name + suffix, f"{formula} / instructions", (group,), f"{text} {_PER_1000}", "1e3per_1k_instr"
        )

    prefetched = "l2_hwpf" if suffix else "all"
    hits, l3, beyond = (f"l2_pf_{what}.{prefetched}" for what in ("hit_l2", "miss_l2_hit_l3", "miss_l2_l3"))
    fills = {
        "local_l2": "local_l2", "same_ccx": "local_ccx", "near_cache": "near_cache", "far_cache": "far_cache",
        "near_memory": "dram_io_near", "far_memory": "dram_io_far",
    }  # fmt: skip
    return (
        row("all_l1_data_cache_fills", "ls_any_fills_from_sys.all", "l1_dcache", "lines that L1D got"),
        *(
            row(f"l1_demand_data_cache_fills_from_{place}", f"ls_dmnd_fills_from_sys.{event}", "l1_dcache",
                f"lines that L1D asked for and got from {place.replace('_', ' ')}")
            for place, event in fills.items()
        ),
        row("all_l2_cache_accesses", f"l2_request_g1.all_no_prefetch + {hits} + {l3} + {beyond}", "l2_cache",
            "requests to L2, prefetchers' too"),
        row("all_l2_cache_hits", f"l2_cache_req_stat.ic_dc_hit_in_l2 + {hits}", "l2_cache", "requests that L2 has"),
        row("all_l2_cache_misses", f"l2_cache_req_stat.ic_dc_miss_in_l2 + {l3} + {beyond}", "l2_cache",
            "requests that L2 has not"),
        row("l2_cache_accesses_from_l1_dc_misses", "l2_request_g1.all_dc", "l2_cache", "requests of L1D to L2"),
        row("l2_cache_accesses_from_l1_ic_misses", "l2_request_g1.cacheable_ic_read", "l2_cache",
            "requests of L1I to L2"),
        row("l2_cache_hits_from_l1_dc_miss", "l2_cache_req_stat.dc_hit_in_l2", "l2_cache", "of L1D, that L2 has"),
        row("l2_cache_hits_from_l1_ic_miss", "l2_cache_req_stat.ic_hit_in_l2", "l2_cache", "of L1I, that L2 has"),
        row("l2_cache_misses_from_l1_dc_miss", "l2_cache_req_stat.ls_rd_blk_c", "l2_cache", "of L1D, that L2 has not"),
        row("l2_cache_misses_from_l1_ic_miss", "l2_cache_req_stat.ic_fill_miss", "l2_cache",
            "of L1I, that L2 has not"),
        row("l1_itlb_misses", "bp_l1_tlb_miss_l2_tlb_hit + bp_l1_tlb_miss_l2_tlb_miss.all", "tlb", "L1 ITLB misses"),
        row("l2_itlb_misses", "bp_l1_tlb_miss_l2_tlb_miss.all", "tlb", "L2 ITLB misses"),
        row("l1_dtlb_misses", "ls_l1_d_tlb_miss.all", "tlb", "L1 DTLB misses"),
        row("l2_dtlb_misses", "ls_l1_d_tlb_miss.all_l2_miss", "tlb", "L2 DTLB misses"),
    )  # fmt: skip


_MEMORY = ("memory_controller",)
_COMMON = (
    VendorMetric("macro_ops_dispatched", "de_src_op_disp.all", ("decoder",), "macro-operations dispatched"),
    VendorMetric("macro_ops_retired", "ex_ret_ops", ("macro_ops_retired",), "macro-operations retired"),
    VendorMetric("ic_fetch_miss_ratio", "d_ratio(ic_tag_hit_miss.instruction_cache_miss, "
                 "ic_tag_hit_miss.all_instruction_cache_accesses)", ("ic_fetch_miss_ratio",),
                 "fetches that L1I has not", "100%"),
    VendorMetric("l3_cache_accesses", "l3_lookup_state.all_coherent_accesses_to_l3", ("l3_cache",),
                 "requests to the L3, of all cores"),
    VendorMetric("l3_misses", "l3_lookup_state.l3_miss", ("l3_cache",), "requests that the L3 has not"),
    VendorMetric("umc_cas_cmd_read_ratio", "d_ratio(umc_cas_cmd.rd, umc_cas_cmd.all)", _MEMORY,
                 "reads among the lines that memory is asked for", "100%"),
    VendorMetric("umc_cas_cmd_write_ratio", "d_ratio(umc_cas_cmd.wr, umc_cas_cmd.all)", _MEMORY,
                 "writes among them", "100%"),
    *(
        VendorMetric(
            f"umc_mem_{name}bandwidth", f"umc_cas_cmd.{kind} * 64 / 1e6 / duration_time", _MEMORY, text, "1MB/s"
        )
        for name, kind, text in (
            ("", "all", "memory's traffic"),
            ("read_", "rd", "what is read of memory"),
            ("write_", "wr", "what is written to it"),
        )
    ),
)  # fmt: skip
ZEN4 = (
    *_pipeline(6, (
        "frontend_bound_latency", "frontend_bound_bandwidth", "bad_speculation_mispredicts",
        "bad_speculation_pipeline_restarts", "backend_bound_memory", "backend_bound_cpu", "retiring_fastpath",
        "retiring_microcode",
    ), ""),
    VendorMetric("branch_misprediction_ratio", "d_ratio(ex_ret_brn_misp, ex_ret_brn)", ("branch_prediction",),
                 "branches whose prediction was wrong", "100%"),
    *_COMMON,
    *_memory(""),
)  # fmt: skip
ZEN5 = (
    *_pipeline(8, (
        "frontend_bound_by_latency", "frontend_bound_by_bandwidth", "bad_speculation_from_mispredicts",
        "bad_speculation_from_pipeline_restarts", "backend_bound_by_memory", "backend_bound_by_cpu",
        "retiring_from_fastpath", "retiring_from_microcode",
    ), "slots"),
    VendorMetric("branch_misprediction_rate", "d_ratio(ex_ret_brn_misp, ex_ret_brn)", ("branch_prediction",),
                 "branches whose prediction was wrong", "1per_branch"),
    *_COMMON,
    VendorMetric("all_data_cache_accesses_pti", "ls_dispatch.all / instructions", ("l1_dcache",),
                 f"accesses of L1D {_PER_1000}", "1e3per_1k_instr"),
    *_memory("_pti"),
)  # fmt: skip
