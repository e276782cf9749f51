"""x86: instructions that execute one by one, since somebody counts, do what they do as parts of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from emulator._native import PAGE_SIZE
from emulator.cpu import ExitReason
from emulator.probes import Probe
from tests.unit.native.bare import CODE, DATA, FOREVER, Bare, assemble, reference_trace
from tests.unit.native.own_x86 import LOADED_AT, PRESENT, RBX, WRITABLE, Pc

PAUSES = """
    mov $3, %ecx
1:  pause
    nop
    dec %ecx
    jnz 1b
    pause
    pause
    jmp 2f
2:  pause
    syscall"""
# Before and behind an instruction that leaves AF, PF, SF and OF as the manual does not say; ZF is left alone.
BIT_TESTS = f"""
    mov ${DATA}, %ebx
    xor %esi, %esi
1:  mov $0x8000000f, %eax
    add $0x80000001, %eax
    {{test}}
    pushf
    pop (%rbx, %rsi, 8)
    inc %esi
    sub $0x11, %eax
    {{test}}
    pushf
    pop (%rbx, %rsi, 8)
    inc %esi
    cmp $20, %esi
    jb 1b
    syscall"""
CF, PF, AF, ZF, SF, OF = 0x1, 0x4, 0x10, 0x40, 0x80, 0x800
ALIAS = LOADED_AT + 0x8000
KERNEL_PAUSES = "1: pause; pause; dec %ecx; jnz 1b; pause; hlt"


@pytest.mark.parametrize("period", [1, 2, 3, 5, 7])
def test_a_pause_that_is_stepped_retires(period: int, tmp_path: Path) -> None:
    code = assemble("x86_64", PAUSES, tmp_path)
    trace = reference_trace("x86_64", code)
    bare = Bare.load("x86_64", code)
    samples = bare.sample(Probe.INST_RETIRED, period)
    assert bare.total(Probe.INST_RETIRED) == len(trace) == 1 + 3 * 4 + 5
    expected = [(trace[at], at) for at in range(period, len(trace), period)]
    assert samples[: len(expected)] == expected


def test_a_pause_retires_before_a_page_that_is_not_there() -> None:
    """Stepped from the page's beginning on, since what comes behind it cannot be fetched."""
    pause, nop = b"\xf3\x90", b"\x90"
    for watched in (False, True):
        bare = Bare.load("x86_64", nop * (PAGE_SIZE - 2) + pause)
        if watched:
            bank = bare.core.add_bank(1)
            bank.connect(0, 1 << Probe.INST_RETIRED)
            bank.arm(1)
            bank.write(0, 2**64 - (PAGE_SIZE - 2))
            assert bare.run() is ExitReason.OVERFLOW
            assert bare.core.pc == CODE + PAGE_SIZE - 2
        assert bare.run() is ExitReason.FAULT
        assert (bare.core.pc, bare.core.cycles) == (CODE + PAGE_SIZE, PAGE_SIZE - 1)


def in_slices(source: str, core: str, tmp_path: Path, slices: Sequence[int]) -> Pc:
    """A guest's own kernel, at a page that it can write at ALIAS alone: run whole, and so many cycles at a time. All
    that was counted is the same."""
    code = assemble("x86_64", source, tmp_path)
    seen = []
    for slice_cycles in (FOREVER, *slices):
        pc = Pc.load(code, core)
        pc.start_64({LOADED_AT: LOADED_AT | PRESENT, ALIAS: LOADED_AT | PRESENT | WRITABLE})
        pc.monitor.slice_cycles = slice_cycles
        pc.run()
        seen.append({"CYCLE": pc.cpu.core.cycles} | {probe.name: pc.cpu.core.total(probe) for probe in Probe})
    for slice_cycles, counts in zip(slices, seen[1:], strict=True):
        assert counts == seen[0], f"in slices of {slice_cycles} cycles"
    return pc


