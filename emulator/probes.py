"""Probes: every occurrence in the core that can be counted, one row each.

The order is the number; the native core's header is generated from this file when it is built.
"""

from __future__ import annotations

from enum import IntEnum


class Probe(IntEnum):
    """What the core reports. Each instruction fires a probe at most once, and when it retires, unless the row says otherwise."""

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
    MEM_ACCESS = 12  # LOAD plus STORE
    INT_OP = 13  # integer data processing
    FP_OP = 14  # scalar floating point (Arm VFP, x87)
    SIMD_OP = 15  # Advanced SIMD, MMX, SSE
    CRYPTO_OP = 16
    ISB = 17
    DSB = 18  # Arm DSB, x86 MFENCE/LFENCE/SFENCE
    DMB = 19
    LOAD_EXCLUSIVE = 20
    STORE_EXCLUSIVE = 21
    EXC_TAKEN = 22  # the kernel was entered: syscall, fault, undefined instruction, interrupt
    EXC_SVC = 23  # ... by SVC or SYSCALL
    EXC_RETURN = 24  # the kernel returned to user mode
    EXC_DABORT = 25  # ... data page fault or other data abort
    EXC_PABORT = 26  # ... instruction fetch fault
    EXC_UNDEF = 27
    EXC_IRQ = 28  # ... by an interrupt (a counter's overflow, a timer)
    LOCKED = 29  # x86: LOCK-prefixed and implicitly locked read-modify-writes
    DIV_OP = 30
    MUL_OP = 31


