"""Where virtio devices are on a board: slots one behind the other, each with an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Layout:
    """`first_interrupt`: by the number that `set_level` takes."""

    start: int
    slot_bytes: int
    slots: int
    first_interrupt: int


VIRT = Layout(FIRST_SLOT, SLOT_BYTES, SLOTS, FIRST_INTERRUPT)  # as many as QEMU's virt has, and at the same addresses


def attach(
    bus: Bus,
    memory: GuestMemory,
    devices: Sequence[VirtioDevice],
    test_exit: TestExit | None,
    set_level: Callable[[int, bool], None],
    message: Callable[[str], None],
    busy: Callable[[int], None],
    layout: Layout = VIRT,
) -> list[Transport]:
    """`devices` from the first slot on; the test device in the last, by the old interface, which its users speak.
    `busy` gets the bytes that a device has moved at once.

    Returns all slots' transports. ValueError where there are more devices than slots.
    """
    room = layout.slots - (test_exit is not None)
    if len(devices) > room:
        raise ValueError(f"{len(devices)} virtio devices: there is room for {room}")
    transports: list[Transport] = []
    for slot in range(layout.slots):
        device = devices[slot] if slot < len(devices) else None
        is_last = slot == layout.slots - 1
        transport = Transport(
            test_exit if is_last and test_exit is not None else device,
            memory,
            partial(set_level, layout.first_interrupt + slot),
            message,
            busy,
            legacy=is_last and test_exit is not None,
        )
        if isinstance(device, (Console, NineP)):
            device.attend = transport.attend
        transports.append(transport)
        bus.attach(f"virtio slot {slot}", layout.start + slot * layout.slot_bytes, layout.slot_bytes, transport)
    return transports
