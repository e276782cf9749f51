"""What Arm's lists have besides our rows, by code: common events, and those of one part alone.

A guest that asks for one of these is told that there is no such event, where hardware would count it: 0 would be false.
Codes and names: Arm ARM DDI 0487, "Common event numbers", and the cores' technical reference manuals.
"""

from __future__ import annotations


def _table(codes_and_names: str) -> dict[int, str]:
    return {int(code, 16): name for code, name in map(str.split, codes_and_names.split(";")[:-1])}


COMMON = _table("""
    000a EXC_RETURN; 000b CID_WRITE_RETIRED; 001a MEMORY_ERROR; 001c TTBR_WRITE_RETIRED; 0020 L2D_CACHE_ALLOCATE;
    0029 L3D_CACHE_ALLOCATE; 0031 REMOTE_ACCESS; 0038 REMOTE_ACCESS_RD; 0039 L1D_CACHE_LMISS_RD;
    0047 L1D_CACHE_WB_CLEAN; 0057 L2D_CACHE_WB_CLEAN; 0058 L2D_CACHE_INVAL; 0062 BUS_ACCESS_SHARED;
    0063 BUS_ACCESS_NOT_SHARED; 0064 BUS_ACCESS_NORMAL; 0065 BUS_ACCESS_PERIPH; 006d STREX_PASS_SPEC;
    006e STREX_FAIL_SPEC; 0086 EXC_IRQ; 0087 EXC_FIQ; 0088 EXC_SMC; 008a EXC_HVC; 008b EXC_TRAP_PABORT;
    008c EXC_TRAP_DABORT; 008d EXC_TRAP_OTHER; 008e EXC_TRAP_IRQ; 008f EXC_TRAP_FIQ; 0090 RC_LD_SPEC; 0091 RC_ST_SPEC;
    4000 SAMPLE_POP; 4001 SAMPLE_FEED; 4002 SAMPLE_FILTRATE; 4003 SAMPLE_COLLISION; 4004 CNT_CYCLES;
    4006 L1I_CACHE_LMISS; 4009 L2D_CACHE_LMISS_RD; 400b L3D_CACHE_LMISS_RD;
""")
CORTEX_A55 = _table("""
    00c0 L3D_CACHE_REFILL_PREFETCH; 00c3 L2D_WS_MODE; 00c4 L1D_WS_MODE_ENTRY; 00c5 L1D_WS_MODE; 00c6 PREDECODE_ERROR;
    00c7 L3D_WS_MODE; 00cb BR_INDIRECT_ADDR_MIS_PRED; 00d0 L2D_LLWALK_TLB; 00d1 L2D_LLWALK_TLB_REFILL;
    00d2 L2D_L2WALK_TLB; 00d3 L2D_L2WALK_TLB_REFILL; 00d4 L2D_S2_TLB; 00d5 L2D_S2_TLB_REFILL;
    00d6 L2D_CACHE_STASH_DROPPED; 00e1 STALL_FRONTEND_CACHE; 00e2 STALL_FRONTEND_TLB; 00e3 STALL_FRONTEND_PDERR;
    00e4 STALL_BACKEND_ILOCK; 00e5 STALL_BACKEND_ILOCK_AGU; 00e6 STALL_BACKEND_ILOCK_FPU; 00e7 STALL_BACKEND_LD;
    00e8 STALL_BACKEND_ST; 00e9 STALL_BACKEND_LD_CACHE; 00ea STALL_BACKEND_LD_TLB; 00eb STALL_BACKEND_ST_STB;
    00ec STALL_BACKEND_ST_TLB;
""")


def is_common(code: int) -> bool:
    """Whether a number means the same on every part that has it; the others each part gives away itself."""
    return code < 0xC0 or is_announced(code)


def is_announced(code: int) -> bool:
    """Whether PMCEID0/1_EL0 have a bit for it."""
    return code < 0x40 or 0x4000 <= code < 0x4040
