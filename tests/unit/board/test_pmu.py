"""The PMU that a guest programs on the board virt: counts at both levels, traps, the interrupt, by hand-counted code.

An MSR acts on what is behind it: the one that starts a counter is not counted by it, the one that stops it is.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.board.board import Ended
from emulator.board.board_cpu import PMU_INTERRUPT
from tests.unit.board.booted import boot, private_interrupt_on

CORES = ("ideal", "cortex-a55", "cortex-a72")
INST_RETIRED = 8
# From EL0: x10 says why, x12 where. From the PMU: x14 says behind what.
VECTORS = """
        b       begin
        .balign 0x800
vectors: .org   vectors + 0x200         // synchronous, from EL1
        b       off
        .org    vectors + 0x280         // IRQ, from EL1
        mrs     x13, s3_0_c12_c12_0     // ICC_IAR1_EL1
        mrs     x14, elr_el1
        mov     x0, #1
        msr     pmovsclr_el0, x0
        msr     s3_0_c12_c12_1, x13     // ICC_EOIR1_EL1
        add     x15, x15, #1
        eret
        .org    vectors + 0x400         // synchronous, from EL0
        mrs     x10, esr_el1
        mrs     x12, elr_el1
        b       lower
        .org    vectors + 0x800
begin:  adr     x0, vectors
        msr     vbar_el1, x0
        isb
"""
COUNT = """
        msr     pmevtyper0_el0, x1
        mov     x0, #1
        msr     pmcntenset_el0, x0
        msr     pmcr_el0, x0
"""
TO_EL0 = """
        adr     x2, user
        msr     elr_el1, x2
        msr     spsr_el1, xzr           // EL0t
        eret
"""
AT_EL1, AT_EL0 = 1 << 30, 1 << 31  # U: not at EL0; P: not at EL1


def count_of(filters: int, source: str, folder: Path, core: str = "ideal") -> int:
    """What counter 0 reads at the end, in x5."""
    typed = f"movz x1, #{INST_RETIRED}\nmovk x1, #{filters >> 16:#x}, lsl #16\n"
    booted = boot(VECTORS + typed + COUNT + source, folder, core=core, counters=6)
    assert (booted.board.ended, booted.messages) == (Ended.OFF, [])
    return booted.register(5)


@pytest.mark.parametrize("core", CORES)
def test_it_counts_from_the_msr_that_starts_it_to_the_one_that_stops_it(core: str, tmp_path: Path) -> None:
    # five NOPs, and the MSR that stops it
    assert count_of(0, "nop\n" * 5 + "msr pmcr_el0, xzr\nmrs x5, pmevcntr0_el0\n", tmp_path, core) == 6


@pytest.mark.parametrize("core", CORES)
def test_a_read_in_between_does_not_count_itself(core: str, tmp_path: Path) -> None:
    assert count_of(0, "nop\nnop\nmrs x5, pmevcntr0_el0\n", tmp_path, core) == 2


# EL1: ADR, MSR, MSR, ERET; then MRS, MRS, B of the vector, and the MSR that stops. EL0: three NOPs, SVC.
@pytest.mark.parametrize(("filters", "count"), [(0, 12), (AT_EL1, 8), (AT_EL0, 4), (AT_EL0 | AT_EL1, 0)])
@pytest.mark.parametrize("core", CORES)
def test_levels_are_counted_apart(core: str, filters: int, count: int, tmp_path: Path) -> None:
    user = "user: nop\nnop\nnop\nsvc #0\nlower: msr pmcr_el0, xzr\nmrs x5, pmevcntr0_el0\n"
    assert count_of(filters, TO_EL0 + user, tmp_path, core) == count


# ESR: EC 0x18, IL, and op0 3, op2 0, op1 3, CRn 9, Rt 3, CRm 13, read; then PMCR_EL0 (CRm 12), written from x4
@pytest.mark.parametrize(
    ("instruction", "specific"),
    [
        ("mrs x3, pmccntr_el0", 3 << 20 | 0 << 17 | 3 << 14 | 9 << 10 | 3 << 5 | 13 << 1 | 1),
        ("msr pmcr_el0, x4", 3 << 20 | 0 << 17 | 3 << 14 | 9 << 10 | 4 << 5 | 12 << 1),
    ],
)
def test_el0_is_trapped_until_it_is_let_in(instruction: str, specific: int, tmp_path: Path) -> None:
    source = f"user: {instruction}\nsvc #7\nlower: adr x19, user\n"
    booted = boot(VECTORS + TO_EL0 + source, tmp_path, counters=6)
    assert booted.register(10) == 0x18 << 26 | 1 << 25 | specific
    assert booted.register(12) == booted.register(19)
    let_in = boot(VECTORS + "mov x0, #1\nmsr pmuserenr_el0, x0\n" + TO_EL0 + source, tmp_path, counters=6)
    assert let_in.register(10) == 0x15 << 26 | 1 << 25 | 7
    assert let_in.messages == booted.messages == []


INTERRUPTS = (
    private_interrupt_on(PMU_INTERRUPT)
    + f"""
        mov     x0, #1
        msr     pmintenset_el1, x0
        mov     w0, #-5
        msr     pmevcntr0_el0, x0
        msr     daifclr, #2
        movz    x1, #{INST_RETIRED}
