"""BRBE on the board virt: records of exceptions and of returns from them, by BRBCR_EL1's EXCEPTION and ERTN, and what
they say where one of the two levels is not recorded.

There is no other judge: QEMU and the kernels that we run have no BRBE. What is expected is derived from Arm ARM DDI
0487, "Branch records for exceptions", "Branch records for exception returns", "Cycle counting" and BRBEException().
"""

from __future__ import annotations

import struct
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from emulator.board.generic_timer import VIRTUAL_INTERRUPT
from pmu.arm.brbe_registers import BRBCR_EL1, BRBFCR_EL1, BranchType, BRBINFn_EL1, Valid, cycle_count, cycles_of
from tests.unit.board.booted import LOADED_AT, OFF, START
from tests.unit.board.test_brbe import Made
from tests.unit.board.test_virt import private_interrupt_on
from tests.unit.native.bare import assemble

LABELS = (
    "vectors", "left", "irq_left", "at_el1", "waits", "illegal", "legal", "to_user", "user", "undefined", "loads",
    "breaks", "odd", "last", "stop",
)  # fmt: skip
# One of each kind that there is, at EL1 and then at EL0: the records begin at `begins`, and end in `stop`.
PROGRAM = f"""
start:  b       begin
        .balign 8
labels: {"; ".join(f".quad {label} - start" for label in LABELS)}
        .balign 0x800
vectors: .org   vectors + 0x200         // synchronous, from EL1
        b       answer
        .org    vectors + 0x280         // IRQ, from EL1
        mrs     x9, s3_0_c12_c12_0      // ICC_IAR1_EL1
        msr     s3_0_c12_c12_1, x9      // ICC_EOIR1_EL1
        mov     x9, #3
        msr     cntv_ctl_el0, x9        // masked
        b       irq_left
        .org    vectors + 0x400         // synchronous, from EL0
        b       answer
        .org    vectors + 0x800
answer: mrs     x9, esr_el1
        lsr     x10, x9, #26
        cmp     x10, #0x15              // SVC
        b.eq    called
        msr     elr_el1, x13            // behind what cannot execute
        mrs     x11, spsr_el1
        bic     x11, x11, #1 << 20      // IL
        msr     spsr_el1, x11
        b       left
called: mrs     x10, CR
        tst     x9, #2
        csel    x10, x21, x10, ne
        msr     CR, x10
        tbnz    x9, #0, stop
left:   eret
irq_left: eret
begin:  adr     x0, vectors
        msr     vbar_el1, x0
{private_interrupt_on(VIRTUAL_INTERRUPT)}
        msr     cntv_cval_el0, xzr      // due at once
        mov     x0, #1
        msr     cntv_ctl_el0, x0
        ldr     x21, =LATER
        ldr     x0, =FUNCTION
        msr     FCR, x0
        ldr     x0, =CONTROL
        msr     CR, x0
        isb
        svc     #0
at_el1: nop
        msr     daifclr, #2
waits:  nop
        msr     daifset, #2
        adr     x13, legal
        msr     elr_el1, x13
        mov     x0, #9                  // EL2
        msr     spsr_el1, x0
illegal: eret
legal:  adr     x13, user
        movz    x1, #0x100, lsl #32     // nothing is there
        msr     elr_el1, x1
        msr     spsr_el1, xzr
to_user: eret
user:   svc     #2
        adr     x13, 1f
undefined: udf  #0
1:      adr     x13, 1f
        adr     x1, user + 1
loads:  ldxr    x0, [x1]                // not aligned: a data abort, no alignment exception
1:      adr     x13, 1f
breaks: brk     #0
1:      adr     x13, 1f
        adr     x1, odd + 2
        br      x1
odd:    nop
1:      adr     x13, last
        movz    x1, #0x100, lsl #32
        br      x1
last:   svc     #1
stop:   mov     x0, #PAUSED
        msr     FCR, x0
        isb
        movz    x10, #0x4020, lsl #16
"""
READS = "".join(
    f"        mrs x0, s2_1_c8_c{n % 16}_{n // 16 * 4 + op2}\n        str x0, [x10, #{24 * n + 8 * place}]\n"
    for n in range(32)
    for place, op2 in enumerate((1, 2, 0))
)
LITERALS = "        .ltorg"
NOWHERE = 0x100 << 32
NO_BRANCHES, SOME_BRANCHES = 0, BRBFCR_EL1.make(INDIRECT=1, CONDDIR=1)
EL0, EL1 = 0, 1
CORES = {"without models": ("cortex-a72", True), "with models": ("neoverse-n1", False)}


