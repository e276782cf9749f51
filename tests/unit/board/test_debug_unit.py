"""The guest's own debug registers: watchpoints, breakpoints and single steps, by bare-metal programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.board.board import Ended
from emulator.probes import Probe
from tests.unit.board.booted import Booted, boot
from tests.unit.board.test_virt import WITH_VECTORS

CORES = ("ideal", "cortex-a55", "cortex-a72")
IL, DEBUG_EVENT, WRITES = 1 << 25, 0x22, 1 << 6
WATCHPOINT, BREAKPOINT, SOFTWARE_STEP = 0x34 << 26, 0x30 << 26, 0x32 << 26
SAME_LEVEL = 1 << 26  # is added to the class
STEP_VALID, EXCLUSIVE = 1 << 24, 1 << 6
MDE, KDE, SS = 1 << 15, 1 << 13, 1
LOADS, STORES, EITHER = 1 << 3, 2 << 3, 3 << 3  # LSC
KERNEL, USER, BOTH = 1 << 1, 2 << 1, 3 << 1  # PAC, PMC
BYTES = 0xFF << 5

OPEN = "msr daifclr, #8\nmsr oslar_el1, xzr\n"
DATA = """
        b       1f
        .balign 64
data:   .quad   0x1111111111111111, 0x2222222222222222, 0, 0, 0, 0, 0, 0, 0
1:
"""


def control(mdscr: int) -> str:
    return f"mov x0, #{mdscr}\nmsr mdscr_el1, x0\nisb\n"


def watch(value: str, register: int, mdscr: int = MDE | KDE) -> str:
    """Code after which DBGWVR0_EL1 and DBGWCR0_EL1 are that; x1 is `data`."""
    return (
        f"{WITH_VECTORS}{DATA}{OPEN}"
        f"adr x1, data\nadd x0, x1, #{value}\nmsr dbgwvr0_el1, x0\n"
        f"movz x0, #{register & 0xFFFF}\nmovk x0, #{register >> 16}, lsl #16\nmsr dbgwcr0_el1, x0\n" + control(mdscr)
    )


def exception(booted: Booted) -> tuple[int, int, int]:
    """ESR, FAR, and where from, as the vector has seen them; zeros if it never ran."""
    return booted.register(10), booted.register(11), booted.register(12)


EIGHT = 1 | BOTH | BYTES  # E, at both levels, a doubleword
HIT, MISS = True, False


@pytest.mark.parametrize(
    ("value", "register", "instruction", "far"),
    [
        ("0", EIGHT | EITHER, "ldr x2, [x1]", 0),
        ("0", EIGHT | EITHER, "str x2, [x1]", 0),
        ("0", EIGHT | LOADS, "str x2, [x1]", None),
        ("0", EIGHT | STORES, "ldr x2, [x1]", None),
        ("0", EIGHT | EITHER, "ldr x2, [x1, #8]", None),
        ("8", EIGHT | EITHER, "ldp x2, x3, [x1]", 8),
        ("8", EIGHT | EITHER, "ldr q2, [x1], #16", 8),
        ("0", 1 | BOTH | EITHER | 0x10 << 5, "ldrb w2, [x1, #4]", 4),  # BAS: its fifth byte
        ("0", 1 | BOTH | EITHER | 0x10 << 5, "ldrb w2, [x1, #3]", None),
        ("0", 1 | BOTH | EITHER | 0x10 << 5, "ldr w2, [x1, #1]", 4),  # 1 to 4
        ("4", 1 | BOTH | EITHER | 0x3 << 5, "ldrh w2, [x1, #4]", 4),
        ("0", 1 | BOTH | EITHER | 0x5 << 5, "ldr x2, [x1]", None),  # not in one piece: reserved
        ("0", EIGHT | EITHER | 5 << 24, "ldrb w2, [x1, #31]", 31),  # MASK: 32 bytes
        ("0", EIGHT | EITHER | 5 << 24, "ldrb w2, [x1, #32]", None),
        ("0", 1 | USER | BYTES | EITHER, "ldr x2, [x1]", None),
        ("0", 1 | KERNEL | BYTES | EITHER, "ldr x2, [x1]", 0),
        ("0", 1 | USER | BYTES | EITHER, "ldtr x2, [x1]", 0),  # acts for EL0
        ("0", EIGHT | EITHER | 2 << 14, "ldr x2, [x1]", None),  # SSC: of another state
        ("0", EIGHT & ~1 | EITHER, "ldr x2, [x1]", None),
        ("0", EIGHT | LOADS, "ldxr x2, [x1]", 0),
        ("32", EIGHT | STORES, "dc zva, x1", 32),
        ("0", EIGHT | EITHER, "prfm pldl1keep, [x1]", None),
    ],
)
def test_what_a_watchpoint_hits(value: str, register: int, instruction: str, far: int | None, tmp_path: Path) -> None:
    source = watch(value, register) + f"adr x19, hit\nmov x2, #5\nhit: {instruction}\nmov x20, #9\n"
    booted = boot(source, tmp_path)
    assert (booted.board.ended, booted.messages) == (Ended.OFF, [])
    if far is None:
        assert (exception(booted), booted.register(20)) == ((0, 0, 0), 9)
        return
    stores = instruction.startswith(("st", "dc"))
    cause = WATCHPOINT + SAME_LEVEL | IL | DEBUG_EVENT | (WRITES if stores else 0)
    data = booted.register(1) & ~63
    assert exception(booted) == (cause, data + far, booted.register(19))
    if not stores:
        assert booted.register(2) == 5, "the exception comes before the access"


@pytest.mark.parametrize(
    ("mdscr", "before"),
    [(MDE, ""), (KDE, ""), (MDE | KDE, "msr daifset, #8"), (MDE | KDE, "mov x0, #1\nmsr oslar_el1, x0")],
)
def test_a_watchpoint_is_silent_where_debug_exceptions_are(mdscr: int, before: str, tmp_path: Path) -> None:
    booted = boot(watch("0", EIGHT | EITHER, mdscr) + f"{before}\nldr x2, [x1]\n", tmp_path)
    assert (exception(booted), booted.register(2)) == ((0, 0, 0), 0x1111_1111_1111_1111)


# Next to what is watched, over and over: all in one page.
LOOP = """
        mov     x4, #100
