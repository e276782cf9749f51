"""The real-time clock: pinned, in whole seconds, with an alarm."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.clock import REALTIME_AT_BOOT_NS
from tests.unit.board.booted import boot
from tests.unit.board.test_serial_input import BY_INTERRUPT
from tests.unit.board.test_virt import WITH_VECTORS

NS = 1_000_000_000
CLOCK = "movz x21, #0x0901, lsl #16\n"
# As for the serial port, but for SPI 2
INTERRUPTS = BY_INTERRUPT.partition("mov     w0, #0x50")[0].replace(
    "str     w0, [x1, #0x84]", "mov w0, #4\nstr w0, [x1, #0x84]"
)
ALARM = """
        ldr     w1, [x21]               // DR
        add     w1, w1, #SECONDS
        str     w1, [x21, #4]           // MR
        mov     w0, #1
        str     w0, [x21, #0x10]        // IMSC
        wfi
        ldr     w22, [x21]
        ldr     w23, [x21, #0x18]       // MIS
        mrs     x24, s3_0_c12_c12_0     // ICC_IAR1_EL1
        str     w0, [x21, #0x1c]        // ICR
        ldr     w25, [x21, #0x18]
"""


def test_it_shows_the_machines_date_and_can_be_set(tmp_path: Path) -> None:
    source = (
        "ldr w1, [x21]\nmov w2, #1000\nstr w2, [x21, #8]\nldr w3, [x21]\nldr w4, [x21, #8]\nldr w5, [x21, #0xfe0]\n"
    )
    booted = boot(CLOCK + source, tmp_path)
    read = [booted.register(number) for number in (1, 3, 4, 5)]
    assert read == [REALTIME_AT_BOOT_NS // NS, 1000, 1000, 0x31]


@pytest.mark.parametrize("seconds", [1, 90])
def test_an_alarm(seconds: int, tmp_path: Path) -> None:
    booted = boot(WITH_VECTORS + INTERRUPTS + CLOCK + ALARM.replace("SECONDS", str(seconds)), tmp_path)
    assert [booted.register(number) for number in (22, 23, 24, 25)] == [booted.register(1), 1, 34, 0]
    assert booted.board.rtc.due_cycle is not None  # a match comes around again
    core = booted.cpus[0].core
    assert 0 <= core.cycles - seconds * NS < 1000  # at 1 GHz, of a clock that starts with a whole second
