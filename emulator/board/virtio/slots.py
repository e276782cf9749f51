"""Where virtio devices are on the board virt: as many slots as QEMU's has, and at the same addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from emulator.board.bus import Bus
from emulator.board.gic import PRIVATE
from emulator.board.virtio.console import Console, TestExit
from emulator.board.virtio.device import VirtioDevice
from emulator.board.virtio.guest_memory import GuestMemory
from emulator.board.virtio.ninep import NineP
from emulator.board.virtio.transport import Transport

SLOTS, SLOT_BYTES = 32, 0x200
FIRST_SLOT, FIRST_INTERRUPT = 0x0A00_0000, PRIVATE + 16


def attach(
    bus: Bus,
    memory: GuestMemory,
    devices: Sequence[VirtioDevice],
    test_exit: TestExit | None,
    set_level: Callable[[int, bool], None],
    message: Callable[[str], None],
) -> list[Transport]:
    """`devices` from the first slot on; the test device in the last, by the old interface, which its users speak.

    Returns all slots' transports. ValueError where there are more devices than slots.
    """
    if len(devices) >= SLOTS:
        raise ValueError(f"{len(devices)} virtio devices: there is room for {SLOTS - 1}")
    transports: list[Transport] = []
    for slot in range(SLOTS):
        device = devices[slot] if slot < len(devices) else None
        is_last = slot == SLOTS - 1
        transport = Transport(
            test_exit if is_last else device,
            memory,
            partial(set_level, FIRST_INTERRUPT + slot),
            message,
            legacy=is_last and test_exit is not None,
        )
        if isinstance(device, (Console, NineP)):
            device.attend = transport.attend
        transports.append(transport)
        bus.attach(f"virtio slot {slot}", FIRST_SLOT + slot * SLOT_BYTES, SLOT_BYTES, transport)
    return transports