class Transfer(NamedTuple):
    source: int
    target: int
    type: BranchType
    source_level: int
    target_level: int


class Record(NamedTuple):
    source: int
    target: int
    information: BRBINFn_EL1


def program(
    control: BRBCR_EL1, function: int, folder: Path, later: BRBCR_EL1 | None = None, at_el1: str = "nop"
) -> bytes:
    """`later`: from the first SVC of EL0 on. `at_el1`: instead of that NOP."""
    text = START + PROGRAM.replace("at_el1: nop", f"at_el1: {at_el1}") + READS + OFF + LITERALS
    for name, value in (
        ("CONTROL", int(control)), ("LATER", int(later or control)), ("FUNCTION", function),
        ("PAUSED", BRBFCR_EL1.PAUSED.mask), (" FCR", " s2_1_c9_c0_1"), (" CR", " s2_1_c9_c0_0"),
    ):  # fmt: skip
        text = text.replace(name, str(value))
    return assemble("aarch64", text, folder)


def records(image: bytes, core: str) -> list[Record]:
    """The oldest first."""
    name, untimed = CORES[core]
    words = Made(image, core=name, untimed=untimed).words()
    found = [Record(words[3 * n], words[3 * n + 1], BRBINFn_EL1(words[3 * n + 2])) for n in range(32)]
    return [record for record in found if record.information.VALID][::-1]


def labels(image: bytes) -> dict[str, int]:
    values = struct.unpack_from(f"<{len(LABELS)}Q", image, 8)
    return {label: LOADED_AT + 4 + value for label, value in zip(LABELS, values, strict=True)}


def transfers(image: bytes) -> list[Transfer]:
    """An exception is from where it returns to (that of SVC is behind it) to its vector."""
    at = labels(image)
    made: list[Transfer] = []

    def exception(source: int, type: BranchType, level: int, vector: int, back: int | None = None) -> None:
        made.append(Transfer(source, at["vectors"] + vector, type, level, EL1))
        if back is not None:
            leaves = at["irq_left" if type == BranchType.IRQ else "left"]
            made.append(Transfer(leaves, back, BranchType.ERET, EL1, level))

    exception(at["at_el1"], BranchType.CALL, EL1, 0x200, at["at_el1"])
    exception(at["waits"], BranchType.IRQ, EL1, 0x280, at["waits"])
    made.append(Transfer(at["illegal"], at["legal"], BranchType.ERET, EL1, EL1))  # an illegal return stays there
    exception(at["legal"], BranchType.TRAP, EL1, 0x200, at["legal"])  # and nothing executes
    made.append(Transfer(at["to_user"], NOWHERE, BranchType.ERET, EL1, EL0))
    exception(NOWHERE, BranchType.INSN_FAULT, EL0, 0x400, at["user"])
    exception(at["user"] + 4, BranchType.CALL, EL0, 0x400, at["user"] + 4)
    exception(at["undefined"], BranchType.TRAP, EL0, 0x400, at["undefined"] + 4)
    exception(at["loads"], BranchType.DATA_FAULT, EL0, 0x400, at["loads"] + 4)
    exception(at["breaks"], BranchType.INSN_DEBUG, EL0, 0x400, at["breaks"] + 4)
    exception(at["odd"] + 2, BranchType.ALIGN_FAULT, EL0, 0x400, at["odd"] + 4)
    exception(NOWHERE, BranchType.INSN_FAULT, EL0, 0x400, at["last"])
    exception(at["last"] + 4, BranchType.CALL, EL0, 0x400)
    return made


def selects(control: BRBCR_EL1, type: BranchType) -> bool:
    """... of all branches; an exception's highest bit is set."""
    if type == BranchType.ERET:
        return bool(control.ERTN)
    return bool(control.EXCEPTION) if type >> 5 else True


