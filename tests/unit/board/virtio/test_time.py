"""Devices that move much at once take their guest's time, so that its limit ends a guest that does nothing else."""

from __future__ import annotations

import time
from pathlib import Path

from emulator.board.board import Ended
from emulator.board.disk import Disk
from emulator.board.virtio.slots import FIRST_SLOT
from tests.unit.board.booted import boot

CHAINS, CHAIN_BYTES = 16, 8 << 20
# A disk answers what it does not know with zeros, as many as there is room for.
KEEPS_A_DISK_BUSY = f"""
        movz    x1, #{FIRST_SLOT >> 16}, lsl #16
        .macro  register offset, value
        ldr     w0, =\\value
        str     w0, [x1, #\\offset]
        .endm
        register 0x70, 3                // Status: ACKNOWLEDGE, DRIVER
        register 0x24, 1                // DriverFeatures: VERSION_1
        register 0x20, 1
        register 0x70, 11               // FEATURES_OK
        register 0x38, {CHAINS}         // QueueNum
        adr     x2, request
        adr     x0, descriptors
        str     x2, [x0]
        str     w0, [x1, #0x80]
        adr     x0, used
        str     w0, [x1, #0xa0]
        adr     x2, available
        str     w2, [x1, #0x90]
        register 0x44, 1                // QueueReady
        register 0x70, 15               // DRIVER_OK
        mov     w3, #0
again:  add     w3, w3, #{CHAINS}
        strh    w3, [x2, #2]
        str     wzr, [x1, #0x50]        // QueueNotify
        b       again
        .ltorg
        .balign 16
descriptors:
        .quad   0                       // the request's
        .long   16
        .short  1, 1                    // NEXT
        .quad   0x40400000
        .long   {CHAIN_BYTES}
        .short  2, 0                    // WRITE
        .space  16 * {CHAINS - 2}
available:
        .short  1, 0                    // NO_INTERRUPT
        .space  2 * {CHAINS}            // all of them are chain 0
        .balign 16
used:   .space  4 + 8 * {CHAINS}
        .balign 16
request: .long  99, 0                   // a type that there is not
        .quad   0
"""
LIMIT_NS = 1_000_000_000
MOST_SECONDS = 20  # of CPU time; on an idle host it is less than 1


def test_moving_takes_time(tmp_path: Path) -> None:
    """A nanosecond for each byte but the first MiB: 133 ms for each time, of which 8 are more than a second."""
    path = tmp_path / "disk"
    path.write_bytes(bytes(512))
    begun = time.process_time()
    booted = boot(KEEPS_A_DISK_BUSY, tmp_path, disks=[Disk(str(path), keeps=False)], nanoseconds=LIMIT_NS)
    assert booted.board.ended is Ended.LIMIT
    assert booted.register(3) == 8 * CHAINS
    assert time.process_time() - begun < MOST_SECONDS
