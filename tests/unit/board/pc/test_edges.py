"""Thresholds, inversion and edges of x86's select registers, by guest code on the board pc.

The cycles of stalls are the core's model's to say. What is derived is how four counters fit each other that start and
stop together: the cycles with a stall and those without (CMASK 1 and INV) are all cycles; and stalls (CMASK 1 and E),
of which there are some, begin no more often than they last cycles, and have a cycle without between any two.
"""

from __future__ import annotations

import pytest

from emulator.board.board import Boot, Ended, Outside
from emulator.board.pc.image import read_pc_image
from emulator.board.pc.pc import Pc
from emulator.core_file.core_file import load_core
from emulator.machine import Hardware, Machine, MachineConfig
from perfemu.board_kinds import PC_PMUS
from pmu.model import model
from tests.unit.board.pc.images import assembled

USERS, KERNEL, EDGE, ENABLE, INVERT, ONE = 1 << 16, 1 << 17, 1 << 18, 1 << 22, 1 << 23, 1 << 24
COUNTERS = 4
# Divisions that wait for each other, in a loop whose code is new to the caches.
PROGRAM = """
        .macro  set msr, low                    # clobbers RAX, RCX, RDX
        mov     $\\msr, %ecx
        mov     $\\low, %eax
        xor     %edx, %edx
        wrmsr
        .endm
main:   set     GLOBAL, 0
        SELECTS
        mov     $0x123456789, %rsi
        mov     $3, %ebx
        mov     $20, %edi
        set     GLOBAL, 15
1:      mov     %rsi, %rax
        .rept   20
        xor     %edx, %edx
        div     %rbx
        .endr
        dec     %edi
        jnz     1b
        set     GLOBAL, 0
        xor     %edi, %edi
1:      mov     %edi, %ecx
        rdpmc
        shl     $32, %rdx
        or      %rdx, %rax
        call    puthex
        inc     %edi
        cmp     $4, %edi
        jne     1b
        xor     %edi, %edi
        jmp     exit
"""
# Of Intel's and AMD's: the registers, the event of a stall (RESOURCE_STALLS.ANY, de_op_queue_empty), and cycles
PARTS = {
    "skylake": (0x38F, [0x186, 0x187, 0x188, 0x189], 0x01A2, 0x003C),
    "zen5": (0xC000_0301, [0xC001_0200, 0xC001_0202, 0xC001_0204, 0xC001_0206], 0x00A9, 0x0076),
}


@pytest.mark.parametrize("core", PARTS)
def test_counters_with_a_threshold_fit_each_other(core: str) -> None:
    control, selects, stall, cycles = PARTS[core]
    values = [stall, stall | ONE | INVERT, stall | ONE | EDGE, cycles]
    lines = (
        f"set {register:#x}, {value | USERS | KERNEL | ENABLE:#x}"
        for register, value in zip(selects, values, strict=True)
    )
    program = PROGRAM.replace("SELECTS", "\n".join(lines)).replace("GLOBAL", f"{control:#x}")
    hardware = Hardware(MachineConfig("x86_64", load_core(core), 64 << 20, most_instructions=1_000_000))
    kind = model(core)
    told: list[str] = []
    output = bytearray()
    pmus = [PC_PMUS[kind.driver](hardware.cpus[0].core.add_bank(kind.bank_size(COUNTERS)), kind, COUNTERS)]
    board = Pc(hardware, Boot(read_pc_image(assembled(program))), Outside(output.extend, told.append), pmus)
    Machine(hardware, board).run_to_the_end()
    assert (board.ended, board.exit_status, told) == (Ended.STATUS, 1, [])
    stalled, others, begun, all_cycles = (int(number, 16) for number in output.decode().split())
    assert stalled + others == all_cycles
    assert 0 < begun <= stalled
    assert begun <= others + 1
