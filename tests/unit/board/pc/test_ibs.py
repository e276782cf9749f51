"""IBS on the board pc, as its guest programs it: what a sample says of an instruction of either level, the interrupt by
the extended local vector table, its registers bit by bit, and a saved board that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.board.observers import Observers
from emulator.board.pc.extended_apic import ENTRIES
from pmu.amd.ibs_registers import IBS_OP_CTL, IBS_OP_DATA, IBS_OP_DATA2, IBS_OP_DATA3
from tests.unit.board.carried_over import carried_over
from tests.unit.board.pc.images import assembled
from tests.unit.board.pc.test_branch_records import Made
from tests.unit.board.pc.test_pmu_registers import PROGRAM as REGISTERS

ALL_ONES = (1 << 64) - 1
CORE = "zen4"
# What NMIs find: for each a line of IBS_OP_CTL, RIP, DATA, DATA3, DC_LINADDR, DC_PHYSADDR and BRTARGET. `work` loads
# and stores in a page of 2 MiB that is mapped to another, and branches: at privilege 3, then at 0.
PROGRAM = f"""
        .set    OP_CTL, 0xC0011033
        .set    ELSEWHERE, 0x40000000           # is at RAM + 4 MiB
        .macro  show register
        mov     $\\register, %ecx
        rdmsr
        shl     $32, %rdx
        or      %rdx, %rax
        call    puthex
        .endm

