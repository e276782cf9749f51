"""What AMD lists of its core events besides our rows, by code as in PERF_CTLx.

A guest that asks for one of these is told that there is no such event, where hardware would count it: 0 would be false.
Codes and names: those of families 19h (Zen 4) and 1Ah, as perf lists them.
"""

from __future__ import annotations


def _table(codes_and_names: str) -> dict[int, str]:
    return {int(code, 16): name for code, name in map(str.split, codes_and_names.split(";")[:-1])}


_COMMON = _table("""
    0102 fp_ret_x87_fp_ops.add_sub_ops; 0202 fp_ret_x87_fp_ops.mul_ops; 0402 fp_ret_x87_fp_ops.div_sqrt_ops;
    0702 fp_ret_x87_fp_ops.all; 0103 fp_ret_sse_avx_ops.add_sub_flops; 0203 fp_ret_sse_avx_ops.mult_flops;
    0403 fp_ret_sse_avx_ops.div_flops; 0803 fp_ret_sse_avx_ops.mac_flops; 0108 fp_ops_retired_by_width.x87_uops_retired;
    0208 fp_ops_retired_by_width.mmx_uops_retired; 0408 fp_ops_retired_by_width.scalar_uops_retired;
    0808 fp_ops_retired_by_width.pack_128_uops_retired; 1008 fp_ops_retired_by_width.pack_256_uops_retired;
    2008 fp_ops_retired_by_width.pack_512_uops_retired; 3f08 fp_ops_retired_by_width.all;
    010a fp_ops_retired_by_type.scalar_add; 020a fp_ops_retired_by_type.scalar_sub;
    030a fp_ops_retired_by_type.scalar_mul; 040a fp_ops_retired_by_type.scalar_mac;
    050a fp_ops_retired_by_type.scalar_div; 060a fp_ops_retired_by_type.scalar_sqrt;
    070a fp_ops_retired_by_type.scalar_cmp; 080a fp_ops_retired_by_type.scalar_cvt;
    090a fp_ops_retired_by_type.scalar_blend; 0e0a fp_ops_retired_by_type.scalar_other;
    0f0a fp_ops_retired_by_type.scalar_all; 100a fp_ops_retired_by_type.vector_add;
    200a fp_ops_retired_by_type.vector_sub; 300a fp_ops_retired_by_type.vector_mul;
    400a fp_ops_retired_by_type.vector_mac; 500a fp_ops_retired_by_type.vector_div;
    600a fp_ops_retired_by_type.vector_sqrt; 700a fp_ops_retired_by_type.vector_cmp;
    800a fp_ops_retired_by_type.vector_cvt; 900a fp_ops_retired_by_type.vector_blend;
    b00a fp_ops_retired_by_type.vector_shuffle; d00a fp_ops_retired_by_type.vector_logical;
    e00a fp_ops_retired_by_type.vector_other; f00a fp_ops_retired_by_type.vector_all; ff0a fp_ops_retired_by_type.all;
    010b sse_avx_ops_retired.mmx_add; 020b sse_avx_ops_retired.mmx_sub; 030b sse_avx_ops_retired.mmx_mul;
    040b sse_avx_ops_retired.mmx_mac; 070b sse_avx_ops_retired.mmx_cmp; 090b sse_avx_ops_retired.mmx_shift;
    0a0b sse_avx_ops_retired.mmx_mov; 0b0b sse_avx_ops_retired.mmx_shuffle; 0c0b sse_avx_ops_retired.mmx_pack;
    0d0b sse_avx_ops_retired.mmx_logical; 0e0b sse_avx_ops_retired.mmx_other; 0f0b sse_avx_ops_retired.mmx_all;
    100b sse_avx_ops_retired.sse_avx_add; 200b sse_avx_ops_retired.sse_avx_sub; 300b sse_avx_ops_retired.sse_avx_mul;
    400b sse_avx_ops_retired.sse_avx_mac; 500b sse_avx_ops_retired.sse_avx_aes; 600b sse_avx_ops_retired.sse_avx_sha;
    700b sse_avx_ops_retired.sse_avx_cmp; 800b sse_avx_ops_retired.sse_avx_clm; 900b sse_avx_ops_retired.sse_avx_shift;
    a00b sse_avx_ops_retired.sse_avx_mov; b00b sse_avx_ops_retired.sse_avx_shuffle;
    c00b sse_avx_ops_retired.sse_avx_pack; d00b sse_avx_ops_retired.sse_avx_logical;
    e00b sse_avx_ops_retired.sse_avx_other; f00b sse_avx_ops_retired.sse_avx_all; ff0b sse_avx_ops_retired.all;
    010c fp_pack_ops_retired.fp128_add; 020c fp_pack_ops_retired.fp128_sub; 030c fp_pack_ops_retired.fp128_mul;
    040c fp_pack_ops_retired.fp128_mac; 050c fp_pack_ops_retired.fp128_div; 060c fp_pack_ops_retired.fp128_sqrt;
    070c fp_pack_ops_retired.fp128_cmp; 080c fp_pack_ops_retired.fp128_cvt; 090c fp_pack_ops_retired.fp128_blend;
    0b0c fp_pack_ops_retired.fp128_shuffle; 0d0c fp_pack_ops_retired.fp128_logical;
    0e0c fp_pack_ops_retired.fp128_other; 0f0c fp_pack_ops_retired.fp128_all; 100c fp_pack_ops_retired.fp256_add;
    200c fp_pack_ops_retired.fp256_sub; 300c fp_pack_ops_retired.fp256_mul; 400c fp_pack_ops_retired.fp256_mac;
    500c fp_pack_ops_retired.fp256_div; 600c fp_pack_ops_retired.fp256_sqrt; 700c fp_pack_ops_retired.fp256_cmp;
    800c fp_pack_ops_retired.fp256_cvt; 900c fp_pack_ops_retired.fp256_blend; b00c fp_pack_ops_retired.fp256_shuffle;
    d00c fp_pack_ops_retired.fp256_logical; e00c fp_pack_ops_retired.fp256_other; f00c fp_pack_ops_retired.fp256_all;
    ff0c fp_pack_ops_retired.all; 010d packed_int_op_type.int128_add; 020d packed_int_op_type.int128_sub;
    030d packed_int_op_type.int128_mul; 040d packed_int_op_type.int128_mac; 050d packed_int_op_type.int128_aes;
    060d packed_int_op_type.int128_sha; 070d packed_int_op_type.int128_cmp; 080d packed_int_op_type.int128_clm;
    090d packed_int_op_type.int128_shift; 0a0d packed_int_op_type.int128_mov; 0b0d packed_int_op_type.int128_shuffle;
    0c0d packed_int_op_type.int128_pack; 0d0d packed_int_op_type.int128_logical; 0e0d packed_int_op_type.int128_other;
    0f0d packed_int_op_type.int128_all; 100d packed_int_op_type.int256_add; 200d packed_int_op_type.int256_sub;
    300d packed_int_op_type.int256_mul; 400d packed_int_op_type.int256_mac; 700d packed_int_op_type.int256_cmp;
    900d packed_int_op_type.int256_shift; a00d packed_int_op_type.int256_mov; b00d packed_int_op_type.int256_shuffle;
    c00d packed_int_op_type.int256_pack; d00d packed_int_op_type.int256_logical; e00d packed_int_op_type.int256_other;
    f00d packed_int_op_type.int256_all; ff0d packed_int_op_type.all; 010e fp_disp_faults.x87_fill_fault;
    020e fp_disp_faults.xmm_fill_fault; 040e fp_disp_faults.ymm_fill_fault; 080e fp_disp_faults.ymm_spill_fault;
    0e0e fp_disp_faults.sse_avx_all; 0f0e fp_disp_faults.all; 0125 ls_locks.bus_lock; 0026 ls_ret_cl_flush;
    0027 ls_ret_cpuid; 0429 ls_dispatch.ld_st_dispatch; 002b ls_smi_rx; 002c ls_int_taken;
    0137 ls_st_commit_cancel2.st_commit_cancel_wcb_full; 0443 ls_dmnd_fills_from_sys.near_cache;
    1043 ls_dmnd_fills_from_sys.far_cache; 4043 ls_dmnd_fills_from_sys.dram_io_far;
    8043 ls_dmnd_fills_from_sys.alternate_memories; 0144 ls_any_fills_from_sys.local_l2;
    0244 ls_any_fills_from_sys.local_ccx; 0344 ls_any_fills_from_sys.local_all; 0444 ls_any_fills_from_sys.near_cache;
    0844 ls_any_fills_from_sys.dram_io_near; 1044 ls_any_fills_from_sys.far_cache;
    1444 ls_any_fills_from_sys.remote_cache; 4044 ls_any_fills_from_sys.dram_io_far;
    4844 ls_any_fills_from_sys.all_dram_io; 5044 ls_any_fills_from_sys.far_all;
    8044 ls_any_fills_from_sys.alternate_memories; 0245 ls_l1_d_tlb_miss.tlb_reload_coalesced_page_hit;
    0445 ls_l1_d_tlb_miss.tlb_reload_2m_l2_hit; 0845 ls_l1_d_tlb_miss.tlb_reload_1g_l2_hit;
    2045 ls_l1_d_tlb_miss.tlb_reload_coalesced_page_miss; 4045 ls_l1_d_tlb_miss.tlb_reload_2m_l2_miss;
    8045 ls_l1_d_tlb_miss.tlb_reload_1g_l2_miss; 0247 ls_misal_loads.ma4k; 014b ls_pref_instr_disp.prefetch;
    024b ls_pref_instr_disp.prefetch_w; 044b ls_pref_instr_disp.prefetch_nta;
    0152 ls_inef_sw_pref.data_pipe_sw_pf_dc_hit; 0252 ls_inef_sw_pref.mab_mch_cnt; 0352 ls_inef_sw_pref.all;
    0159 ls_sw_pf_dc_fills.local_l2; 0259 ls_sw_pf_dc_fills.local_ccx; 0459 ls_sw_pf_dc_fills.near_cache;
    0859 ls_sw_pf_dc_fills.dram_io_near; 1059 ls_sw_pf_dc_fills.far_cache; 4059 ls_sw_pf_dc_fills.dram_io_far;
    8059 ls_sw_pf_dc_fills.alternate_memories; df59 ls_sw_pf_dc_fills.all; 015a ls_hw_pf_dc_fills.local_l2;
    025a ls_hw_pf_dc_fills.local_ccx; 045a ls_hw_pf_dc_fills.near_cache; 085a ls_hw_pf_dc_fills.dram_io_near;
    105a ls_hw_pf_dc_fills.far_cache; 405a ls_hw_pf_dc_fills.dram_io_far; 805a ls_hw_pf_dc_fills.alternate_memories;
    005f ls_alloc_mab_count; 0160 l2_request_g1.group2; 0460 l2_request_g1.prefetch_l2_cmd;
    2060 l2_request_g1.ls_rd_blk_c_s; 0264 l2_cache_req_stat.ic_fill_hit_s; 0464 l2_cache_req_stat.ic_fill_hit_x;
    2064 l2_cache_req_stat.ls_rd_blk_l_hit_s; 4064 l2_cache_req_stat.ls_rd_blk_l_hit_x;
    8064 l2_cache_req_stat.ls_rd_blk_cs; ff78 ls_tlb_flush.all; 0285 bp_l1_tlb_miss_l2_tlb_miss.if2m;
    0485 bp_l1_tlb_miss_l2_tlb_miss.if1g; 0885 bp_l1_tlb_miss_l2_tlb_miss.coalesced_4k; 008b bp_l2_btb_correct;
    008e bp_dyn_ind_pred; 0294 bp_l1_tlb_fetch_hit.if2m; 0494 bp_l1_tlb_fetch_hit.if1g; 02aa de_src_op_disp.op_cache;
    04ab de_dis_ops_from_decoder.any_fp_dispatch; 00c5 ex_ret_brn_tkn_misp; 01d6 ex_no_retire.empty;
    02d6 ex_no_retire.not_complete; 08d6 ex_no_retire.other; 10d6 ex_no_retire.thread_not_selected;
    a2d6 ex_no_retire.load_not_complete; 1000060a0 de_no_dispatch_per_slot.smt_contention; 1000000c1 ex_ret_ucode_instr;
    1000000c2 ex_ret_ucode_ops; 1000000c8 ex_ret_uncond_brnch_instr_mispred; 1000001cf ex_tagged_ibs_ops.ibs_tagged_ops;
    1000002cf ex_tagged_ibs_ops.ibs_tagged_ops_ret; 20000038f op_cache_hit_miss.op_cache_hit;
    20000048f op_cache_hit_miss.op_cache_miss; 20000078f op_cache_hit_miss.all_op_cache_accesses;
""")
_OF_ZEN4 = _table("""
    1003 fp_ret_sse_avx_ops.bfloat_mac_flops; 1f03 fp_ret_sse_avx_ops.all; 0105 fp_retired_ser_ops.x87_ctrl_ret;
    0205 fp_retired_ser_ops.x87_bot_ret; 0405 fp_retired_ser_ops.sse_ctrl_ret; 0805 fp_retired_ser_ops.sse_bot_ret;
    0f05 fp_retired_ser_ops.all; 0860 l2_request_g1.change_to_x; 0170 l2_pf_hit_l2.l2_stream;
    0270 l2_pf_hit_l2.l2_next_line; 0470 l2_pf_hit_l2.l2_up_down; 0870 l2_pf_hit_l2.l2_burst;
    1070 l2_pf_hit_l2.l2_stride; 2070 l2_pf_hit_l2.l1_stream; 4070 l2_pf_hit_l2.l1_stride; 8070 l2_pf_hit_l2.l1_region;
    ff70 l2_pf_hit_l2.all; 0171 l2_pf_miss_l2_hit_l3.l2_stream; 0271 l2_pf_miss_l2_hit_l3.l2_next_line;
    0471 l2_pf_miss_l2_hit_l3.l2_up_down; 0871 l2_pf_miss_l2_hit_l3.l2_burst; 1071 l2_pf_miss_l2_hit_l3.l2_stride;
    2071 l2_pf_miss_l2_hit_l3.l1_stream; 4071 l2_pf_miss_l2_hit_l3.l1_stride; 8071 l2_pf_miss_l2_hit_l3.l1_region;
    ff71 l2_pf_miss_l2_hit_l3.all; 0172 l2_pf_miss_l2_l3.l2_stream; 0272 l2_pf_miss_l2_l3.l2_next_line;
    0472 l2_pf_miss_l2_l3.l2_up_down; 0872 l2_pf_miss_l2_l3.l2_burst; 1072 l2_pf_miss_l2_l3.l2_stride;
    2072 l2_pf_miss_l2_l3.l1_stream; 4072 l2_pf_miss_l2_l3.l1_stride; 8072 l2_pf_miss_l2_l3.l1_region;
    ff72 l2_pf_miss_l2_l3.all; 0096 resyncs_or_nc_redirects; 01aa de_src_op_disp.decoder;
    04aa de_src_op_disp.loop_buffer; 08ab de_dis_ops_from_decoder.disp_op_type.any_integer_dispatch;
    01ae de_dis_dispatch_token_stalls1.int_phy_reg_file_rsrc_stall;
    10ae de_dis_dispatch_token_stalls1.taken_brnch_buffer_rsrc;
    20ae de_dis_dispatch_token_stalls1.fp_reg_file_rsrc_stall; 40ae de_dis_dispatch_token_stalls1.fp_sch_rsrc_stall;
    80ae de_dis_dispatch_token_stalls1.fp_flush_recovery_stall; 01af de_dis_dispatch_token_stalls2.int_sch0_token_stall;
    02af de_dis_dispatch_token_stalls2.int_sch1_token_stall; 04af de_dis_dispatch_token_stalls2.int_sch2_token_stall;
    08af de_dis_dispatch_token_stalls2.int_sch3_token_stall;
""")
_OF_ZEN5 = _table("""
    0f03 fp_ret_sse_avx_ops.all; 2003 fp_ret_sse_avx_ops.bfloat16_flops; 4003 fp_ret_sse_avx_ops.scalar_single_flops;
    6003 fp_ret_sse_avx_ops.packed_single_flops; 8003 fp_ret_sse_avx_ops.scalar_double_flops;
    a003 fp_ret_sse_avx_ops.packed_double_flops; 0a0a fp_ops_retired_by_type.scalar_mov;
    0b0a fp_ops_retired_by_type.scalar_shuffle; 0c0a fp_ops_retired_by_type.scalar_bfloat;
    0d0a fp_ops_retired_by_type.scalar_logical; a00a fp_ops_retired_by_type.vector_mov;
    c00a fp_ops_retired_by_type.vector_bfloat; 050b sse_avx_ops_retired.mmx_aes; 060b sse_avx_ops_retired.mmx_sha;
    080b sse_avx_ops_retired.mmx_cvt; 0c0b sse_avx_ops_retired.mmx_vnni; 800b sse_avx_ops_retired.sse_avx_cvt;
    c00b sse_avx_ops_retired.sse_avx_vnni; 0a0c fp_pack_ops_retired.fp128_mov; 0c0c fp_pack_ops_retired.fp128_bfloat;
    a00c fp_pack_ops_retired.fp256_mov; c00c fp_pack_ops_retired.fp256_bfloat; 080d packed_int_op_type.int128_cvt;
    0c0d packed_int_op_type.int128_vnni; 500d packed_int_op_type.int256_aes; 600d packed_int_op_type.int256_sha;
    800d packed_int_op_type.int256_cvt; c00d packed_int_op_type.int256_vnni; 1f25 ls_locks.all;
    0150 wcb_close.full_line_64b; 2061 l2_request_g2.ls_rd_sized_nc; 4061 l2_request_g2.ls_rd_sized;
    2063 l2_wcb_req.wcb_close; 1f70 l2_pf_hit_l2.l2_hwpf; e070 l2_pf_hit_l2.l1_dc_hwpf; ff70 l2_pf_hit_l2.l1_dc_l2_hwpf;
    1f71 l2_pf_miss_l2_hit_l3.l2_hwpf; e071 l2_pf_miss_l2_hit_l3.l1_dc_hwpf; ff71 l2_pf_miss_l2_hit_l3.l1_dc_l2_hwpf;
    1f72 l2_pf_miss_l2_l3.l2_hwpf; e072 l2_pf_miss_l2_l3.l1_dc_hwpf; ff72 l2_pf_miss_l2_l3.l1_dc_l2_hwpf;
    009f bp_redirects.all; 019f bp_redirects.resync; 01aa de_src_op_disp.x86_decoder;
    08ab de_dis_ops_from_decoder.any_integer_dispatch;
    01ae de_dispatch_stall_cycle_dynamic_tokens_part1.int_phy_reg_file_rsrc_stall;
    10ae de_dispatch_stall_cycle_dynamic_tokens_part1.taken_brnch_buffer_rsrc;
    40ae de_dispatch_stall_cycle_dynamic_tokens_part1.fp_sch_rsrc_stall;
    01af de_dispatch_stall_cycle_dynamic_tokens_part2.al_tokens;
    02af de_dispatch_stall_cycle_dynamic_tokens_part2.ag_tokens;
    04af de_dispatch_stall_cycle_dynamic_tokens_part2.ex_flush_recovery; 02cb ex_ret_mmx_fp_instr.mmx;
    04cb ex_ret_mmx_fp_instr.sse; 100000465 l2_fill_rsp_src.near_cache; 100001065 l2_fill_rsp_src.far_cache;
    100004065 l2_fill_rsp_src.dram_io_far; 100008065 l2_fill_rsp_src.alternate_memories;
    100000288 ic_fetch_ibs_events.fetch_tagged; 100000488 ic_fetch_ibs_events.sample_discarded;
    100000888 ic_fetch_ibs_events.sample_filtered; 100001088 ic_fetch_ibs_events.sample_valid;
    1000030a2 de_additional_resource_stalls.dispatch_stalls; 1000004cf ex_tagged_ibs_ops.ibs_count_rollover;
""")

ZEN4 = _COMMON | _OF_ZEN4
ZEN5 = _COMMON | _OF_ZEN5