"""
)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("wrapping", ["nop", "ldr x3, [sp]", "mrs x3, pmcr_el0", "str wzr, [x20, #0x18]"])
def test_the_interrupt_comes_right_behind_the_instruction_that_wraps(core: str, wrapping: str, tmp_path: Path) -> None:
    """Also behind one that is answered by us."""
    source = "mov x3, sp\nnop\nnop\nnop\n" + wrapping + "\nbehind: nop\nnop\nadr x19, behind\n"
    stack = "adr x3, vectors\nmov sp, x3\n"
    booted = boot(VECTORS + stack + INTERRUPTS + COUNT + source, tmp_path, core=core, counters=6)
    assert (booted.register(13), booted.register(15)) == (PMU_INTERRUPT, 1)
    assert booted.register(14) == booted.register(19)


def test_software_raises_and_clears_it(tmp_path: Path) -> None:
    """PMOVSSET asserts the line while PMCR.E and PMINTENSET say so."""
    source = "mov x0, #1\nmsr pmovsset_el0, x0\nbehind: nop\nadr x19, behind\n"
    booted = boot(VECTORS + INTERRUPTS + COUNT + source, tmp_path, counters=6)
    assert (booted.register(13), booted.register(15), booted.register(14)) == (
        PMU_INTERRUPT,
        1,
        booted.register(19),
    )


def test_a_guest_finds_it_where_it_is(tmp_path: Path) -> None:
    found = boot("mrs x1, id_aa64dfr0_el1\nmrs x2, pmcr_el0\n", tmp_path, counters=4)
    assert found.register(1) >> 8 & 0xF == 4  # PMUv3p1
    assert found.register(2) >> 11 & 0x1F == 4
    without = boot(VECTORS + "mrs x1, id_aa64dfr0_el1\nmrs x2, pmcr_el0\n", tmp_path)
    assert without.register(1) >> 8 & 0xF == 0
    assert without.messages[0].startswith("MRS of S3_3_C9_C12_0")


CHAINED = """
        movz    x0, #0x1e               // CHAIN
        movk    x0, #FILTER, lsl #16
        msr     pmevtyper1_el0, x0
        mov     w0, #-3
        msr     pmevcntr0_el0, x0
        mov     x0, #2
        msr     pmcntenset_el0, x0
"""


@pytest.mark.parametrize(("filters", "count"), [(0, 1), (AT_EL1, 1), (AT_EL0, 0), (AT_EL0 | AT_EL1, 0)])
def test_a_chained_counter_counts_at_el1_by_its_own_filter(filters: int, count: int, tmp_path: Path) -> None:
    """The third NOP wraps the even counter, which counts at EL1 alone."""
    code = CHAINED.replace("FILTER", f"{filters >> 16:#x}") + f"movz x1, #{INST_RETIRED}\nmovk x1, #0x4000, lsl #16\n"
    behind = "nop\nnop\nnop\nnop\nmsr pmcr_el0, xzr\nmrs x5, pmevcntr1_el0\nmrs x6, pmevcntr0_el0\n"
    booted = boot(VECTORS + code + COUNT + behind, tmp_path, counters=6)
    assert (booted.register(5), booted.register(6)) == (count, 2)


def test_a_guest_takes_a_snapshot(tmp_path: Path) -> None:
    """Two NOPs and the MSR that captures are counted by then; at the end two more, and the MSR that stops."""
    code = """
        mov     x0, #0x18               // SSE: enabled and allowed
        msr     s3_0_c9_c14_5, x0       // PMECR_EL1
        movz    x1, #8                  // INST_RETIRED
    """
    behind = """
        nop
        nop
        msr     s3_0_c9_c13_3, x0       // PMSSCR_EL1: x0 is 1
        nop
        nop
        msr     pmcr_el0, xzr
        mrs     x5, s2_0_c14_c8_0       // PMEVCNTSVR0_EL1
        mrs     x6, pmevcntr0_el0
        mrs     x7, s3_0_c9_c13_3
        mrs     x8, id_aa64dfr0_el1
        mrs     x9, id_aa64dfr1_el1
    """
    booted = boot(VECTORS + code + COUNT + behind, tmp_path, counters=6, pmu="pmuv3p9")
    assert booted.messages == []
    assert [booted.register(n) for n in (5, 6, 7)] == [3, 6, 0]
    assert booted.register(8) >> 8 & 0xFFF == 0x109 | booted.register(8) >> 8 & 0xF0  # PMSS, PMUVer
    assert booted.register(9) >> 36 & 0xF == 1  # PMICNTR


def test_el0_reaches_the_counters_that_pmuacr_names(tmp_path: Path) -> None:
    """Others are zero, and PMCR_EL0 traps: ESR_EL1 has op0 3, op1 3, CRn 9, CRm 12, Rt 3, read."""
    code = """
        mov     x0, #0x10               // UEN
        msr     pmuserenr_el0, x0
        mov     x0, #2
        msr     s3_0_c9_c14_4, x0       // PMUACR_EL1: counter 1
        mov     x0, #77
        msr     pmevcntr0_el0, x0
        msr     pmevcntr1_el0, x0
    """
    user = "user: mrs x5, pmevcntr0_el0\nmrs x6, pmevcntr1_el0\nmrs x3, pmcr_el0\nlower: nop\n"
    booted = boot(VECTORS + code + TO_EL0 + user, tmp_path, counters=6, pmu="pmuv3p9")
    assert (booted.register(5), booted.register(6)) == (0, 77)
    assert booted.register(10) == 0x18 << 26 | 1 << 25 | 3 << 20 | 3 << 14 | 9 << 10 | 3 << 5 | 12 << 1 | 1
