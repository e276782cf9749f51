"""BRBE on the board virt, for guests at EL1: which branches it records at which level, what an overflow of the PMU does
to it, that EL0 has none of it, and that a saved board goes on with it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from emulator.board import saved_board
from emulator.board.board import Boot, Ended, Outside
from emulator.board.image import read_image
from emulator.board.kept import NotKept
from emulator.board.observers import Observers
from emulator.board.virt import Virt
from emulator.board.virt_tree import RAM_BASE
from emulator.machine import Hardware, Machine, MachineConfig
from perfemu.board_kinds import BOARDS
from perfemu.cores import core_for, pmu_of
from pmu.arm.brbe_registers import BRBCR_EL1, BRBFCR_EL1, BranchType, BRBINFn_EL1, Valid
from tests.unit.board.booted import OFF, START
from tests.unit.board.carried_over import carried_over
from tests.unit.native.bare import assemble

RECORDS = 32
# BRBCR_EL1, BRBFCR_EL1, BRBSRC0_EL1, BRBTGT0_EL1, BRBINF0_EL1, BRBIDR0_EL1
CR, FCR, IDR = "s2_1_c9_c0_0", "s2_1_c9_c0_1", "s2_1_c9_c2_0"
ALL = BRBFCR_EL1.make(DIRECT=1, INDIRECT=1, RTN=1, INDCALL=1, DIRCALL=1, CONDDIR=1)
# EL0 calls and returns three times, and asks for BRBCR_EL1, which is undefined there; then the records at X10.
# The PMU's counter 0 overflows behind SIX instructions of EL0.
PROGRAM = """
        b       begin
        .balign 0x800
vectors: .org   vectors + 0x400         // from EL0
        mrs     x9, esr_el1
        movz    x10, #0x4020, lsl #16
        add     x10, x10, #1024
        str     x9, [x10]
        b       taken
        .org    vectors + 0x800
