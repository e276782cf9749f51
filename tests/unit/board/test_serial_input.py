"""What the serial port receives, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.board.board import Ended
from emulator.board.pl011 import POLLS
from tests.unit.board.booted import GIC_ON, Booted, boot
from tests.unit.board.test_virt import WITH_VECTORS


class Lines:
    """A source that has these, and notes what it is asked."""

    def __init__(self, *lines: bytes, is_live: bool = False) -> None:
        self.is_live = is_live
        self.left = list(lines)
        self.waits: list[int | None] = []

    def take(self, most: int, wait_ns: int | None) -> bytes | None:
        self.waits.append(wait_ns)
        return self.left.pop(0) if self.left else None


# Sends back what it receives until a full stop. x19: how often it has looked for a byte.
ECHO = """
1:      ldr     w1, [x20, #0x18]        // FR
        add     x19, x19, #1
        tbnz    w1, #4, 1b              // RXFE
        ldr     w2, [x20]
        strb    w2, [x20]
        cmp     w2, #'.'
        b.ne    1b
"""


def test_who_looks_again_and_again_receives(tmp_path: Path) -> None:
    booted = boot(ECHO, tmp_path, source_of_input=Lines(b"a line\n", b"and another."))
    assert (booted.output, booted.board.ended) == (b"a line\nand another.", Ended.OFF)
    # Each line comes at one look of many, which sees it; then there is one look before each of the other bytes.
    assert booted.register(19) == (POLLS + len("a line\n") - 1) + (POLLS + len("and another.") - 1)


# The receive interrupt, an SPI of CPU 0. x16: how many wake-ups it took.
BY_INTERRUPT = (
    GIC_ON
    + """
        str     w0, [x1, #0x84]         // IGROUPR1: SPI 1
        str     w0, [x1, #0x104]        // ISENABLER1
        mov     w0, #0x50               // RXIM, RTIM
        str     w0, [x20, #0x38]
2:      wfi
        add     x16, x16, #1
        mrs     x13, s3_0_c12_c12_0     // ICC_IAR1_EL1
        ldr     w14, [x20, #0x40]       // MIS
1:      ldr     w2, [x20]
        strb    w2, [x20]
        cmp     w2, #'.'
        b.eq    3f
        ldr     w1, [x20, #0x18]
        tbz     w1, #4, 1b
        ldr     w15, [x20, #0x40]
        msr     s3_0_c12_c12_1, x13
        b       2b
3:
"""
)


# 24 ms, between looks at MIS
COMPUTES = """movz x1, #0xb7, lsl #16
4: subs x1, x1, #1
b.ne 4b
ldr w1, [x20, #0x40]
cbz w1, 2b
"""


def by_interrupt(folder: Path, source: Lines) -> Booted:
    return boot(WITH_VECTORS + BY_INTERRUPT, folder, source_of_input=source)


@pytest.mark.parametrize("is_live", [False, True])
def test_who_waits_is_interrupted_once_a_line(is_live: bool, tmp_path: Path) -> None:
    source = Lines(b"more than its FIFO has room for\n", b".", is_live=is_live)
    booted = by_interrupt(tmp_path, source)
    assert booted.output == b"more than its FIFO has room for\n."
    assert (booted.register(16), booted.register(13)) == (2, 33)
    assert (booted.register(14), booted.register(15)) == (0x50, 0)
    # A dead source never waits in the host's time; while all CPUs wait for nothing else, a user may take any.
    assert set(source.waits) == ({None} if is_live else {0})


def test_an_end_of_input_is_no_byte(tmp_path: Path) -> None:
    booted = by_interrupt(tmp_path, Lines(b"no full stop"))
    assert (booted.output, booted.board.ended) == (b"no full stop", Ended.IDLE)


def test_what_nobody_wants_is_not_read(tmp_path: Path) -> None:
    source = Lines(b"unread")
    boot("movz x1, #0x100, lsl #16\n1: subs x1, x1, #1\nb.ne 1b\n", tmp_path, source_of_input=source)
    assert (source.left, source.waits) == ([b"unread"], [])


def test_a_user_may_type_while_it_computes(tmp_path: Path) -> None:
    source = Lines(b"", b"", b".", is_live=True)
    computes = BY_INTERRUPT.replace("wfi", COMPUTES)
    booted = boot(WITH_VECTORS + computes, tmp_path, source_of_input=source)
    assert (booted.output, source.waits) == (b".", [0, 0, 0])
