"""A guest that maps and executes for ever what it has not before: the host keeps some of it, and no more."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from emulator.board.board import Ended
from emulator.cpu import Cpu
from fuzz.child import resident_bytes
from tests.unit.board.booted import boot

# All level-1 entries from 2 on lead to one table of level 2, and all of that to RAM's first 2 MiB: 510 * 512 places at
# which the same code is. Each time round there is another place, another address space, and another instruction.
CHURN = """
        movz    x21, #0x4010, lsl #16
        ldr     x0, =0x60000000000401   // devices
        str     x0, [x21]
        add     x1, x21, #0x1000
        ldr     x0, =0x40000701         // a block that is accessed
        str     x0, [x21, #8]
        orr     x0, x1, #3
        mov     x2, #2
1:      str     x0, [x21, x2, lsl #3]
        add     x2, x2, #1
        cmp     x2, #512
        b.ne    1b
        ldr     x0, =0x40000701 | 1 << 11 // nG
        mov     x2, #0
1:      str     x0, [x1, x2, lsl #3]
        add     x2, x2, #1
        cmp     x2, #512
        b.ne    1b
        msr     ttbr0_el1, x21
        ldr     x0, =25 | 1 << 23 | 1 << 36 // T0SZ: 39 bits; EPD1; ASIDs of 16 bits
        msr     tcr_el1, x0
        isb
        mrs     x0, sctlr_el1
        orr     x0, x0, #1
        msr     sctlr_el1, x0
        isb
        ldr     x28, =TIMES
        movz    x27, #0x8000, lsl #16
        adr     x26, there
        b       again
        .ltorg
        .balign 4096
again:  and     x0, x28, #0xffff
        orr     x0, x21, x0, lsl #48
        msr     ttbr0_el1, x0
        isb
        WRITES
        add     x27, x27, #0x200000
        ubfx    x0, x27, #30, #9
        cbnz    x0, 1f
        movz    x27, #0x8000, lsl #16
1:      and     x0, x26, #0x1fffff
        add     x0, x0, x27
        blr     x0
        TELLS
        subs    x28, x28, #1
        b.ne    again
        b       off
        .balign 4096
there:  mov     x9, #1
        ret
        .balign 4096
"""
WRITES = """
        movz    w2, #0xd280, lsl #16    // MOVZ X9
        ubfiz   w1, w28, #5, #16
        add     w2, w2, w1
        add     w2, w2, #9
        str     w2, [x26]
        dc      cvau, x26
        dsb     ish
        ic      ivau, x26
        dsb     ish
        isb
"""
TELLS = """
        lsr     x0, x27, #12
        tlbi    vae1is, x0
        dsb     ish
"""
SLOW = pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="takes half a minute: make kernels")
KEPT = 1000  # blocks
FEW, MANY = 70_000, 170_000  # times round: with the first, 65,536 pages that were fetched have come to their limit
MOST_BYTES = 24 << 20  # when the engine kept each place, it was 50 to 90 MB


@pytest.mark.parametrize(
    ("writes", "tells"),
    [
        pytest.param("", "", id="places", marks=SLOW),
        pytest.param("", TELLS, id="forgotten places"),
        pytest.param(WRITES, "", id="code"),
    ],
)
def test_what_is_kept_of_it_does_not_grow(writes: str, tells: str, tmp_path: Path) -> None:
    def keep_few(cpus: Sequence[Cpu]) -> None:
        cpus[0].core.keep_blocks(KEPT)

    resident = []
    for times in (FEW, MANY):
        source = CHURN.replace("TIMES", str(times)).replace("WRITES", writes).replace("TELLS", tells)
        booted = boot(source, tmp_path, watch=keep_few)
        assert booted.board.ended is Ended.OFF
        assert booted.cpus[0].core.decoded_blocks > times
        resident.append(resident_bytes())
    assert resident[1] - resident[0] < MOST_BYTES
