"""Where devices have registers: offsets, as their manuals list them. What is elsewhere reads as zero and keeps nothing;
the user is told of it, once. Registers of features that are not there (LPIs, DMA) are elsewhere.

Arm DDI 0183 (PL011), DDI 0224 (PL031), IHI 0069 (GICv3), IHI 0048 (GICv2): "register summary".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

HasRegister = Callable[[int], bool]  # at that offset
Ranges = Sequence[tuple[int, int]]  # from, up to and without

IDENTIFICATION = 0xFE0, 0x1000  # PeriphID, PCellID
PL011: Ranges = [(0x00, 0x08), (0x18, 0x1C), (0x24, 0x48), IDENTIFICATION]
PL031: Ranges = [(0x00, 0x20), IDENTIFICATION]

# CTLR to STATUSR; groups to active; priorities; targets (without affinity routing); configurations, group modifiers;
# NSACR to SPENDSGIR; routes; identification
GICV3_DISTRIBUTOR: Ranges = [
    (0x0, 0x14), (0x80, 0x7FC), (0x800, 0xBFC), (0xC00, 0xD80), (0xE00, 0xF30), (0x6000, 0x8000), (0xFFD0, 0x1_0000),
]  # fmt: skip
GICV3_REDISTRIBUTOR: Ranges = [
    (0x0, 0x18), (0xFFD0, 0x1_0000),
    *((0x1_0000 + kind, 0x1_0004 + kind) for kind in (0x80, 0x100, 0x180, 0x200, 0x280, 0x300, 0x380, 0xD00, 0xE00)),
    (0x1_0400, 0x1_0420), (0x1_0C00, 0x1_0C08),
]  # fmt: skip
GICV2_DISTRIBUTOR: Ranges = [
    (0x0, 0xC), (0x80, 0x7FC), (0x800, 0xBFC), (0xC00, 0xD00), (0xE00, 0xF04), (0xF10, 0xF30), (0xFD0, 0x1000),
]  # fmt: skip
# CTLR to HPPIR; active priorities; IIDR; DIR
GICV2_INTERFACE: Ranges = [(0x0, 0x1C), (0xD0, 0xF0), (0xFC, 0x100), (0x1000, 0x1004)]


def within(ranges: Ranges, every: int | None = None) -> HasRegister:
    """`every`: so many bytes, the same again."""

    def has(offset: int) -> bool:
        offset = offset if every is None else offset % every
        return any(first <= offset < end for first, end in ranges)

    return has
