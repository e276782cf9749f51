"""GICv2: interrupts by registers in memory."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from emulator.board.board import Ended
from emulator.board.gic import GICV2
from tests.unit.board.booted import boot

# x1 is the distributor, x2 the CPU interface. A handler takes what comes: x13 is what IAR said, x16 how many came.
BEGIN = """
        adr     x0, vectors
        msr     vbar_el1, x0
        isb
        b       begin
        .balign 0x800
vectors: .org   vectors + 0x280         // IRQ, from EL1
        ldr     w13, [x2, #0xc]         // IAR
        ldr     w12, [x2, #0x14]        // RPR
        str     w13, [x2, #0x10]        // EOIR
        mov     x11, #3
        msr     cntv_ctl_el0, x11       // masked
        add     x16, x16, #1
        eret
        .org    vectors + 0x800
prepare:
        movz    x1, #0x0800, lsl #16
        movz    x2, #0x0801, lsl #16
        mov     w0, #1
        str     w0, [x1]                // GICD_CTLR
        str     w0, [x2]                // GICC_CTLR
        mov     w0, #0xf0
        str     w0, [x2, #4]            // PMR
        movz    w0, #1 << 11, lsl #16
        movk    w0, #0xff
        str     w0, [x1, #0x100]        // ISENABLER0
        mov     w0, #0x40
        strb    w0, [x1, #0x400 + 27]   // IPRIORITYR
        ret
begin:  bl      prepare
"""


def test_a_timer(tmp_path: Path) -> None:
    source = """
        mov     x0, #1000
        msr     cntv_tval_el0, x0
        mov     x0, #1
        msr     cntv_ctl_el0, x0
        msr     daifclr, #2
        wfi
        ldr     w17, [x2, #0xc]
        ldr     w18, [x1, #4]
        mrs     x19, id_aa64pfr0_el1
        ldr     w21, [x1, #0xfe8]
    """
    booted = boot(BEGIN + source, tmp_path, gic=GICV2)
    assert [booted.register(number) for number in (13, 12, 16, 17)] == [27, 0x40, 1, 1023]
    assert (booted.register(18), booted.register(19) >> 24 & 15, booted.register(21)) == (8, 0, 0x2B)
    assert (booted.board.ended, booted.messages) == (Ended.OFF, [])


CPUS = """
        movz    w0, #0xc400, lsl #16
        movk    w0, #3
        mov     x1, #1
        adr     x2, other
        hvc     #0                      // CPU_ON
        movz    x2, #0x0801, lsl #16
        wfi
        msr     daifclr, #2
        nop
1:      cbz     x16, 1b
        b       off
other:  adr     x0, vectors
        msr     vbar_el1, x0
        bl      prepare
        ldr     w26, [x1, #0x800]       // ITARGETSR0: itself
        movz    w0, #FILTER, lsl #16
        movk    w0, #5
        str     w0, [x1, #0xf00]        // SGIR
        ldr     w27, [x1, #0xf24]       // SPENDSGIR1
        msr     daifclr, #2
        wfi
"""


@pytest.mark.parametrize(("filter_", "to_sender"), [(0x0001, False), (0x0100, False), (0x0003, True)])
def test_one_cpu_interrupts_another(filter_: int, to_sender: bool, tmp_path: Path) -> None:
    booted = boot(BEGIN + CPUS.replace("FILTER", str(filter_)), tmp_path, cpus=2, gic=GICV2, instructions=100_000)
    assert booted.register(13) == 1 << 10 | 5  # from CPU 1
    assert booted.register(26, 1) == 0x0202_0202
    assert booted.register(27, 1) == (2 << 8 if to_sender else 0)
    assert booted.register(13, 1) == (1 << 10 | 5 if to_sender else 0)


def test_a_shared_interrupt_goes_to_its_targets(tmp_path: Path) -> None:
    source = """
        mov     w0, #2
        str     w0, [x1, #0x104]        // ISENABLER1: SPI 1, the UART
        mov     w0, #TARGET
        strb    w0, [x1, #0x800 + 33]
        ldr     w19, [x1, #0x820]
        mov     w0, #0x20
        str     w0, [x20, #0x38]        // its interrupt of what is sent
        str     wzr, [x20]
        ldr     w13, [x2, #0x18]        // HPPIR
    """
    assert boot(BEGIN + source.replace("TARGET", "1"), tmp_path, cpus=2, gic=GICV2).register(13) == 33
    other = boot(BEGIN + source.replace("TARGET", "0xfe"), tmp_path, cpus=2, gic=GICV2)
    assert (other.register(13), other.register(19)) == (1023, 0x0101_0201)


@pytest.mark.parametrize("seed", range(10))
def test_random_accesses(seed: int, tmp_path: Path) -> None:
    random, board = Random(seed), boot("nop\n", tmp_path, cpus=2, gic=GICV2).board
    for _ in range(5000):
        start, most = random.choice(((0x0800_0000, 0x1000), (0x0801_0000, 0x2000)))
        size = random.choice((1, 2, 4, 4, 4, 8))
        offset = random.choice((random.randrange(most), random.randrange(0x20), 0xF00)) & -size
        if random.random() < 0.5:
            board.bus.write(start + offset, size, random.choice((0, 1, random.getrandbits(8 * size))))
        else:
            assert 0 <= board.bus.read(start + offset, size) < 1 << 8 * size
