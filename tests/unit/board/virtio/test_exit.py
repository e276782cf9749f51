"""The test device, by the old interface of virtio, as a bare-metal program has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.board.board import Ended
from tests.unit.board.booted import boot

# The queue is at RAM + 1 MiB: descriptors, the available ring at 16 * 8, the used ring at the next page.
SAYS = """
        movz    x1, #0x0a00, lsl #16
        movk    x1, #0x3e00             // the last slot
        ldr     w10, [x1, #4]           // Version
        ldr     w11, [x1, #8]           // DeviceID
        cbz     w11, off
        mov     w0, #4096
        str     w0, [x1, #0x28]         // GuestPageSize
        str     w0, [x1, #0x3c]         // QueueAlign
        mov     w0, #1
        str     w0, [x1, #0x30]         // QueueSel: transmit
        mov     w0, #8
        str     w0, [x1, #0x38]         // QueueNum
        movz    x2, #0x4010, lsl #16
        adr     x3, text
        str     x3, [x2]
        mov     w0, #LENGTH
        str     w0, [x2, #8]            // flags: neither more nor writable
        mov     w0, #1 << 16
        str     w0, [x2, #128]          // available: index 1, the first is descriptor 0
        lsr     w0, w2, #12
        str     w0, [x1, #0x40]         // QueuePFN
        mov     w0, #1
        str     w0, [x1, #0x50]         // QueueNotify
        ldr     w12, [x2, #4096]        // used: index 1
        ldr     w13, [x1, #0x60]        // InterruptStatus
        b       off
text:   .ascii  "TEXT"
        .balign 4
"""


@pytest.mark.parametrize(("text", "status"), [("0q", 1), ("3q", 7), ("127q", 255), ("x12q", 25), ("q", 1)])
def test_a_verdict_ends_the_run(text: str, status: int, tmp_path: Path) -> None:
    booted = boot(SAYS.replace("TEXT", text).replace("LENGTH", str(len(text))), tmp_path, test_device=True)
    assert (booted.board.ended, booted.board.exit_status) == (Ended.STATUS, status)
    assert (booted.register(10), booted.register(11), booted.messages) == (1, 3, [])


def test_what_is_none_is_taken(tmp_path: Path) -> None:
    booted = boot(SAYS.replace("TEXT", "12").replace("LENGTH", "2"), tmp_path, test_device=True)
    assert booted.board.ended is Ended.OFF
    assert (booted.register(12), booted.register(13)) == (1 << 16, 1)


def test_it_is_there_only_where_the_user_asks_for_it(tmp_path: Path) -> None:
    booted = boot(SAYS.replace("LENGTH", "4"), tmp_path)
    assert (booted.board.ended, booted.register(10), booted.register(11)) == (Ended.OFF, 2, 0)
