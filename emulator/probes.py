"""Probes: every occurrence in the core that can be counted, one row each.

The native core's header is generated from this file when it is built.
"""

from __future__ import annotations

from enum import Enum, IntEnum, auto


class Source(Enum):
    """What fires a probe. Probes' numbers are in the order of their sources."""

    INSTRUCTION = auto()  # told by an instruction's bytes, by where a branch goes, or by an exception
    CLOCK = auto()
    MEMORY = auto()  # caches and TLBs
    BRANCH_UNIT = auto()
    PIPELINE = auto()


class Probe(IntEnum):
    """What the core reports. An instruction fires a probe at most once, as it retires, unless the row says so.

    A row is the probe's source and the part that a core must have to fire it: of MEMORY a table of its file, of
    BRANCH_UNIT a key of [branch], of PIPELINE a model; where none is named, any will do. Its place is its number.
    """

    source: Source
    part: str

    def __new__(cls, source: Source, part: str = "") -> Probe:
        number = len(cls.__members__)
        before = list(cls)[-1].source if number else source
        if source.value < before.value:
            raise ValueError(f"probe {number}: one of source {source.name} stands behind one of {before.name}")
        member = int.__new__(cls, number)
        member._value_ = number
        member.source, member.part = source, part
        return member

    INST_RETIRED = Source.INSTRUCTION  # an x86 instruction with a REP prefix fires once, whatever its count
    BR_RETIRED = Source.INSTRUCTION  # jumps, calls, returns; on x86 also SYSCALL and INT n; on Arm not SVC
    BR_COND = Source.INSTRUCTION  # conditional branches; CBZ/TBZ, and x86 LOOP*/J*CXZ, too
    BR_COND_TAKEN = Source.INSTRUCTION
    BR_IMMED = Source.INSTRUCTION  # direct branches: the target is in the instruction
    BR_INDIRECT = Source.INSTRUCTION  # the target is in a register or in memory; not returns
    BR_CALL = Source.INSTRUCTION
    BR_RETURN = Source.INSTRUCTION
    BR_TAKEN = Source.INSTRUCTION  # every branch but a conditional one that falls through
    LOAD = Source.INSTRUCTION  # instructions that read memory (LDP: one); REP: each iteration
    STORE = Source.INSTRUCTION  # ... that write memory; REP: each iteration. A read-modify-write fires LOAD, too
    INT_OP = Source.INSTRUCTION  # integer data processing
    FP_OP = Source.INSTRUCTION  # scalar floating point (Arm VFP, x87)
    SIMD_OP = Source.INSTRUCTION  # Advanced SIMD, MMX, SSE
    CRYPTO_OP = Source.INSTRUCTION
    ISB = Source.INSTRUCTION
    DSB = Source.INSTRUCTION  # Arm DSB, x86 MFENCE/LFENCE/SFENCE
    DMB = Source.INSTRUCTION
    LOAD_EXCLUSIVE = Source.INSTRUCTION
    STORE_EXCLUSIVE = Source.INSTRUCTION
    EXC_TAKEN = Source.INSTRUCTION  # the kernel was entered: syscall, fault, undefined instruction
    EXC_SVC = Source.INSTRUCTION  # ... by SVC or SYSCALL
    EXC_DABORT = Source.INSTRUCTION  # ... data page fault or other data abort
    EXC_PABORT = Source.INSTRUCTION  # ... instruction fetch fault
    EXC_UNDEF = Source.INSTRUCTION
    LOCKED = Source.INSTRUCTION  # x86: LOCK-prefixed and implicitly locked read-modify-writes
    DIV_OP = Source.INSTRUCTION
    MUL_OP = Source.INSTRUCTION
    SOFTWARE_PREFETCH = Source.INSTRUCTION  # x86: PREFETCHh and PREFETCHW, which are no loads

    CYCLES = Source.CLOCK  # in user mode; on a core without a pipeline: with every INST_RETIRED

    # Memory. A load or store accesses each cache line that it touches; an instruction that reads a pair accesses once.
    # An access to a line that is on its way is no refill. Prefetches are no accesses and no refills of any cache; what
    # they read from memory is counted there. A write-through store accesses L1D and the next level.
    L1I_ACCESS = Source.MEMORY, "l1i"  # lines fetched, again after every branch
    L1I_REFILL = Source.MEMORY, "l1i"
    L1D_ACCESS_LOAD = Source.MEMORY, "l1d"
    L1D_ACCESS_STORE = Source.MEMORY, "l1d"
    L1D_REFILL_LOAD = Source.MEMORY, "l1d"
    L1D_REFILL_STORE = Source.MEMORY, "l1d"
    L1D_WRITE_BACK = Source.MEMORY, "l1d"  # dirty lines evicted, or taken because of an outer cache or another's load
    L2_ACCESS_FETCH = Source.MEMORY, "l2"  # for L1I's refills; write-backs from L1D are no accesses
    L2_ACCESS_LOAD = Source.MEMORY, "l2"  # for L1D's; with page walks' reads, where they are modelled
    L2_ACCESS_STORE = Source.MEMORY, "l2"
    L2_REFILL_FETCH = Source.MEMORY, "l2"
    L2_REFILL_LOAD = Source.MEMORY, "l2"
    L2_REFILL_STORE = Source.MEMORY, "l2"
    L2_WRITE_BACK = Source.MEMORY, "l2"
    LL_ACCESS_FETCH = Source.MEMORY, "llc"
    LL_ACCESS_LOAD = Source.MEMORY, "llc"
    LL_ACCESS_STORE = Source.MEMORY, "llc"
    LL_REFILL_FETCH = Source.MEMORY, "llc"
    LL_REFILL_LOAD = Source.MEMORY, "llc"
    LL_REFILL_STORE = Source.MEMORY, "llc"
    LL_WRITE_BACK = Source.MEMORY, "llc"
    LL_ACCESS_PREFETCH = Source.MEMORY, "llc"  # requests of prefetchers and prefetching instructions that came this far
    LL_REFILL_PREFETCH = Source.MEMORY, "llc"
    DRAM_READ = Source.MEMORY, "memory"  # lines, with those that prefetchers ask for
    DRAM_WRITE = Source.MEMORY, "memory"
    L1I_PREFETCH = Source.MEMORY, "l1i"  # lines asked for by the prefetcher, not yet there
    L1D_PREFETCH = Source.MEMORY, "l1d"
    L2_PREFETCH = Source.MEMORY, "l2"
    L1D_PREFETCH_USED = Source.MEMORY, "l1d"  # first demand access to a line that a prefetcher brought
    L2_PREFETCH_USED = Source.MEMORY, "l2"
    UNALIGNED_LOAD = Source.MEMORY, "l1d"  # not at a multiple of its size; of a pair, of one of its elements
    UNALIGNED_STORE = Source.MEMORY, "l1d"
    L1D_SPLIT_LOAD = Source.MEMORY, "l1d"  # crosses a cache line
    L1D_SPLIT_STORE = Source.MEMORY, "l1d"
    ITLB_ACCESS = Source.MEMORY, "itlb"  # with each L1I_ACCESS
    ITLB_REFILL = Source.MEMORY, "itlb"
    DTLB_ACCESS_LOAD = Source.MEMORY, "dtlb"  # each page of an access
    DTLB_ACCESS_STORE = Source.MEMORY, "dtlb"
    DTLB_REFILL_LOAD = Source.MEMORY, "dtlb"
    DTLB_REFILL_STORE = Source.MEMORY, "dtlb"
    L2TLB_ACCESS_FETCH = Source.MEMORY, "l2tlb"
    L2TLB_ACCESS_LOAD = Source.MEMORY, "l2tlb"
    L2TLB_ACCESS_STORE = Source.MEMORY, "l2tlb"
    ITLB_WALK = Source.MEMORY, "itlb"  # page table walks; where there is no second level, each refill
    DTLB_WALK_LOAD = Source.MEMORY, "dtlb"
    DTLB_WALK_STORE = Source.MEMORY, "dtlb"
    ITLB_WALK_CYCLES = Source.MEMORY, "itlb"  # of each walk, also of those that overlap
    DTLB_WALK_CYCLES = Source.MEMORY, "dtlb"
    SNOOP = Source.MEMORY, "l1d"  # other cores' requests that reached these caches; a directory lets through what hits
    SNOOP_HIT = Source.MEMORY, "l1d"  # ... and found the line, clean
    SNOOP_HITM = Source.MEMORY, "l1d"  # ... and found the line modified
    INVALIDATED = Source.MEMORY, "l1d"  # lines that this core lost to another's store
    FETCHED_HIT = Source.MEMORY, "l1d"  # this core's misses that another core's cache answered, line clean there
    FETCHED_HITM = Source.MEMORY, "l1d"  # ... line modified there

    # Branch prediction: of branches that retire
    BR_MISPREDICTED = Source.BRANCH_UNIT
    BR_COND_MISPREDICTED = Source.BRANCH_UNIT, "direction"
    BR_INDIRECT_MISPREDICTED = Source.BRANCH_UNIT, "indirect"
    BR_RETURN_MISPREDICTED = Source.BRANCH_UNIT, "return_stack"
    BTB_MISS = Source.BRANCH_UNIT, "btb_entries"  # taken, and its target not known at fetch: a bubble, no mispredict

    # Pipeline: what it counts itself, see timing/pipeline_counts.hpp. Slots: dispatch width times cycles
    UOPS_DISPATCHED = Source.PIPELINE
    UOPS_RETIRED = Source.PIPELINE
    CYCLES_RETIRING = Source.PIPELINE  # cycles in which at least one micro-op retired
    STALL_FRONTEND = Source.PIPELINE  # cycles without dispatch because none was fetched
    STALL_BACKEND = Source.PIPELINE  # cycles without dispatch because nothing accepted it
    STALL_BACKEND_MEMORY = Source.PIPELINE  # ... while the oldest micro-op waited for memory
    STALL_BEGINS = Source.PIPELINE  # the first of several cycles in a row that are one of these
    STALL_FRONTEND_BEGINS = Source.PIPELINE  # ... of this one
    STALL_BACKEND_BEGINS = Source.PIPELINE
    STALL_BACKEND_MEMORY_BEGINS = Source.PIPELINE
    SLOTS_FRONTEND = Source.PIPELINE  # slots lost
    SLOTS_FRONTEND_LATENCY = Source.PIPELINE  # ... in cycles that lost all of them
    SLOTS_BACKEND = Source.PIPELINE
    SLOTS_BACKEND_MEMORY = Source.PIPELINE
    SLOTS_BAD_SPECULATION = Source.PIPELINE
    STALL_ROB = Source.PIPELINE, "out_of_order"  # cycles in which dispatch waited for a free entry
    STALL_SCHEDULER = Source.PIPELINE, "out_of_order"
    STALL_LOAD_QUEUE = Source.PIPELINE, "out_of_order"
    STALL_STORE_BUFFER = Source.PIPELINE
    STORE_FORWARD = Source.PIPELINE  # loads answered by an older store that was not yet in the cache
    STORE_FORWARD_BLOCKED = Source.PIPELINE  # loads that had to wait: the older store covers them only in part
    ALIAS_4K = Source.PIPELINE  # loads delayed by an older store at the same offset in another page
    DIVIDER_ACTIVE = Source.PIPELINE  # cycles
    FUSED = Source.PIPELINE  # pairs of instructions that went through as one micro-op
    MOVE_ELIMINATED = Source.PIPELINE, "out_of_order"
