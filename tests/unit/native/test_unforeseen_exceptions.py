"""Exceptions in mid-block that no page table foretells: models hear of what has retired, however turns are cut."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path

import pytest

from emulator._native import Core
from emulator.core_file.core_file import load_core
from emulator.cpu import ExitReason, Level
from emulator.probes import Probe
from tests.unit.native.bare import CODE, FOREVER, PC, SP, STACK_TOP, Bare, assemble
from tests.unit.native.test_own_kernel import Board

ROUNDS = 40
MOST_CYCLES = 1000  # of two instructions
UNKNOWN = 1 << 25  # ESR_EL1: EC 0, a 32-bit instruction
COMPARED = (
    Probe.INST_RETIRED, Probe.EXC_TAKEN, Probe.CYCLES, Probe.UOPS_RETIRED, Probe.L1D_ACCESS_LOAD, Probe.L1D_ACCESS_STORE
)  # fmt: skip

# The instruction is the fourth of a block of six; the vectors skip it. SPSR: EL0 or EL1, all masked.
IMAGE = """
        adr     x4, vectors
        msr     vbar_el1, x4
        mov     x4, #{fpen}
        msr     cpacr_el1, x4
        adr     x4, body
        msr     elr_el1, x4
        mov     x4, #{spsr}
        msr     spsr_el1, x4
        eret
        .balign 0x800
vectors: .org   vectors + 0x200
        mrs     x13, elr_el1
        add     x13, x13, #4
        msr     elr_el1, x13
        eret
        .org    vectors + 0x400
        mrs     x13, elr_el1
        add     x13, x13, #4
        msr     elr_el1, x13
        eret
        .balign 0x800
body:   mov     x0, #{rounds}
        mov     x1, #0x40000            // data
        add     x2, x1, #1
        b       1f
1:      str     x0, [x1]
        add     x5, x5, #1
        ldr     x6, [x1, #8]
        {instruction}
        add     x7, x7, #1
        cbnz    xzr, 1b
        subs    x0, x0, #1
        b.ne    1b
        svc     #0
"""
EL0, EL1 = 0x3C0, 0x3C5
NO_VECTORS, ALL_VECTORS = 0, 3 << 20
CASES = {
    "ic ivau, x1": (EL0, ALL_VECTORS),  # SCTLR_EL1.UCI is 0
    "mrs x8, ctr_el0": (EL0, ALL_VECTORS),  # UCT is 0
    "fmov d0, x1": (EL0, NO_VECTORS),
    "fadd d0, d0, d1": (EL1, NO_VECTORS),
    "ldr q0, [x1]": (EL1, NO_VECTORS),
    "ldar x8, [x2]": (EL1, ALL_VECTORS),
    "ldxr x8, [x2]": (EL1, ALL_VECTORS),
}


@pytest.mark.parametrize("core", ["cortex-a55", "neoverse-n1"])
@pytest.mark.parametrize("instruction", CASES)
def test_the_models_hear_of_what_has_retired(instruction: str, core: str, tmp_path: Path) -> None:
    spsr, fpen = CASES[instruction]
    source = IMAGE.format(spsr=spsr, fpen=fpen, rounds=ROUNDS, instruction=instruction)
    code = assemble("aarch64", source, tmp_path)

    def run(slice_cycles: int) -> list[int]:
        board = Board.load(code, core)
        guest, taken = board.cpu.core, 0
        while (reason := ExitReason(guest.run(guest.cycles + slice_cycles))) is not ExitReason.SYSCALL:
            assert reason in (ExitReason.DEADLINE, ExitReason.EXCEPTION, ExitReason.REGISTER), reason
            if reason is not ExitReason.DEADLINE:
                guest.take_exception(0, UNKNOWN)
                taken += 1
        assert taken == ROUNDS
        return [guest.total(probe, level) for probe in COMPARED for level in Level]

    whole = run(FOREVER)
    assert run(3) == whole
    assert run(10) == whole


@pytest.mark.parametrize("core", ["ideal", "cortex-a55", "neoverse-n1"])
def test_what_is_due_behind_a_branch_comes_before_the_fault_of_its_target(core: str, tmp_path: Path) -> None:
    """So it does where the branch was stepped."""
    code = assemble("aarch64", "mov x0, #0xf0000000\n br x0", tmp_path)

    def run(until: int) -> tuple[ExitReason, int]:
        guest = Board.load(code, core).cpu.core
        return ExitReason(guest.run(until)), guest.total(Probe.INST_RETIRED)

    def faults(until: int) -> bool:
        return run(until) == (ExitReason.FAULT, 2)

    first_fault = bisect_left(range(MOST_CYCLES), True, key=faults)
    assert 0 < first_fault < MOST_CYCLES
    assert run(first_fault - 1) == (ExitReason.DEADLINE, 2)


# MXCSR with division by zero unmasked; each round divides by zero in the fourth instruction of a block, and who answers
# the exception skips those three bytes.
DIVIDES = """
        movl    $0x1d80, -4(%rsp)
        ldmxcsr -4(%rsp)
        mov     $40, %ecx
        xorps   %xmm1, %xmm1
        mov     $0x3f800000, %eax
        movd    %eax, %xmm0
        jmp     1f
1:      mov     %rcx, -16(%rsp)
        add     $1, %rdx
        mov     -16(%rsp), %rsi
        {instruction}
        add     $1, %rdi
        cmp     %rax, %rax
        je      2f
2:      sub     $1, %ecx
        jnz     1b
        syscall
"""


@pytest.mark.parametrize(
    "instruction",
    ["divps %xmm1, %xmm0", "movaps -15(%rsp), %xmm2"],  # unmasked; not aligned
)
def test_the_models_hear_of_what_has_retired_on_x86(instruction: str, tmp_path: Path) -> None:
    code = assemble("x86_64", DIVIDES.format(instruction=instruction), tmp_path)
    length = 3 if instruction.startswith("div") else 5

    def run(slice_cycles: int) -> list[int]:
        bare = Bare.load("x86_64", code)
        bare.core = core = Core("x86_64", bare.memory, model=load_core("zen5").model)
        core.set_address_space(bare.space)
        core.write_register(PC["x86_64"], CODE)
        core.write_register(SP["x86_64"], STACK_TOP)
        taken = 0
        while (reason := ExitReason(core.run(core.cycles + slice_cycles))) is not ExitReason.SYSCALL:
            assert reason in (ExitReason.DEADLINE, ExitReason.EXCEPTION, ExitReason.FAULT), reason
            if reason is not ExitReason.DEADLINE:
                core.write_register(PC["x86_64"], core.pc + length)
                taken += 1
        assert taken == ROUNDS
        return [core.total(probe) for probe in COMPARED]

    whole = run(FOREVER)
    assert run(3) == whole
    assert run(10) == whole
