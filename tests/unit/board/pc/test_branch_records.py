"""Branch records on the board pc, as its guest programs them by RDMSR and WRMSR: which branches they keep at which
level, what freezes them, which bits their registers have, and that a saved board goes on with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from emulator.board.board import Boot, Ended, Outside
from emulator.board.observers import Observers
from emulator.board.pc.image import read_pc_image
from emulator.board.pc.pc import Pc
from emulator.core_file.core_file import load_core
from emulator.machine import Hardware, Machine, MachineConfig
from perfemu.board_kinds import BOARDS
from perfemu.cores import core_for, pmu_of
from tests.unit.board.carried_over import carried_over
from tests.unit.board.pc.images import assembled
from tests.unit.board.pc.test_pmu_registers import PROGRAM as REGISTERS

ALL_ONES = (1 << 64) - 1
FREEZE = 1 << 11  # IA32_DEBUGCTL.FREEZE_LBRS_ON_PMI, DebugCtl.FLBRI


@dataclass(frozen=True)
class Unit:
    """How a guest drives it: MSRs and their values. `user`, `kernel`, `calls`: what records these alone."""

    core: str
    entries: int
    select: int
    user: int
    kernel: int
    both: int
    calls: int  # of user mode
    enable: tuple[int, int]  # the register, and the bit in it; beside `select` or in it
    top: int | None  # the register that says which entry is the newest; None: it is the first
    first: tuple[int, int]  # registers: from, to
    step: int
    counter: tuple[int, int, int]  # registers: what it counts, its count, which of them do
    clear: int  # the register that clears the status

    @property
    def instructions(self) -> int:
        """INST_RETIRED at privilege 3, which interrupts."""
        return 0xC0 | 1 << 16 | 1 << 20 | 1 << 22


INTEL = (0x186, 0xC1, 0x38F)
UNITS = {
    "lbr": Unit(
        "skylake", 32, 0x1C8, 1, 2, 0, 0x1E5, (0x1D9, 1), 0x1C9, (0x680, 0x6C0), 1, INTEL, 0x390,
    ),  # suppressed: privilege 0, privilege 3; for `calls` all but near ones
    "arch_lbr": Unit(
        "redwood-cove", 32, 0x14CE, 0x7F0005, 0x7F0003, 0x7F0007, 0x180005, (0x14CE, 1), None, (0x1500, 0x1600), 1,
        INTEL, 0x390,
    ),
    "amd_lbr": Unit(
        "zen4", 16, 0xC000_010E, 1, 2, 0, 0x1E5, (0xC000_010F, 1 << 6), None, (0xC001_0300, 0xC001_0301), 2,
        (0xC001_0200, 0xC001_0201, 0xC000_0301), 0xC000_0302,
    ),
}  # fmt: skip

# Prints (from, to) of the branches in `user` that are kept, newest first, as offsets there, and how many others are: at
# the NMI of a counter that overflows behind OVERFLOW instructions, and at the end; each line of the former begins with
# bit 58 of the status. `user` calls three times. R8, R9, R10: of the last entry that was read.
PROGRAM = """
        .macro  get register
        mov     $\\register, %ecx
        rdmsr
        shl     $32, %rdx
        or      %rdx, %rax
        .endm

main:   handle  0x80, called
        handle  2, interrupted
        movb    $0xEE, gates + 16 * 0x80 + 5    # for ring 3
        call    apic_on
        apic_write 0x340, $0x400                # LVT_PMC: an NMI
        put     COUNTS, 0
        put     SELECTS, INSTRUCTIONS
        put     COUNTER, -OVERFLOW
        put     DEBUG_CONTROL, FREEZE
        put     SELECT, SELECTED
        put     ENABLE, ENABLED
        put     COUNTS, 1
        push    $USER_DATA
        push    $user_stack_top
        push    $2
        push    $USER_CODE
        push    $user
        iretq
        .balign 64
user:   mov     $3, %ecx                        # 0
1:      call    f                               # 5
        dec     %ecx                            # 10
        jnz     1b                              # 12
        int     $0x80                           # 14
f:      ret                                     # 16
        .balign 64
user_end:

called: put     ENABLE, DISABLED
        call    shown
        xor     %edi, %edi
        jmp     exit

interrupted:
        get     STATUS
        shr     $58, %rax
        and     $1, %eax
        call    puthex
        call    shown
        put     CLEAR, 1 << 58 | 1
        ret

# The newest is the first that is read.
shown:  push    %r11
        push    %r12
        push    %r13
        xor     %r11d, %r11d                    # its age
        xor     %r12d, %r12d                    # others
