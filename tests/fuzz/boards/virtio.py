"""What drivers of virtio write to their slot, in an order that they have, or not."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


def driver_writes(random: Random, places: Sequence[int]) -> list[tuple[int, int]]:
    """Registers and values: the slot is set up, with its queue at some of `places`, and told of work."""
    writes = [(0x70, 0), (0x70, 3), (0x24, 1), (0x20, 1), (0x70, 11), (0x30, 0)]
    writes.append((0x38, random.choice((1, 4, 8, 256, 3))))
    for register, place in zip((0x80, 0x90, 0xA0), random.choices(places, k=3), strict=True):
        writes += [(register, place & 0xFFFF_FFFF), (register + 4, place >> 32)]
    writes += [(0x44, 1), (0x50, random.choice((0, 0, 1, 7)))]
    if random.random() < 0.3:
        random.shuffle(writes)
    return writes
