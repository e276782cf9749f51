"""Probes: every occurrence in the core that can be counted, one row each.

The order is the number; the native core's header is generated from this file when it is built.
"""

from __future__ import annotations

from enum import IntEnum


class Probe(IntEnum):
    """What the core reports. An instruction fires a probe at most once, as it retires, unless the row says so."""

    INST_RETIRED = 0  # an x86 instruction with a REP prefix fires once, whatever its count
    CYCLES = 1  # on the ideal core: with every INST_RETIRED
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
    EXC_RETURN = 23  # the kernel returned to user mode
    EXC_DABORT = 24  # ... data page fault or other data abort
    EXC_PABORT = 25  # ... instruction fetch fault
    EXC_UNDEF = 26
    LOCKED = 27  # x86: LOCK-prefixed and implicitly locked read-modify-writes
    DIV_OP = 28
    MUL_OP = 29
