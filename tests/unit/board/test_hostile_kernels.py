"""Kernels that do what none should: the board stands it, and says what has ended it."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.board.virt import Ended
from tests.unit.board.booted import LOADED_AT, boot
from tests.unit.board.mapped import MMU_ON
from tests.unit.board.test_virt import WITH_VECTORS

CORES = ("ideal", "cortex-a55", "neoverse-n1")
TRANSLATION_FAULT_AT_LEVEL_3 = 0x21 << 26 | 1 << 25 | 0b000111

# The page of `there` loses its entry, and the guest calls code there that has not executed before. As long as it is
# told nothing, a processor may still know the page, or not; ours knows where it has fetched once.
STALE = """
        bl      there
        adr     x1, there
        ubfx    x1, x1, #12, #9
        str     xzr, [x21, x1, lsl #3]
        dsb     ish
        {tells}
        bl      there + 16
        b       off
        .balign 4096
there:  mov     x9, #1
        ret
        .balign 16
        mov     x9, #2
        ret
        .balign 4096
"""


@pytest.mark.parametrize("core", CORES)
def test_a_page_that_is_taken_from_the_tables_and_not_from_the_tlb(core: str, tmp_path: Path) -> None:
    booted = boot(WITH_VECTORS + MMU_ON + STALE.format(tells="nop"), tmp_path, core=core)
    assert (booted.board.ended, booted.register(9)) == (Ended.OFF, 2)


@pytest.mark.parametrize("core", CORES)
def test_a_page_that_is_taken_from_the_tlb_too(core: str, tmp_path: Path) -> None:
    booted = boot(WITH_VECTORS + MMU_ON + STALE.format(tells="tlbi vmalle1"), tmp_path, core=core)
    assert (booted.board.ended, booted.register(9)) == (Ended.OFF, 1)
    assert booted.register(10) == TRANSLATION_FAULT_AT_LEVEL_3
    assert booted.register(11) == booted.register(12)  # FAR and ELR


# The page takes itself from the tables, which its TLB does not hear of, and its next instruction stores to a device.
WITHOUT_ITSELF = """
        adr     x1, there
        ubfx    x1, x1, #12, #9
        add     x1, x21, x1, lsl #3
        b       there
        .balign 4096
there:  str     xzr, [x1]
        strb    w1, [x20]
        b       off
        .balign 4096
"""


@pytest.mark.parametrize("core", CORES)
def test_code_that_is_in_no_table_any_more_stores_to_a_device(core: str, tmp_path: Path) -> None:
    """What it does there cannot be read: an abort, as of an instruction that is not modelled there, or of its fetch."""
    booted = boot(WITH_VECTORS + MMU_ON + WITHOUT_ITSELF, tmp_path, core=core)
    assert booted.board.ended is Ended.OFF
    assert booted.register(10) >> 26 in (0x25, 0x21)  # ESR.EC: a data abort, an instruction abort
    assert booted.output == b""


# `edge` ends with its page, and behind that there is none.
AT_THE_EDGE = """
        adr     x1, edge
        ubfx    x1, x1, #12, #9
        add     x1, x1, #1
        str     xzr, [x21, x1, lsl #3]
        dsb     ish
        tlbi    vmalle1
        dsb     ish
        isb
        mov     x10, #3
1:      bl      edge
        subs    x10, x10, #1
        b.ne    1b
        b       off
        .balign 4096
        .space  4096 - 8
edge:   add     x9, x9, #1
        ret
        .space  4096
"""


@pytest.mark.parametrize("cpus", [1, 2])
def test_code_that_ends_with_the_last_page_executes_again(cpus: int, tmp_path: Path) -> None:
    """With two CPUs it was taken for changed, and translated for ever: kernels that load modules did not boot."""
    booted = boot(MMU_ON + AT_THE_EDGE, tmp_path, cpus=cpus, instructions=10_000)
    assert (booted.board.ended, booted.register(9)) == (Ended.OFF, 3)
    assert booted.cpus[0].core.decoded_blocks < 40  # each is decoded once


@pytest.mark.parametrize(
    ("vector", "says"),
    [
        ("udf #0", "unknown, ESR 0x2000000"),
        ("brk #5", "brk, ESR 0xf2000005"),
        ("ldr x0, [x1]", "data abort (external), ESR 0x96000010, FAR 0xb000000"),
        ("ldaxr x0, [x2]", "data abort (alignment), ESR 0x96000021, FAR 0x40080003"),
        ("mrs x0, s3_0_c15_c2_3", "unknown, ESR 0x2000000"),
    ],
)
def test_a_vector_that_cannot_execute_ends_the_run(vector: str, says: str, tmp_path: Path) -> None:
    """Nothing ever retires again, and no time passes that a limit could end."""
    source = f"""
        adr     x0, vectors
        msr     vbar_el1, x0
        isb
        movz    x1, #0x0b00, lsl #16
        movz    x2, #{LOADED_AT >> 16}, lsl #16
        orr     x2, x2, #3
        udf     #1
        .balign 0x800
vectors: .org   vectors + 0x200
        {vector}
        .org    vectors + 0x800
    """
    booted = boot(source, tmp_path)
    assert booted.board.ended is Ended.NONE_ON
    assert booted.messages[-1].startswith(
        f"CPU 0 cannot execute its exception vector at {LOADED_AT + 0xA00:#x}: {says}"
    )


RETURNS = """
        adr     x0, there
        msr     elr_el1, x0
        movz    x0, #STATE & 0xffff
        movk    x0, #STATE >> 16, lsl #16
        msr     spsr_el1, x0
        eret
        .balign 64
there:  mov     x9, #1
        b       off
"""
ILLEGAL_STATE, IL = 0x0E << 26, 1 << 25


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("state", [0x3C9, 0x3CD, 0x3C8, 0x3D3, 0x3C5 | 1 << 20])
def test_a_return_to_a_level_that_is_not_there(core: str, state: int, tmp_path: Path) -> None:
    """EL2h, EL3h, EL2t, AArch32's supervisor mode; and PSTATE.IL itself. The return retires, and nothing behind it."""
    booted = boot(WITH_VECTORS + RETURNS.replace("STATE", str(state)), tmp_path, core=core)
    assert (booted.board.ended, booted.register(9)) == (Ended.OFF, 0)
    assert booted.register(10) == ILLEGAL_STATE | IL
    assert booted.register(12) % 64 == 0  # ELR_EL1: `there`


def test_a_return_to_aarch32_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"a return to AArch32 \(SPSR_EL1.M\) is not modelled"):
        boot(WITH_VECTORS + RETURNS.replace("STATE", "0x1d0"), tmp_path)


def test_encodings_at_which_the_engine_ends_its_process(tmp_path: Path) -> None:
    """All of FEAT_FP16's "three same" that are not allocated: undefined, on a core that has the others."""
    unallocated = [0x0E40_0400 | u << 29 | a << 23 | opcode << 11 for u, a, opcode in _unallocated()]
    source = "vector: " + "".join(f".inst {word:#x}\nadd x9, x9, #1\n" for word in unallocated) + "b off\n"
    behind = "mrs x0, elr_el1\nadd x0, x0, #4\nmsr elr_el1, x0\nadd x15, x15, #1\neret\n"
    vectors = f"b 9f\n.balign 0x800\nvectors: .org vectors + 0x200\n{behind}.org vectors + 0x800\n9: adr x0, vectors\n"
    booted = boot(vectors + "msr vbar_el1, x0\nmov x15, #0\nmov x9, #0\n" + source, tmp_path, core="neoverse-n1")
    assert (booted.board.ended, booted.register(9), booted.register(15)) == (
        Ended.OFF,
        len(unallocated),
        len(unallocated),
    )


def _unallocated() -> list[tuple[int, int, int]]:
    """(U, a, opcode) of Arm ARM DDI 0487, "Advanced SIMD three same (FP16)", that have no instruction."""
    numbers = (0b00101, 0b01011, 0b01100, 0b01101, 0b10001, 0b11001, 0b11011, 0b11111)
    return [(number >> 4, number >> 3 & 1, number & 7) for number in numbers]


def test_a_timer_that_is_due_after_all_time(tmp_path: Path) -> None:
    """The last tick of the counter is beyond what a core counts in cycles: nobody is woken."""
    source = "mov x0, #-1\nmsr cntv_cval_el0, x0\nmov x0, #1\nmsr cntv_ctl_el0, x0\nwfi\n"
    assert boot(WITH_VECTORS + source, tmp_path).board.ended is Ended.IDLE
