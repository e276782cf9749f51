"""Every MSR of Intel's and AMD's counters, bit by bit, by guest code on the board pc in ring 0, and in ring 3.

What is expected are the tables that unit/pmu/test_perfmon_registers.py and test_core_counters_registers.py have from
the manuals: which bits WRMSR takes, which of those RDMSR gives back, and what is there at reset. In ring 3 both are
#GP(0), and RDPMC unless CR4.PCE allows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from emulator.board.board import Boot, Ended, Outside
from emulator.board.pc.image import read_pc_image
from emulator.board.pc.pc import Pc
from emulator.core_file.core_file import load_core
from emulator.machine import Hardware, Machine, MachineConfig
from perfemu.board_kinds import PC_PMUS
from pmu.model import PmuModel, model
from tests.unit.board.pc.images import assembled
from unit.pmu import test_core_counters_registers as amd
from unit.pmu import test_perfmon_registers as intel

ALL_ONES = (1 << 64) - 1
X2APIC = 0x834  # of the local APIC, which is in memory here
# A line for each register: what it reads first, the bits that are taken, and those that are read then; how many of
# RDMSR and WRMSR fault in ring 3. At the end, how often RDPMC faults there, without CR4.PCE and with it.
PROGRAM = """
main:   handle  13, refused
        handle  0x80, called
        movb    $0xEE, gates + 16 * 0x80 + 5    # for ring 3
        mov     $numbers, %r12d
each:   mov     (%r12), %ebp
        mov     %ebp, %ecx
        rdmsr
        shl     $32, %rdx
        or      %rdx, %rax
        mov     %rax, %r8
        call    puthex
        xor     %r13d, %r13d                    # taken
        xor     %r14d, %r14d                    # read
        xor     %r15d, %r15d                    # the bit
bit:    movl    $0, faults
        mov     $1, %eax
        mov     %r15d, %ecx
        shl     %cl, %rax
        mov     %rax, %r9
        call    write
        cmpl    $0, faults
        jne     1f
        bts     %r15, %r13
        mov     %ebp, %ecx
        rdmsr
        shl     $32, %rdx
        or      %rdx, %rax
        cmp     %rax, %r9
        jne     1f
        bts     %r15, %r14
1:      mov     %r8, %rax
        call    write
        inc     %r15d
        cmp     $64, %r15d
        jne     bit
        value   %r13
        value   %r14
        mov     $user, %r10d
        jmp     to_user
shown:  call    newline
        add     $4, %r12
        cmp     $numbers_end, %r12
        jne     each

        mov     $counts, %r10d
        mov     $1f, %r11d
        jmp     go
1:      value   faults
        mov     %cr4, %rax
        or      $0x100, %rax                    # PCE
        mov     %rax, %cr4
        mov     $1f, %r11d
        jmp     go
1:      value   faults
        call    newline
        xor     %edi, %edi
        jmp     exit

write:  mov     %ebp, %ecx                      # RAX to the register
        mov     %rax, %rdx
        shr     $32, %rdx
        wrmsr
        ret

to_user:
        mov     $1f, %r11d
        jmp     go
1:      value   faults
        jmp     shown

go:     movl    $0, faults                      # R10 in ring 3, R11 behind
        push    $USER_DATA
        push    $user_stack_top
        push    $0x202
        push    $USER_CODE
        push    %r10
        iretq
user:   mov     %ebp, %ecx
        rdmsr
        wrmsr
        int     $0x80
counts: xor     %ecx, %ecx
        rdpmc
        int     $0x80
called: mov     $stack_top, %esp
        jmp     *%r11

refused:
        addq    $2, 16(%rbx)                    # RDMSR, WRMSR and RDPMC have two bytes
        incl    faults
        ret
        .data
faults: .quad   0
        .section .rodata
        .balign 4
numbers:
        .long   NUMBERS
numbers_end:
        .bss
        .skip   4096
user_stack_top:
        .text
"""


@dataclass(frozen=True)
class Found:
    """What guest code finds of a register."""

    reset: int
    taken: int  # bits
    read: int
    faults: int = 2  # in ring 3


def run(kind: PmuModel, core: str, counters: int, numbers: Sequence[int]) -> tuple[list[Found], list[int]]:
    hardware = Hardware(MachineConfig("x86_64", load_core(core), 64 << 20, most_instructions=10_000_000))
    bank = hardware.cpus[0].core.add_bank(kind.bank_size(counters))
    pmus = [PC_PMUS[kind.driver](bank, kind, counters)]
    output = bytearray()
    image = assembled(PROGRAM.replace("NUMBERS", ", ".join(map(hex, numbers))))
    board = Pc(hardware, Boot(read_pc_image(image)), Outside(output.extend, lambda text: None), pmus)
    Machine(hardware, board).run_to_the_end()
    assert (board.ended, board.exit_status) == (Ended.STATUS, 1)
    *lines, last = ([int(word, 16) for word in line.split()] for line in output.decode().splitlines())
    return [Found(*line) for line in lines], last


def of_intels(row: intel.Row) -> Found:
    match row.kind:
        case "rw":
            return Found(row.reset, row.bits, row.bits)
        case "command":
            return Found(row.reset, row.bits, 0)
        case "sign-extended":  # the upper half is ignored, and bit 31 is copied to all above it
            return Found(row.reset, ALL_ONES, row.bits >> 1)
    return Found(row.reset, 0, 0)


def of_amds(row: amd.Row) -> Found:
    taken = 0 if row.kind == "ro" else row.bits if row.faults else ALL_ONES
    return Found(row.reset, taken, row.bits)


@pytest.mark.parametrize("version", range(2, 7))
def test_intels_registers(version: int) -> None:
    kind = replace(model("skylake"), version=version)
    table = list(intel.rows(version, 3, metrics=False))
    found, rdpmc = run(kind, "ideal", intel.N, [row.number for row in table])
    assert dict(zip((row.name for row in table), found, strict=True)) == {row.name: of_intels(row) for row in table}
    assert rdpmc == [1, 0]


@pytest.mark.parametrize("core", ["zen4", "zen5"])
def test_amds_registers(core: str) -> None:
    table = [row for row in amd.ROWS if row.number != X2APIC]
    found, rdpmc = run(model(core), core, amd.N, [row.number for row in table])
    assert dict(zip((row.name for row in table), found, strict=True)) == {row.name: of_amds(row) for row in table}
    assert rdpmc == [1, 0]