@pytest.mark.parametrize("core", ["ideal", "zen5", "skylake"])
def test_a_guests_own_kernel_pauses_alike(core: str, tmp_path: Path) -> None:
    pc = in_slices("mov $50, %ecx\n" + KERNEL_PAUSES, core, tmp_path, (1, 7))
    assert pc.cpu.core.total(Probe.INST_RETIRED) == 1 + 50 * 4 + 2


@pytest.mark.parametrize("core", ["ideal", "zen5", "skylake"])
def test_a_block_that_is_the_first_to_store_into_itself_ends_there(core: str, tmp_path: Path) -> None:
    """Until then the core does not know that its code may change."""
    source = f"""
        mov     ${ALIAS}, %edi          # 1
        jmp     1f                      # 1
    1:  add     $1, %eax                # 1
        movb    $5, target - 1b + 7 + 2(%rdi)   # 1
        nop                             # 1
    target:
        add     $1, %ebx                # 1; it adds 5
        mov     %eax, %edx              # 1
        jmp     2f                      # 1
    2:  hlt"""  # 1; the code before label 1 has 7 bytes, and an immediate is an ADD's third
    pc = in_slices(source, core, tmp_path, (1, 2, 3, *range(10, 700, 30)))
    assert pc.cpu.core.read_register(RBX) == 5
    assert pc.cpu.core.total(Probe.INST_RETIRED) == 9


@pytest.mark.parametrize("core", ["zen5", "skylake"])
def test_models_hear_of_no_load_behind_one_into_mxcsr_that_is_refused(core: str, tmp_path: Path) -> None:
    """SDM vol. 1, 10.2.3: its reserved bits are #GP, which nobody handles here."""
    source = """
        lea     reserved(%rip), %rdi    # 1
        mov     $20, %ecx               # 1
    1:  dec     %ecx                    # 20
        jnz     1b                      # 20
        ldmxcsr (%rdi)
        mov     4(%rdi), %rax
        mov     12(%rdi), %rax
        jmp     2f
    2:  hlt
    reserved:
        .long   0x10000, 0, 0, 0, 0"""
    pc = in_slices(source, core, tmp_path, (1, 2, 3, *range(10, 700, 10)))
    assert pc.cpu.core.total(Probe.INST_RETIRED) == 2 + 40
    assert pc.cpu.core.total(Probe.EXC_UNDEF) >= 1


@pytest.mark.parametrize(
    "test", ["bt %ecx, %eax", "btsl $3, %eax", "btc %rdx, 0x800(%rbx)", "lock btrl $5, 0x900(%rbx)", "bt $31, %ax"]
)
def test_a_bit_test_leaves_the_other_flags_alone(test: str, tmp_path: Path) -> None:
    code = assemble("x86_64", BIT_TESTS.format(test=test), tmp_path)
    runs: tuple[Callable[[Bare], object], ...] = (Bare.run, lambda bare: bare.sample(Probe.INST_RETIRED, 1))
    flags = []
    for run in runs:
        bare = Bare.load("x86_64", code)
        run(bare)
        data = bare.space.read(DATA, 20 * 8)
        flags.append([int.from_bytes(data[at : at + 8], "little") & ~CF for at in range(0, len(data), 8)])
    assert flags[0] == flags[1]
    # 8000000f + 80000001 is 10: no carry from bit 3 but that of f + 1, and a signed overflow.
    assert flags[0][0] & (PF | AF | ZF | SF | OF) == AF | OF


@pytest.mark.parametrize("core", ["ideal", "zen5", "skylake"])
def test_an_instruction_that_becomes_another_retires_as_what_it_was(core: str, tmp_path: Path) -> None:
    """ADD's prefix becomes CMP's opcode."""
    source = f"""
        mov     ${ALIAS} + 1f - start, %eax     # 1
        mov     $0x3c - 0x48, %cl       # 1
        jmp     1f                      # 1
    1:  rex.W   add %cl, (%rax)         # 1
        hlt"""  # 1
    pc = in_slices("start:" + source, core, tmp_path, (1, 2, 3, 40))
    assert pc.cpu.core.total(Probe.INST_RETIRED) == 5