def expected(made: list[Transfer], times: list[int], control: BRBCR_EL1) -> list[Record]:
    """`times`: of each transfer, in cycles. All exceptions are taken to EL1, and all returns are made there."""
    recorded = {EL0: control.E0BRE, EL1: control.E1BRE}
    found: list[Record] = []
    before: int | None = None
    for transfer, time in zip(made, times, strict=True):
        has_source, has_target = recorded[transfer.source_level], recorded[transfer.target_level]
        if not has_source:
            before = None  # the first record behind a prohibited region
        if not selects(control, transfer.type) or not (has_source or has_target):
            continue
        cycles = {"CCU": 1} if before is None else {"CC": cycle_count(time - before)}
        information = BRBINFn_EL1.make(
            VALID=has_source << 1 | has_target, TYPE=transfer.type, EL=transfer.target_level * has_target, **cycles
        )
        before = time
        found.append(Record(transfer.source * has_source, transfer.target * has_target, BRBINFn_EL1(information)))
    return found


def times_of(found: list[Record]) -> list[int]:
    times = [0]
    for record in found[1:]:
        assert not record.information.CCU
        times.append(times[-1] + cycles_of(record.information.CC))
    return times


def control_of(e0: int = 1, e1: int = 1, exception: int = 1, ertn: int = 1) -> BRBCR_EL1:
    return BRBCR_EL1(BRBCR_EL1.make(E0BRE=e0, E1BRE=e1, EXCEPTION=exception, ERTN=ertn, CC=1, MPRED=1))


@pytest.mark.parametrize("core", CORES)
def test_which_and_what_of_them(core: str, tmp_path: Path) -> None:
    image = program(control_of(), NO_BRANCHES, tmp_path)
    made, found = transfers(image), records(image, core)
    times = times_of(found)
    assert found == expected(made, times, control_of())
    if core == "without models":  # a cycle an instruction
        assert times[1] == 11  # B, MRS, LSR, CMP, B.EQ, five of `called` and ERET
        assert times[2] - times[1] == 2  # NOP and MSR, behind which the interrupt comes
    for bits in product((0, 1), repeat=4):
        control = control_of(*bits)
        found = records(program(control, NO_BRANCHES, tmp_path), core)
        assert found == expected(made, times, control), control


def test_beside_branches(tmp_path: Path) -> None:
    """Each in its place among them; and which branch is the first behind what is not recorded."""
    core = "without models"
    image = program(control_of(), SOME_BRANCHES, tmp_path)
    whole, at, far = records(image, core), labels(image), iter(transfers(image))
    made: list[Transfer] = []
    for source, target, information in whole:
        type_ = BranchType(information.TYPE)
        level = EL0 if at["user"] <= source < at["stop"] else EL1
        branches = type_ in (BranchType.DIRECT_COND, BranchType.INDIRECT)
        made.append(Transfer(source, target, type_, level, level) if branches else next(far))
    assert not list(far)
    assert len(made) - len(transfers(image)) == 3 + 1 + 2  # B.EQ for SVC, TBNZ for the last one, and BR
    times = times_of(whole)
    for bits in product((0, 1), repeat=4):
        control = control_of(*bits)
        found = records(program(control, SOME_BRANCHES, tmp_path), core)
        assert found == expected(made, times, control), control


def test_the_first_where_recording_has_begun(tmp_path: Path) -> None:
    """The vector's code ends the region in which nothing is recorded itself: how long that was nobody knows."""
    user_alone = control_of(e1=0)
    image = program(user_alone, NO_BRANCHES, tmp_path, later=control_of())
    at = labels(image)
    found = records(image, "without models")
    sources = [record.source for record in found]
    svc = found[sources.index(at["user"] + 4)].information
    assert (svc.VALID, svc.TYPE, svc.CCU) == (Valid.SOURCE, BranchType.CALL, 0)
    back = found[sources.index(at["user"] + 4) + 1]
    assert (back.source, back.target) == (at["left"], at["user"] + 4)
    assert (back.information.VALID, back.information.CCU) == (Valid.FULL, 1)
    assert not any(record.information.CCU for record in found[sources.index(at["user"] + 4) + 2 :])


def test_the_first_behind_invalidation(tmp_path: Path) -> None:
    image = program(control_of(), NO_BRANCHES, tmp_path, at_el1="sys #1, c7, c2, #4")  # BRB IALL
    found = records(image, "without models")
    assert (found[0].information.TYPE, found[0].information.CCU) == (BranchType.IRQ, 1)
    assert not any(record.information.CCU for record in found[1:])
