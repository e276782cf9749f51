"""Intel's debug store on the board pc, as its guest programs it: BTS and PEBS write records where the guest's page
tables say, of the levels that were asked for; registers, the interrupt at the threshold, a saved board that goes on."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from emulator.board.board import Ended
from emulator.board.observers import Observers
from emulator.sysregs import Msr
from tests.unit.board.carried_over import carried_over
from tests.unit.board.pc.images import assembled
from tests.unit.board.pc.test_branch_records import ALL, CALL, OVERFLOW, RETURN, Made
from tests.unit.board.pc.test_pmu_registers import PROGRAM as REGISTERS

MISC_ENABLE = Msr(0x1A0)
AREA = 0x40_0000  # in RAM; at ELSEWHERE linearly
ELSEWHERE = 0x4000_0000
BUFFER = 0x1000  # behind the area
PEBS_BUFFER = 0x3000
TR_BTS, BTINT, OFF_OS, OFF_USR = 1 << 6 | 1 << 7, 1 << 8, 1 << 9, 1 << 10
CORES = "skylake", "redwood-cove"
INT = 14  # in `user`: the last of what leaves privilege 3
# What `user` is: test_branch_records.PROGRAM's. Prints where it is, and how often the PMU has interrupted.
PROGRAM = f"""
        .set    AREA, {ELSEWHERE:#x}
        .macro  word at, value
        movabs  $\\value, %rax
        mov     %rax, AREA + 8 * \\at
        .endm

main:   handle  0x80, called
        handle  0x51, interrupted
        movb    $0xEE, gates + 16 * 0x80 + 5    # for ring 3
        movq    ${AREA | 0x87:#x}, tables + 0x2000 + 0x1000 # the first of the second GiB
        mov     %cr3, %rax
        mov     %rax, %cr3
        call    apic_on
        mov     $AREA, %ebx
        .irp    n, 0, 1
        word    \\n, AREA + {BUFFER:#x}
        .endr
        word    2, AREA + {BUFFER:#x} + BTS_BYTES
        word    3, AREA + {BUFFER:#x} + BTS_THRESHOLD
        .irp    n, 4, 5
        word    \\n, AREA + {PEBS_BUFFER:#x}
        .endr
        word    6, AREA + {PEBS_BUFFER:#x} + 0x800
        word    7, AREA + {PEBS_BUFFER:#x} + 1  # one record
        word    8, -PERIOD
        put     0x600, DS
        apic_write 0x340, $0x51                 # LVT_PMC
        put     0x38F, 0
        put     0x186, SELECTED
        put     0xC1, -PERIOD
        put     0x3F1, PEBS
        put     0x1D9, CONTROL
        put     0x38F, 1
        .if     SPOILED
        .irp    n, 1, 5
        word    \\n, SPOILED
        .endr
        .endif
        push    $USER_DATA
        push    $user_stack_top
        push    $0x202
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

called: put     0x1D9, 0
        put     0x3F1, 0
        mov     $user, %eax
        call    puthex
        value   interrupts
        call    newline
        xor     %edi, %edi
        jmp     exit

interrupted:
        incl    interrupts
        put     0x390, 1 << 62 | 1
        apic_write 0x340, $0x51
        jmp     end_of_interrupt
        .data
interrupts:
        .quad   0
        .bss
        .skip   4096
user_stack_top:
        .text
"""
FORMAT_3 = struct.Struct("<25Q")
BASIC_4 = struct.Struct("<4Q")  # of format 4: format and size, RIP, applicable counters, TSC


def image(
    control: int,
    pebs: int = 0,
    *,
    buffer: int = 0x1000,
    threshold: int = 0x800,
    area: int = ELSEWHERE,
    spoiled: int = 0,
) -> bytes:
    """`threshold`: in bytes from the buffer's begin. `spoiled`: what its software makes of both indices at last. PEBS
    records the instruction of counter 0's overflow."""
    values = {
        "CONTROL": control, "PEBS": pebs, "SELECTED": 0x0051_00C0 if pebs else 0, "PERIOD": OVERFLOW,
        "BTS_BYTES": buffer, "BTS_THRESHOLD": threshold, "DS": area,
        "SPOILED": spoiled,
    }  # fmt: skip
    return assembled("".join(f"        .set {name}, {value}\n" for name, value in values.items()) + PROGRAM)


def words(made: Made, offset: int, count: int) -> tuple[int, ...]:
    data = made.hardware.memory.view(AREA >> 12, 4)[offset : offset + 8 * count]
    return struct.unpack(f"<{count}Q", data)


def stored(made: Made) -> list[tuple[int, int, int]]:
    """BTS's records."""
    base, index, *_ = words(made, 0, 4)
    flat = words(made, BUFFER, (index - base) // 8)
    return list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))


def of_user(records: list[tuple[int, int, int]], user: int) -> list[tuple[int, int]]:
    """Within it."""
    near = [(source - user, target - user) for source, target, _ in records]
    return [(source, target) for source, target in near if 0 <= source < 32 and 0 <= target < 32]


@pytest.mark.parametrize(("levels", "user", "kernel"), [(OFF_OS, True, False), (OFF_USR, False, True), (0, True, True)])
def test_bts_stores_the_branches_of_each_level(levels: int, user: bool, kernel: bool) -> None:
    made = Made("skylake", image(TR_BTS | BTINT | levels))
    ((place, interrupts),) = made.lines()
    found = of_user(stored(made), place)
    assert found == (ALL if user else [])
    others = [(source - place, target - place) for source, target, _ in stored(made) if source and target]
    others = [each for each in others if each not in found]
    gate = [source for source, target in others if source == INT]  # what leaves privilege 3
    entry = [source for source, target in others if target == 0]  # ... and enters it
    assert (len(gate), len(entry)) == (user, kernel)
    assert (len(others) > 2) == kernel
    assert {flags for *_, flags in stored(made)} == {1 << 4}  # all predicted
    assert interrupts == 0


def test_nothing_is_stored_unless_it_is_told_where() -> None:
    made = Made("skylake", image(TR_BTS | OFF_OS | OFF_USR))
    made.lines()
    assert stored(made) == []


def test_bts_interrupts_at_its_threshold_and_a_full_buffer_ends_it() -> None:
    """Three records have room; each that ends at the threshold or behind it asks for an interrupt: two. The first of
    these interrupts has the third record."""
    made = Made("skylake", image(TR_BTS | BTINT | OFF_OS, buffer=72, threshold=48))
    ((place, interrupts),) = made.lines()
    assert of_user(stored(made), place) == ALL[:2]
    assert [source - place for source, *_ in stored(made)] == [*(source for source, _ in ALL[:2]), ALL[1][1]]
    assert interrupts == 2


def test_without_interrupts_the_buffer_is_circular() -> None:
    """Of three records, the last: the ninth is the third of the third round, and leaves privilege 3."""
    made = Made("skylake", image(TR_BTS | OFF_OS, buffer=72))
    ((place, interrupts),) = made.lines()
    flat = words(made, BUFFER, 9)
    rows = list(zip(flat[::3], flat[1::3], strict=True))
    *others, last = [(source - place, target - place) for source, target in rows]
    assert (others, last[0]) == ([CALL, RETURN], INT)
    assert interrupts == 0


@pytest.mark.parametrize("core", CORES)
def test_pebs_records_the_instruction_of_an_overflow(core: str) -> None:
    """The sixth of user mode, a call; the interrupt comes with it, since the threshold is one record."""
    made = Made(core, image(0, pebs=1))
    ((place, interrupts),) = made.lines()
    base, index, *_ = words(made, 32, 4)
    if core == "skylake":
        assert (index - base) // FORMAT_3.size == 2  # 14 instructions: the twelfth is the other
        record = words(made, PEBS_BUFFER, 25)
        assert (record[1], record[18], record[22]) == (place + 16, 1, place + 5)
        assert record[5] & 0xFFFF_FFFF == 0 or record[4] == 2  # RCX, which counts down
        assert record[24] > 0
    else:
        record = words(made, PEBS_BUFFER, 4)
        assert (record[1], record[2]) == (place + 5, 1)
        assert record[0] >> 48 == BASIC_4.size
    assert interrupts == 2


@pytest.mark.parametrize(("control", "pebs", "what"), [(TR_BTS, 0, "BTS"), (0, 1, "PEBS")])
def test_an_area_of_nothing_is_told_of(control: int, pebs: int, what: str) -> None:
    made = Made("skylake", image(control, pebs, area=0x7F_FFFF_F000))
    ((_, interrupts),) = made.lines()
    assert (interrupts, made.board.ended) == (pebs, Ended.STATUS)  # the counter interrupts, as any, and is not reloaded
    (told,) = made.told
    assert told.startswith(f"Intel {what}")
    assert "0x7ffffff000" in told


@pytest.mark.parametrize("spoiled", [(1 << 64) - 8, 8, ELSEWHERE + 0x3FF0, ELSEWHERE])
def test_an_index_that_has_become_wrong_leads_nowhere(spoiled: int) -> None:
    """Behind all memory, before the buffers, beyond their ends, at the area itself."""
    made = Made("skylake", image(TR_BTS | BTINT, 1, spoiled=spoiled))
    made.lines()
    assert words(made, 8, 1) == words(made, 40, 1) == (spoiled,)  # where they would be if a record had been written


@pytest.mark.parametrize("file", [image(TR_BTS | BTINT, threshold=120), image(0, pebs=1)], ids=["bts", "pebs"])
def test_a_saved_board_goes_on_with_it(file: bytes, tmp_path: Path) -> None:
    whole = Made("skylake", file)
    expected = whole.lines()
    records = words(whole, 0, 0x800)
    end = whole.hardware.cpus[0].core.cycles
    for cycle in range(0, end * 9 // 10, end // 32):
        observers = Observers(1)
        made, other = Made("skylake", file, observers), Made("skylake", None)
        with carried_over(made, observers, cycle, other, tmp_path):
            other.output += made.output
            for each in (made, other):
                assert each.lines() == expected
                assert words(each, 0, 0x800) == records


@pytest.mark.parametrize("core", CORES)
def test_their_registers(core: str) -> None:
    """At reset, the bits that WRMSR takes, and those that RDMSR gives back."""
    word = (1 << 64) - 1
    table = {0x600: (0, word, word), 0x3F6: (0, 0xFFFF, 0xFFFF)}
    table[0x3F1] = (
        (0, 0xF_0000_000F, 0xF_0000_000F) if core == "skylake" else (0, 0x7_0000_00FF, 0x7_0000_00FF)
    )  # no slots without time
    if core == "redwood-cove":
        table[0x3F2] = (0, 0xFF00_000F, 0xFF00_000F)
    made = Made(core, assembled(REGISTERS.replace("NUMBERS", ", ".join(map(hex, table)))))
    *lines, _ = made.lines()
    assert {number: tuple(line[:3]) for number, line in zip(table, lines, strict=True)} == table
    registers = made.hardware.cpus[0].system_registers
    assert registers.cpuid(1, 0)[3] >> 21 & registers.cpuid(1, 0)[2] >> 2 & 1  # DS, DTES64


def test_processors_without_say_so() -> None:
    for core, unavailable in (("skylake", 0), ("redwood-cove", 1 << 11), ("ideal", 1 << 11 | 1 << 12)):
        board = Made(core, assembled("main: xor %eax, %eax\n ret\n")).board
        values = board.cpus[0].cpu.system_registers
        assert values.read(MISC_ENABLE) & (1 << 11 | 1 << 12) == unavailable
        assert (values.cpuid(1, 0)[3] >> 21 & 1) == (core != "ideal")