begin:  adr     x0, vectors
        msr     vbar_el1, x0
        mrs     x9, id_aa64dfr0_el1
        movz    x10, #0x4020, lsl #16
        str     x9, [x10, #1032]
        mrs     x9, IDR
        str     x9, [x10, #1040]
        movz    x0, #0x8                // INST_RETIRED, at EL0 alone
        movk    x0, #0x8000, lsl #16
        msr     pmevtyper0_el0, x0
        mov     x0, #-6
        mov     w0, w0
        msr     pmevcntr0_el0, x0
        mov     x0, #1
        msr     pmcntenset_el0, x0
        msr     pmcr_el0, x0
        ldr     x0, =FUNCTION
        msr     FCR, x0
        ldr     x0, =CONTROL
        msr     CR, x0
        isb
        adr     x0, user
        msr     elr_el1, x0
        msr     spsr_el1, xzr
        eret
user:   mov     x1, #3                  // 0
1:      bl      f                       // 4
        subs    x1, x1, #1              // 8
        b.ne    1b                      // 12
        mrs     x2, CR                  // 16
f:      ret                             // 20
taken:  mrs     x2, FCR
        mov     x0, #PAUSED
        msr     FCR, x0
        isb
        movz    x10, #0x4020, lsl #16
        str     x2, [x10, #1048]
        adr     x11, user
        str     x11, [x10, #1056]
        READ
        sys     #1, c7, c2, #4          // BRB IALL
        mrs     x0, s2_1_c8_c0_0
        str     x0, [x10, #1064]
        mov     x0, #0x42
        msr     s2_1_c9_c1_0, x0        // BRBINFINJ_EL1
        sys     #1, c7, c2, #5          // BRB INJ
        mrs     x0, s2_1_c8_c0_0
        str     x0, [x10, #1072]
"""
ENTRIES = 2 << 20  # in RAM
LITERALS = "        .ltorg"
CALL, RETURN, BACK = (4, 20), (20, 8), (12, 4)
WHOLE = [CALL, RETURN, BACK, CALL, RETURN, BACK, CALL, RETURN]


def program(control: int, function: int, folder: Path) -> bytes:
    """The first sixteen records are stored: BRBSRC<n>_EL1, TGT and INF each."""
    reads = ""
    for n in range(16):
        for place, op2 in enumerate((1, 2, 0)):
            reads += f"        mrs x0, s2_1_c8_c{n}_{op2}\n        str x0, [x10, #{24 * n + 8 * place}]\n"
    text = PROGRAM.replace("        READ\n", reads).replace("PAUSED", str(BRBFCR_EL1.PAUSED.mask))
    for name, value in (("CONTROL", control), ("FUNCTION", function), ("FCR", FCR), ("IDR", IDR), (" CR", f" {CR}")):
        text = text.replace(name, str(value))
    return assemble("aarch64", START + text + OFF + LITERALS, folder)


class Made:
    def __init__(
        self,
        image: bytes | None,
        observers: Observers | None = None,
        *,
        core: str = "cortex-a72",
        untimed: bool = True,
    ) -> None:
        described = core_for(core, "aarch64", untimed=untimed, units=["brbe"])
        self.hardware = Hardware(MachineConfig("aarch64", described, 16 << 20, most_instructions=100_000))
        outside = Outside(lambda data: None, pytest.fail, observers=observers)
        boot = None if image is None else Boot(read_image(image, RAM_BASE))
        board, _, _ = BOARDS["virt"].build(self.hardware, pmu_of(described, "aarch64", on_a_board=True), boot, outside)
        assert isinstance(board, Virt)
        self.board, self.image = board, image

    def words(self) -> list[int]:
        """What it has stored, at its end."""
        Machine(self.hardware, self.board).run_to_the_end()
        assert self.board.ended is Ended.OFF
        return list(struct.unpack_from("<256Q", self.hardware.memory.view(ENTRIES >> 12)))


def records(words: list[int]) -> list[tuple[int, int, BRBINFn_EL1]]:
    """Newest first; addresses from `user` on."""
    user = words[1056 // 8]
    rows = [(words[3 * n] - user, words[3 * n + 1] - user, BRBINFn_EL1(words[3 * n + 2])) for n in range(16)]
    return [row for row in rows if row[2].VALID]


def branches(words: list[int]) -> list[tuple[int, int]]:
    """Of user mode, oldest first."""
    return [(source, target) for source, target, _ in reversed(records(words)) if 0 <= source < 24]


USER, KERNEL = BRBCR_EL1.make(E0BRE=1, CC=1, MPRED=1), BRBCR_EL1.make(E1BRE=1, CC=1, MPRED=1)
FAR = BRBCR_EL1.make(EXCEPTION=1, ERTN=1)


@pytest.mark.parametrize(
    ("control", "expected", "others"), [(USER, WHOLE, False), (KERNEL, [], True), (USER | KERNEL, WHOLE, True)]
)
def test_the_levels_that_are_asked_for(
    control: int, expected: list[tuple[int, int]], others: bool, tmp_path: Path
) -> None:
    """Of EL1 there is the branch behind its vector."""
    words = Made(program(control, ALL, tmp_path)).words()
    assert branches(words) == expected
    found = records(words)
    assert (len(found) > len(expected)) == others
    assert {row[2].EL for row in found} == {level for level, bit in ((0, USER), (1, KERNEL)) if control & bit & 3}
    kinds = {CALL: BranchType.DIRECT_LINK, RETURN: BranchType.RET, BACK: BranchType.DIRECT_COND}
    for source, target, information in found:
        assert information.VALID == Valid.FULL
        assert information.TYPE == kinds.get((source, target), BranchType.DIRECT_UNCOND)


def test_types_that_are_asked_for(tmp_path: Path) -> None:
    words = Made(program(USER, BRBFCR_EL1.make(RTN=1), tmp_path)).words()
    assert branches(words) == [RETURN] * 3


def test_an_overflow_stops_it_if_it_is_told_to(tmp_path: Path) -> None:
    """Behind MOV, BL, RET, SUBS, B.NE, BL; the interrupt itself is masked."""
    words = Made(program(USER | KERNEL | BRBCR_EL1.FZP.mask, ALL, tmp_path)).words()
    assert branches(words) == WHOLE[:4]
    assert len(records(words)) == 4
    assert words[1048 // 8] & BRBFCR_EL1.PAUSED.mask


def test_what_its_kernel_is_told(tmp_path: Path) -> None:
    words = Made(program(USER, ALL, tmp_path)).words()
    assert words[1032 // 8] >> 52 & 0xF == 1  # ID_AA64DFR0_EL1.BRBE
    assert words[1040 // 8] & 0xFF == RECORDS  # BRBIDR0_EL1.NUMREC
    assert words[1024 // 8] >> 26 == 0  # ESR_EL1.EC: undefined at EL0
    assert words[1064 // 8] == 0  # behind BRB IALL
    assert words[1072 // 8] == 0x42  # behind BRB INJ


def test_a_saved_board_goes_on_with_it(tmp_path: Path) -> None:
    image = program(USER | KERNEL | FAR, ALL, tmp_path)
    whole = Made(image)
    expected = whole.words()
    for cycle in range(1, whole.hardware.cpus[0].core.cycles - 20, 3):
        observers = Observers(1)
        made, other = Made(image, observers), Made(None)
        with carried_over(made, observers, cycle, other, tmp_path):
            assert made.words() == other.words() == expected


def test_a_board_that_cannot_be_saved_goes_on_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def state_of(part: object) -> object:
        raise NotKept(type(part).__name__)

    image = program(USER | KERNEL | FAR, ALL, tmp_path)
    whole = Made(image)
    expected = whole.words()
    monkeypatch.setattr(saved_board, "state_of", state_of)
    for cycle in range(1, whole.hardware.cpus[0].core.cycles - 20, 3):
        observers = Observers(1)
        made = Made(image, observers)
        machine = Machine(made.hardware, made.board)
        observers.at_cycle(0, cycle, machine.pause)
        machine.run_to_the_end()
        with pytest.raises(NotKept):
            saved_board.saved(made.board, made.hardware)
        made.board.go_on(None)
        assert made.words() == expected
