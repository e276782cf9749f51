"""Far transfers as branch records, on the board pc: system calls, software interrupts, exceptions, an interrupt, and
what returns from them, as a guest that has armed its unit finds them."""

from __future__ import annotations

import pytest

from tests.unit.board.pc.images import assembled
from tests.unit.board.pc.test_branch_records import UNITS, Made, Unit

# Prints the addresses of LABELS; then (from, to, what else is known) of the entries, the newest first.
LABELS = ("user", "called", "system_call", "sysret", "user_end", "stubs", "iret", "last_iret", "waits", "far_target")
PROGRAM = """
main:   handle  6, undefined
        handle  0x80, called
        handle  0x90, interrupted
        movb    $0xEE, gates + 16 * 0x80 + 5    # for ring 3
        movabs  $common, %rax                   # where its IRETQ is
1:      inc     %rax
        cmpw    $0xCF48, (%rax)
        jne     1b
        mov     %eax, iret_at
        call    apic_on
        put     0xC0000081, 0x00130008 << 32    # STAR
        mov     $0xC0000082, %ecx               # LSTAR
        mov     $system_call, %eax
        xor     %edx, %edx
        wrmsr
        put     0xC0000084, 0x200
        put     SELECT, SELECTED
        put     ENABLE, ENABLED
        apic_write 0x310, $0
        apic_write 0x300, $0x40090              # to itself
        sti
waits:  nop
        cli
        push    $CODE
        push    $far_target
        lretq
far_target:
        push    $USER_DATA
        push    $user_stack_top
        push    $2
        push    $USER_CODE
        push    $user
last_iret:
        iretq
        .balign 64
user:   nop                                     # 0
        syscall                                 # 1
        ud2                                     # 3
        int     $0x80                           # 5
        .balign 64
user_end:
system_call:
        nop
sysret: sysretq

undefined:
        addq    $2, 16(%rbx)
        ret

interrupted:
        call    end_of_interrupt
        ret

called: put     ENABLE, 0
        .irp    label, user, called, system_call, sysret, user_end, stubs
        mov     $\\label, %eax
        call    puthex
        .endr
        mov     iret_at, %eax
        call    puthex
        .irp    label, last_iret, waits, far_target
        mov     $\\label, %eax
        call    puthex
        .endr
        call    newline
        xor     %r11d, %r11d
next:   mov     %r11d, %r13d
        TOP
        imul    $STEP, %r13d, %r13d
        lea     FROM(%r13d), %ecx
        call    show
        lea     TO(%r13d), %ecx
        call    show
        lea     INFO(%r13d), %ecx
        call    show
        call    newline
        inc     %r11d
        cmp     $ENTRIES, %r11d
        jne     next
        xor     %edi, %edi
        jmp     exit
show:   rdmsr
        shl     $32, %rdx
        or      %rdx, %rax
        call    puthex
        ret
        .bss
        .balign 16
iret_at: .skip  8
        .skip   4096
user_stack_top:
        .text
"""
TOP_OF_A_RING = """
        mov     $TOP_REGISTER, %ecx
        rdmsr
        sub     %r11d, %eax
        and     $ENTRIES - 1, %eax
        mov     %eax, %r13d
"""
VALID = 1 << 63  # LastBranchToIp
OTHER_BRANCH = 8  # BR_TYPE
INFO = {"lbr": 0xDC0, "arch_lbr": 0x1200, "amd_lbr": 0xC001_0301}
# Far transfers alone: of both levels, what leads to privilege 3, to 0, and all but them.
SELECTED = {
    "lbr": (0xFC, 0xFD, 0xFE, 0x100),
    "arch_lbr": (0x400007, 0x400005, 0x400003, 0x3F0007),
    "amd_lbr": (0xFC, 0xFD, 0xFE, 0x100),
}


def records(name: str, selected: int) -> tuple[dict[str, int], list[tuple[int, int, int]]]:
    """Where its labels are, and what it has recorded, the oldest first."""
    unit: Unit = UNITS[name]
    enable, bit = unit.enable
    in_select = enable == unit.select
    values = {
        "TOP_REGISTER": unit.top, "SELECT": unit.select, "ENABLE": enable, "STEP": unit.step, "FROM": unit.first[0],
        "TO": unit.first[1], "INFO": INFO[name], "ENTRIES": unit.entries,
        "SELECTED": selected & ~bit if in_select else selected, "ENABLED": selected if in_select else bit,
    }  # fmt: skip
    text = PROGRAM.replace("        TOP\n", TOP_OF_A_RING if unit.top is not None else "")
    definitions = [f"        .set {each}, {value}\n" for each, value in values.items() if value is not None]
    first, *rows = Made(unit.core, assembled("".join(definitions) + text)).lines()
    found = [(source, target, info) for source, target, info in rows if source]
    return dict(zip(LABELS, first, strict=True)), found[::-1]


def expected(at: dict[str, int]) -> list[tuple[int, int, bool]]:
    """(from, to, whether that is to privilege 3)"""

    def gate(vector: int) -> int:
        return at["stubs"] + 16 * vector

    user = at["user"]
    return [
        (at["waits"] + 1, gate(0x90), False),  # behind the instruction that STI shadows
        (at["iret"], at["waits"] + 1, False),
        (at["far_target"] - 2, at["far_target"], False),  # LRETQ
        (at["last_iret"], user, True),
        (user + 1, at["system_call"], False),
        (at["sysret"], user + 3, True),
        (user + 3, gate(6), False),  # a fault's is the instruction's
        (at["iret"], user + 5, True),
        (user + 5, gate(0x80), False),  # as INT's
    ]


@pytest.fixture(params=UNITS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_all(name: str) -> None:
    at, found = records(name, SELECTED[name][0])
    address = VALID - 1 if name == "amd_lbr" else ~0
    assert [(source, target & address) for source, target, _ in found] == [each[:2] for each in expected(at)]
    if name == "arch_lbr":
        assert {info >> 56 & 15 for _, _, info in found} == {OTHER_BRANCH}
    if name == "amd_lbr":
        assert all(target & VALID for _, target, _ in found)
    else:
        assert {info >> 63 for _, _, info in found} == {0}  # none is mispredicted
        cycles = [info & 0xFFFF for _, _, info in found]  # since the one before; an instruction takes one
        assert [number for number, each in enumerate(cycles) if not each] == [0, 6]  # UD2, where SYSRET led


@pytest.mark.parametrize("to_user", [True, False])
def test_by_the_privilege_that_they_lead_to(name: str, to_user: bool) -> None:
    at, found = records(name, SELECTED[name][1 if to_user else 2])
    sources = [source for source, _, _ in found]
    assert sources == [source for source, _, to_3 in expected(at) if to_3 == to_user]


def test_each_once_beside_all_others(name: str) -> None:
    """RETF, which counts as a return, is no near one."""
    at, found = records(name, UNITS[name].both)
    pairs = [(source, target & VALID - 1) for source, target, _ in found]
    assert [pairs.count(row[:2]) for row in expected(at)[2:]] == [1] * 7


def test_not_where_they_are_not_selected(name: str) -> None:
    at, found = records(name, SELECTED[name][3])
    assert found
    assert not {row[:2] for row in expected(at)} & {(source, target & VALID - 1) for source, target, _ in found}