next:   mov     %r11d, %r13d
        TOP
        mov     %r13d, %ecx
        imul    $STEP, %ecx, %ecx
        mov     %ecx, %r8d
        add     $FROM, %ecx
        rdmsr
        shl     $32, %rdx
        or      %rdx, %rax
        mov     %rax, %r9
        lea     TO(%r8d), %ecx
        rdmsr
        mov     %eax, %r10d
        btr     $63, %r9                        # MisPredict
        test    %r9, %r9
        jz      3f
        mov     %r9d, %eax
        sub     $user, %eax
        cmp     $user_end - user, %eax
        jae     2f
        call    puthex
        mov     %r10d, %eax
        sub     $user, %eax
        call    puthex
        jmp     3f
2:      inc     %r12d
3:      inc     %r11d
        cmp     $ENTRIES, %r11d
        jne     next
        xor     %eax, %eax
        test    %r12d, %r12d
        setnz   %al
        shl     $8, %eax                        # 100: there are others
        call    puthex
        call    newline
        pop     %r13
        pop     %r12
        pop     %r11
        ret
        .bss
        .skip   4096
user_stack_top:
        .text
"""
TOP_OF_A_RING = """
        get     TOP_REGISTER
        mov     %eax, %ecx
        sub     %r11d, %ecx
        and     $ENTRIES - 1, %ecx
        mov     %ecx, %r13d
