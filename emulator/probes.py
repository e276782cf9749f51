"""Probes: every occurrence in the core that can be counted, one row each.

The order is the number; the native core's header is generated from this file when it is built.
"""

from __future__ import annotations

from enum import IntEnum


class Probe(IntEnum):
    """What the core reports. An instruction fires a probe at most once, as it retires, unless the row says so."""

    INST_RETIRED = 0  # an x86 instruction with a REP prefix fires once, whatever its count
    CYCLES = 1  # in user mode; on a core without a pipeline: with every INST_RETIRED
    BR_RETIRED = 2  # every transfer of control: jumps, calls, returns; on x86 also SYSCALL and INT n; on Arm not SVC
    BR_COND = 3  # conditional branches; CBZ/TBZ, and x86 LOOP*/J*CXZ, too
    BR_COND_TAKEN = 4
    BR_IMMED = 5  # direct branches: the target is in the instruction
    BR_INDIRECT = 6  # the target is in a register or in memory; not returns
    BR_CALL = 7
    BR_RETURN = 8
    BR_TAKEN = 9  # every branch but a conditional one that falls through
    LOAD = 10  # instructions that read memory (LDP: one); REP: each iteration
    STORE = 11  # instructions that write memory; REP: each iteration. A read-modify-write fires LOAD and STORE
    INT_OP = 12  # integer data processing
    FP_OP = 13  # scalar floating point (Arm VFP, x87)
    SIMD_OP = 14  # Advanced SIMD, MMX, SSE
    CRYPTO_OP = 15
    ISB = 16
    DSB = 17  # Arm DSB, x86 MFENCE/LFENCE/SFENCE
    DMB = 18
    LOAD_EXCLUSIVE = 19
    STORE_EXCLUSIVE = 20
    EXC_TAKEN = 21  # the kernel was entered: syscall, fault, undefined instruction
    EXC_SVC = 22  # ... by SVC or SYSCALL
    EXC_DABORT = 23  # ... data page fault or other data abort
    EXC_PABORT = 24  # ... instruction fetch fault
    EXC_UNDEF = 25
    LOCKED = 26  # x86: LOCK-prefixed and implicitly locked read-modify-writes
    DIV_OP = 27
    MUL_OP = 28
    SOFTWARE_PREFETCH = 29  # x86: PREFETCHh and PREFETCHW, which are no loads

    # Memory. A load or store accesses each cache line that it touches; an instruction that reads a pair accesses once.
    # An access to a line that is on its way is no refill. Prefetches are no accesses and no refills of any cache; what
    # they read from memory is counted there. A write-through store accesses L1D and the next level.
    L1I_ACCESS = 30  # lines fetched, again after every branch
    L1I_REFILL = 31
    L1D_ACCESS_LOAD = 32
    L1D_ACCESS_STORE = 33
    L1D_REFILL_LOAD = 34
    L1D_REFILL_STORE = 35
    L1D_WRITE_BACK = 36  # dirty lines evicted, or taken or shared because of an outer cache or another core's load
    L2_ACCESS_FETCH = 37  # for L1I's refills; write-backs from L1D are no accesses
    L2_ACCESS_LOAD = 38  # for L1D's; with page walks' reads, where they are modelled
    L2_ACCESS_STORE = 39
    L2_REFILL_FETCH = 40
    L2_REFILL_LOAD = 41
    L2_REFILL_STORE = 42
    L2_WRITE_BACK = 43
    LL_ACCESS_FETCH = 44
    LL_ACCESS_LOAD = 45
    LL_ACCESS_STORE = 46
    LL_REFILL_FETCH = 47
    LL_REFILL_LOAD = 48
    LL_REFILL_STORE = 49
    LL_WRITE_BACK = 50
    DRAM_READ = 51  # lines, with those that prefetchers ask for
    DRAM_WRITE = 52
    L1I_PREFETCH = 53  # lines asked for by the prefetcher, not yet there
    L1D_PREFETCH = 54
    L2_PREFETCH = 55
    L1D_PREFETCH_USED = 56  # first demand access to a line that a prefetcher brought
    L2_PREFETCH_USED = 57
    UNALIGNED_LOAD = 58  # not at a multiple of its size; of a pair, of one of its elements
    UNALIGNED_STORE = 59
    L1D_SPLIT_LOAD = 60  # crosses a cache line
    L1D_SPLIT_STORE = 61
    ITLB_ACCESS = 62  # with each L1I_ACCESS
    ITLB_REFILL = 63
    DTLB_ACCESS_LOAD = 64  # each page of an access
    DTLB_ACCESS_STORE = 65
    DTLB_REFILL_LOAD = 66
    DTLB_REFILL_STORE = 67
    L2TLB_ACCESS_FETCH = 68
    L2TLB_ACCESS_LOAD = 69
    L2TLB_ACCESS_STORE = 70
    ITLB_WALK = 71  # page table walks; where there is no second level, each refill
    DTLB_WALK_LOAD = 72
    DTLB_WALK_STORE = 73
    ITLB_WALK_CYCLES = 74  # of each walk, also of those that overlap
    DTLB_WALK_CYCLES = 75
    SNOOP = 76  # coherence requests of other cores that reached this one's caches; a directory lets through what hits
    SNOOP_HIT = 77  # ... and found the line, clean
    SNOOP_HITM = 78  # ... and found the line modified
    INVALIDATED = 79  # lines that this core lost to another's store
    FETCHED_HIT = 80  # this core's misses that another core's cache answered, line clean there
    FETCHED_HITM = 81  # ... line modified there

    # Branch prediction: of branches that retire
    BR_MISPREDICTED = 82
    BR_COND_MISPREDICTED = 83
    BR_INDIRECT_MISPREDICTED = 84
    BR_RETURN_MISPREDICTED = 85
    BTB_MISS = 86  # taken, and its target was not known at fetch: a bubble, no mispredict

    # Pipeline: what it counts itself, see timing/pipeline_counts.hpp. Slots: dispatch width times cycles
    UOPS_DISPATCHED = 87
    UOPS_RETIRED = 88
    CYCLES_RETIRING = 89  # cycles in which at least one micro-op retired
    STALL_FRONTEND = 90  # cycles without dispatch because none was fetched
    STALL_BACKEND = 91  # cycles without dispatch because nothing accepted it
    STALL_BACKEND_MEMORY = 92  # ... while the oldest micro-op waited for memory
    SLOTS_FRONTEND = 93  # slots lost
    SLOTS_FRONTEND_LATENCY = 94  # ... in cycles that lost all of them
    SLOTS_BACKEND = 95
    SLOTS_BACKEND_MEMORY = 96
    SLOTS_BAD_SPECULATION = 97
    STALL_ROB = 98  # cycles in which dispatch waited for a free entry
    STALL_SCHEDULER = 99
    STALL_LOAD_QUEUE = 100
    STALL_STORE_BUFFER = 101
    STORE_FORWARD = 102  # loads answered by an older store that was not yet in the cache
    STORE_FORWARD_BLOCKED = 103  # loads that had to wait: the older store covers them only in part
    ALIAS_4K = 104  # loads delayed by an older store at the same offset in another page
    DIVIDER_ACTIVE = 105  # cycles
    FUSED = 106  # pairs of instructions that went through as one micro-op
    MOVE_ELIMINATED = 107