1:      ldr     x2, [x1, #16]
        add     x2, x2, #1
        stp     x2, x4, [x1, #16]
        add     x6, x1, #24
2:      ldaxr   x3, [x6]
        stlxr   w5, x3, [x6]
        cbnz    w5, 2b
        subs    x4, x4, #1
        b.ne    1b
"""


@pytest.mark.parametrize("core", CORES)
def test_watching_a_page_changes_no_count_and_no_time(core: str, tmp_path: Path) -> None:
    runs = [boot(watch("0", EIGHT | EITHER | on) + LOOP, tmp_path, core=core) for on in (0, 2 << 14)]
    runs += [boot(watch("0", EIGHT | EITHER) + LOOP, tmp_path, core=core)]
    for run in runs:
        core_ = run.cpus[0].core
        assert run.register(2) == 100
        assert core_.cycles == runs[0].cpus[0].core.cycles
        for probe in (Probe.INST_RETIRED, Probe.LOAD, Probe.STORE, Probe.BR_RETIRED):
            assert core_.total(probe) == runs[0].cpus[0].core.total(probe)


TO_USER = """
        adr     x0, user
        msr     elr_el1, x0
        mov     x0, #{state}
        msr     spsr_el1, x0
        adr     x1, data
        eret
        .balign 64
user:
"""
# Synchronous exceptions from EL0: kept are the last syndrome and address, and how many there were. The handler lets the
# instruction go on as what `again` says.
USER_VECTORS = """
        adr x0, vectors
        msr vbar_el1, x0
        isb
        b begin
        .balign 0x800
vectors: .org   vectors + 0x400
        mrs     x10, esr_el1
        lsr     x13, x10, #26
        cmp     x13, #0x15                  // SVC: the end
        b.eq    off
        add     x14, x14, #1
        mrs     x11, far_el1
        mrs     x12, elr_el1
        {again}
        eret
        .org    vectors + 0x800
begin:
"""


def at_user(again: str, state: int, prepare: str, code: str) -> str:
    return USER_VECTORS.format(again=again) + DATA + OPEN + prepare + TO_USER.format(state=state) + code + "svc #0\n"


@pytest.mark.parametrize("core", CORES)
def test_user_mode_is_stepped_by_its_kernel(core: str, tmp_path: Path) -> None:
    """SPSR_EL1.SS lets one instruction execute: five exceptions behind five instructions; the SVC has its own."""
    again = "mrs x15, spsr_el1\norr x15, x15, #1 << 21\nmsr spsr_el1, x15"
    code = "ldr x2, [x1]\nadd x2, x2, #1\nb 1f\nnop\n1: str x2, [x1, #16]\nldxr x3, [x1]\n"
    booted = boot(at_user(again, 1 << 21, control(SS), code), tmp_path, core=core)
    assert booted.board.ended is Ended.OFF
    assert booted.register(14) == 5
    assert booted.register(2) == 0x1111_1111_1111_1112
    assert booted.register(11) == 0, "no address belongs to a step"
    plain = boot(at_user(again, 0, "", code), tmp_path, core=core)
    assert plain.register(14) == 0
    user = [run.cpus[0].core.total(Probe.INST_RETIRED, 0) for run in (booted, plain)]
    assert user == [6, 6]  # with the SVC


def test_a_step_says_what_it_was(tmp_path: Path) -> None:
    again = "mov x15, #0\nmsr mdscr_el1, x15"  # no more steps
    stepped = boot(at_user(again, 1 << 21, control(SS), "ldxr x3, [x1]\n"), tmp_path)
    assert stepped.register(14) == 1
    at_once = boot(at_user("mrs x16, esr_el1\n" + again, 0, control(SS), "ldxr x3, [x1]\n"), tmp_path)
    assert at_once.register(14) == 1, "without SPSR_EL1.SS a step is due before the first instruction"
    assert at_once.register(16) == SOFTWARE_STEP | IL | DEBUG_EVENT
    assert at_once.register(3) == 0x1111_1111_1111_1111


@pytest.mark.parametrize("core", CORES)
def test_user_modes_breakpoint_and_watchpoint(core: str, tmp_path: Path) -> None:
    """Each time that the instruction comes: three breakpoints; the handler turns it off after the third."""
    prepare = f"adr x0, here\nmsr dbgbvr1_el1, x0\nmov x0, #{1 | USER | 0xF << 5}\nmsr dbgbcr1_el1, x0\n" + control(MDE)
    # the handler counts, and steps over by moving on
    again = "add x12, x12, #4\nmsr elr_el1, x12"
    code = "mov x4, #3\n1: nop\nhere: mov x5, #7\nsubs x4, x4, #1\nb.ne 1b\n"
    booted = boot(at_user(again, 0, prepare, code), tmp_path, core=core)
    assert (booted.register(14), booted.register(5)) == (3, 0)
    assert booted.board.ended is Ended.OFF


def test_a_breakpoint_of_another_level_is_passed(tmp_path: Path) -> None:
    source = WITH_VECTORS + OPEN
    source += f"adr x0, here\nmsr dbgbvr0_el1, x0\nmov x0, #{1 | USER | 0xF << 5}\nmsr dbgbcr0_el1, x0\n"
    booted = boot(source + control(MDE | KDE) + "here: mov x5, #7\n", tmp_path)
    assert (booted.register(5), exception(booted)) == (7, (0, 0, 0))


def test_the_kernels_own_breakpoint(tmp_path: Path) -> None:
    source = WITH_VECTORS + OPEN + "adr x19, here\n"
    source += f"msr dbgbvr5_el1, x19\nmov x0, #{1 | KERNEL | 0xF << 5}\nmsr dbgbcr5_el1, x0\n"
    booted = boot(source + control(MDE | KDE) + "here: mov x5, #7\n", tmp_path)
    assert exception(booted)[::2] == (BREAKPOINT + SAME_LEVEL | IL | DEBUG_EVENT, booted.register(19))
    assert booted.register(5) == 0


def test_a_kernel_that_steps_itself(tmp_path: Path) -> None:
    """MDSCR_EL1.SS and KDE, and PSTATE.D goes: a step is due before the next instruction."""
    source = WITH_VECTORS + OPEN + "msr daifset, #8\n" + control(SS | KDE) + "msr daifclr, #8\nhere: nop\n"
    booted = boot(source, tmp_path)
    assert exception(booted)[0] == SOFTWARE_STEP + SAME_LEVEL | IL | DEBUG_EVENT


def test_an_exception_return_that_is_stepped_steps_nothing_behind_it(tmp_path: Path) -> None:
    """The first return has one instruction stepped: the second, which would come back to itself for ever."""
    source = f"""
        msr     daifset, #8
        {control(SS | KDE)}
        adr     x19, second
        msr     elr_el1, x19
        mov     x0, #0x1c5              // EL1, and D is clear
        orr     x0, x0, #1 << 21        // SS
        msr     spsr_el1, x0
        eret
second: eret
"""
    booted = boot(WITH_VECTORS + OPEN + source, tmp_path, instructions=1000)
    cause = SOFTWARE_STEP + SAME_LEVEL | IL | DEBUG_EVENT | STEP_VALID
    assert exception(booted)[::2] == (cause, booted.register(19))


def test_what_is_linked_to_a_context_is_told(tmp_path: Path) -> None:
    (message,) = boot(watch("0", EIGHT | EITHER | 1 << 20) + "ldr x2, [x1]\n", tmp_path).messages
    assert message == "DBGWCR0_EL1 0x101fff: watchpoints that depend on contexts are not modelled"


def test_registers_that_are_not_there_are_undefined(tmp_path: Path) -> None:
    """Six breakpoints and four watchpoints, as ID_AA64DFR0_EL1 says."""
    source = "mrs x1, dbgwvr3_el1\nmrs x1, dbgbcr5_el1\nadr x19, here\nhere: mrs x1, dbgwvr4_el1\n"
    booted = boot(WITH_VECTORS + source, tmp_path)
    assert exception(booted) == (IL, 0, booted.register(19))