main:   handle  0x80, called
        handle  2, interrupted
        movb    $0xEE, gates + 16 * 0x80 + 5    # for ring 3
        movq    $0x400087, tables + 0x2000 + 0x1000 # the first of the second GiB
        mov     %cr3, %rax
        mov     %rax, %cr3
        call    apic_on
        mov     $APIC, %eax
        mov     0x30(%rax), %ebp                # version
        shr     $31, %ebp
        value   %rbp
        mov     $APIC, %eax
        mov     0x400(%rax), %ebp
        value   %rbp
        mov     $APIC, %eax
        mov     {ENTRIES[0]:#x}(%rax), %ebp
        value   %rbp
        show    0xC001103A
        call    newline
        apic_write {ENTRIES[0]:#x}, $0x400      # an NMI
        mov     $APIC, %eax
        mov     $ELSEWHERE + 0x128, %ebx
        mov     $1f, %r10d
        push    $USER_DATA
        push    $user_stack_top
        push    $2
        push    $USER_CODE
        push    $work
        put     OP_CTL, CONTROL
        iretq
1:      mov     $ELSEWHERE + 0x128, %ebx
        put     OP_CTL, CONTROL
        jmp     work

        .balign 64
work:   mov     (%rbx), %r8                     # 0, of 3 bytes
        mov     %r8, 8(%rbx)                    # 3, of 4
        nop                                     # 7
        jmp     1f                              # 8, of 2
        nop
1:      cmp     $user_end - 64, %r10d           # 11
        .rept   64
        nop
        .endr
        mov     %cs, %eax
        test    $3, %al
        jz      last
        int     $0x80
user_end:

called: mov     $stack_top, %esp
        jmp     *%r10
last:   xor     %edi, %edi
        jmp     exit

interrupted:
        mov     $OP_CTL, %ecx
        .irp    offset, 0, 1, 2, 4, 5, 6, 8
        show    OP_CTL + \\offset
        .endr
        call    newline
        put     OP_CTL, 0
        ret
        .bss
        .skip   4096
user_stack_top:
        .text
"""


def image(left: int) -> bytes:
    """The so-and-so-many-th instruction of `work` is sampled; before it IRETQ, or the jump there, is counted."""
    count = 16
    control = IBS_OP_CTL.make(IbsOpMaxCnt=count >> 4, IbsOpEn=1, IbsOpCntCtl=1, IbsOpCurCnt=count - 1 - left)
    return assembled(PROGRAM.replace("CONTROL", hex(control)))


@pytest.fixture(scope="module")
def samples() -> dict[int, list[list[int]]]:
    """By how many instructions were left: of privilege 3, of 0."""
    found = {}
    for left in (1, 2, 3, 4):
        first, *rows = Made(CORE, image(left), untimed=False).lines()
        # version.EAS; four entries; masked; the first of them, valid
        assert first == [1, 4 << 16, 1 << 16, 1 << 8]
        found[left] = rows
    return found


def test_a_sample_is_the_instruction_at_either_level(samples: dict[int, list[list[int]]]) -> None:
    work = samples[1][0][1]
    for left, offset in ((1, 0), (2, 3), (3, 7), (4, 8)):
        of_user, of_kernel = samples[left]
        assert of_user[1] == of_kernel[1] == work + offset
        for control, _, data, data3, linear, physical, target in (of_user, of_kernel):
            assert IBS_OP_CTL(control).IbsOpVal
            said, memory = IBS_OP_DATA(data), IBS_OP_DATA3(data3)
            assert (memory.IbsLdOp, memory.IbsStOp) == (left == 1, left == 2)
            where = {1: 0x128, 2: 0x130}.get(left)
            assert linear == (0 if where is None else 0x4000_0000 + where)
            assert physical == (0 if where is None else 0x40_0000 + where)
            assert memory.IbsDcLinAddrValid == memory.IbsDcPhyAddrValid == (where is not None)
            assert memory.IbsOpMemWidth == (0 if where is None else 4)  # 8 bytes
            assert said.IbsOpBrnRet == said.IbsOpBrnTaken == (left == 4)
            assert target == (work + 11 if left == 4 else 0)


def test_a_saved_board_goes_on_with_it(tmp_path: Path) -> None:
    file = image(4)
    whole = Made(CORE, file, untimed=False)
    expected = whole.lines()
    end = whole.hardware.cpus[0].core.cycles
    for cycle in range(0, end * 9 // 10, end // 32):
        observers = Observers(1)
        made, other = Made(CORE, file, observers, untimed=False), Made(CORE, None, untimed=False)
        with carried_over(made, observers, cycle, other, tmp_path):
            other.output += made.output
            assert made.lines() == other.lines() == expected


def test_its_registers() -> None:
    """At reset, and which bits RDMSR gives back; no write faults but of ones that only hardware writes."""
    sample = IBS_OP_DATA2.DataSrcLo.mask | 1 << 4 | 1 << 5 | 3 << 6
    table = {
        0xC001_1031: (0, ALL_ONES, ALL_ONES),
        0xC001_1034: (0, ALL_ONES, ALL_ONES),
        0xC001_1036: (0, ALL_ONES, sample),
        0xC001_1039: (0, ALL_ONES, (1 << 52) - 1),
        0xC001_103A: (1 << 8, ALL_ONES, 1 << 8),
        0xC001_103B: (0, ALL_ONES, ALL_ONES),
    }
    *lines, _ = Made(CORE, assembled(REGISTERS.replace("NUMBERS", ", ".join(map(hex, table))))).lines()
    assert {number: tuple(line[:3]) for number, line in zip(table, lines, strict=True)} == table
    assert {line[3] for line in lines} == {2}  # in ring 3 both fault


def test_where_there_is_none() -> None:
    registers = Made("skylake", assembled("main: xor %eax, %eax\n ret\n")).hardware.cpus[0].system_registers
    assert registers.cpuid(0x8000_0001, 0)[2] >> 10 & 1 == 0
    of_amd = Made(CORE, assembled("main: xor %eax, %eax\n ret\n")).hardware.cpus[0].system_registers
    assert of_amd.cpuid(0x8000_0001, 0)[2] >> 10 & 1
    assert of_amd.cpuid(0x8000_001B, 0)[0] == 0xBFF
    assert of_amd.cpuid(0x8000_0000, 0)[0] >= 0x8000_0022