"""
CALL, RETURN, BACK = (5, 16), (16, 10), (12, 5)
ALL = [CALL, RETURN, BACK, CALL, RETURN, BACK, CALL, RETURN]
OVERFLOW = 6  # MOV, CALL, RET, DEC, JNZ, CALL
UNTIL_THEN = [CALL, RETURN, BACK, CALL]


def image(unit: Unit, selected: int, freeze: int) -> bytes:
    enable, bit = unit.enable
    in_select = enable == unit.select
    debug_has_it = enable == 0x1D9
    values = {
        "TOP_REGISTER": unit.top, "TOP": "", "SELECTS": unit.counter[0], "COUNTER": unit.counter[1],
        "COUNTS": unit.counter[2], "INSTRUCTIONS": unit.instructions, "OVERFLOW": OVERFLOW, "DEBUG_CONTROL": 0x1D9,
        "FREEZE": freeze, "SELECTED": selected & ~bit if in_select else selected, "SELECT": unit.select,
        "ENABLED": selected if in_select else bit | (freeze if debug_has_it else 0), "DISABLED": 0, "ENABLE": enable,
        "STEP": unit.step, "FROM": unit.first[0], "TO": unit.first[1], "ENTRIES": unit.entries, "CLEAR": unit.clear,
        "STATUS": 0x38E if unit.clear == 0x390 else 0xC000_0300,
    }  # fmt: skip
    text = PROGRAM.replace("        TOP\n", TOP_OF_A_RING if unit.top is not None else "")
    definitions = [f"        .set {name}, {value}\n" for name, value in values.items() if isinstance(value, int)]
    return assembled("".join(definitions) + text)


class Made:
    def __init__(
        self, name: str, file: bytes | None, observers: Observers | None = None, *, untimed: bool = True
    ) -> None:
        core = core_for(name, "x86_64", untimed=untimed)
        model = pmu_of(core, "x86_64", on_a_board=True)
        self.hardware = Hardware(MachineConfig("x86_64", core, 64 << 20, most_instructions=10_000_000))
        self.output = bytearray()
        self.told: list[str] = []
        outside = Outside(self.output.extend, self.told.append, observers=observers)
        boot = None if file is None else Boot(read_pc_image(file))
        board, _, _ = BOARDS["pc"].build(self.hardware, model, boot, outside)
        assert isinstance(board, Pc)
        self.board = board

    def lines(self) -> list[list[int]]:
        """What it prints until its end."""
        Machine(self.hardware, self.board).run_to_the_end()
        assert (self.board.ended, self.board.exit_status) == (Ended.STATUS, 1)
        return [[int(word, 16) for word in line.split()] for line in self.output.decode().splitlines()]


def flat(branches: list[tuple[int, int]], others: bool) -> list[int]:
    """As it is printed: newest first."""
    return [address for branch in reversed(branches) for address in branch] + [others << 8]


@pytest.fixture(params=UNITS)
def unit(request: pytest.FixtureRequest) -> Unit:
    return UNITS[request.param]


def test_branches_of_user_mode_alone(unit: Unit) -> None:
    frozen, last = Made(unit.core, image(unit, unit.user, FREEZE)).lines()
    assert frozen == [1, *flat(UNTIL_THEN, True)]  # IRETQ leads there from elsewhere
    assert last == flat(ALL, True)  # nothing is lost, for nothing of it happened while they stood still


def test_calls_alone(unit: Unit) -> None:
    _, last = Made(unit.core, image(unit, unit.calls, FREEZE)).lines()
    assert last == flat([CALL] * 3, False)


def test_branches_of_the_kernel_alone(unit: Unit) -> None:
    _, last = Made(unit.core, image(unit, unit.kernel, FREEZE)).lines()
    left, target, others = last
    assert (left, others) == (14, 0x100)  # INT, which leads there
    assert target > 32


def test_they_stand_still_at_the_overflow_or_do_not(unit: Unit) -> None:
    """The way to the handler has branches, too: an overflow that freezes comes before them."""
    frozen, _ = Made(unit.core, image(unit, unit.both, FREEZE)).lines()
    assert frozen == [1, *flat(UNTIL_THEN, True)]
    running, _ = Made(unit.core, image(unit, unit.both, 0)).lines()
    assert running[0] == 0
    assert running[-1] == 0x100


def test_a_saved_board_goes_on_with_them(unit: Unit, tmp_path: Path) -> None:
    """Wherever it is saved: before they are on, in the loop, while they are frozen."""
    file = image(unit, unit.user, FREEZE)
    whole = Made(unit.core, file)
    expected = whole.lines()
    end = whole.hardware.cpus[0].core.cycles
    for cycle in range(0, end * 9 // 10, end // 32):
        observers = Observers(1)
        made, other = Made(unit.core, file, observers), Made(unit.core, None)
        with carried_over(made, observers, cycle, other, tmp_path):
            other.output += made.output
            assert made.lines() == other.lines() == expected


# ---- bit by bit, as guest code finds them: at reset; which bits WRMSR takes, and of those RDMSR gives back

ROWS = {
    "lbr": {
        0x1C8: (0, 0x3FF, 0x3FF),
        0x1C9: (31, 0x1F, 0x1F),
        0x680: (0, ALL_ONES, ALL_ONES),
        0x69F: (0, ALL_ONES, ALL_ONES),
        0x6DF: (0, ALL_ONES, ALL_ONES),
        0xDDF: (0, 0xE000_0000_0000_FFFF, 0x8000_0000_0000_FFFF),  # there are no transactions
        0x1D9: (0, 0x5FC1, 0x5FC1),  # with those of BTS. Last: then there are branches
    },
    "arch_lbr": {
        0x14CE: (0, 0x7F000F, 0x7F000F),
        0x14CF: (32, 32, 32),
        0x1D9: (0, 0x5800, 0x5800),
        0x1200: (0, 0xFF00_0000_0000_FFFF, 0x9F00_0000_0000_FFFF),
        0x151F: (0, ALL_ONES, ALL_ONES),
        0x161F: (0, ALL_ONES, ALL_ONES),
    },
    "amd_lbr": {
        0xC000_010E: (0, ALL_ONES, 0x1FF),
        0x1D9: (0, 0x1800, 0x1800),
        0xC001_031E: (0, ALL_ONES, ALL_ONES),
        0xC001_031F: (0, ALL_ONES, ALL_ONES & ~(1 << 62 | 1 << 61)),  # none is speculative
        0xC000_010F: (0, ALL_ONES, 0x40),  # last
    },
}


def test_their_registers(unit: Unit) -> None:
    (name,) = (name for name, each in UNITS.items() if each is unit)
    table = ROWS[name]
    made = Made(unit.core, assembled(REGISTERS.replace("NUMBERS", ", ".join(map(hex, table)))))
    *lines, _ = made.lines()
    assert {number: tuple(line[:3]) for number, line in zip(table, lines, strict=True)} == table
    assert {line[3] for line in lines} == {2}  # in ring 3 both fault


def test_a_core_that_has_none_has_no_register_of_theirs() -> None:
    assert not load_core("ideal").units
    made = Made("ideal", assembled("main: xor %eax, %eax\n ret\n"))
    registers = made.hardware.cpus[0].system_registers
    assert not made.board.cpus[0].msr_names.keys() & {0x1C8, 0x1C9, 0x14CE, 0x680, 0xC000_010E}
    assert registers.cpuid(7, 0)[3] >> 19 & 1 == 0


def test_with_another_pmu_than_the_cores_own_they_are_not_there() -> None:
    """`--pmu skylake` on a zen5, and the other way."""
    for name, pmu in (("zen5", "skylake"), ("skylake", "zen5")):
        core = core_for(name, "x86_64", [f"pmu.x86_64={pmu}"], untimed=True)
        hardware = Hardware(MachineConfig("x86_64", core, 64 << 20))
        model = pmu_of(core, "x86_64", on_a_board=True)
        outside = Outside(lambda data: None, pytest.fail)
        board, _, _ = BOARDS["pc"].build(hardware, model, Boot(read_pc_image(assembled("main: ret\n"))), outside)
        assert isinstance(board, Pc)
        assert not board.cpus[0].msr_names.keys() & {0x1C8, 0xC000_010E}
