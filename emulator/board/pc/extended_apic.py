"""The extended registers of AMD's local APICs: AMD64 APM volume 2, "Extended Interrupts".

There are four more entries of the local vector table, and none of the other extensions (IER, SEOI, wider
identifications), which the feature register therefore denies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

FEATURE, CONTROL = 0x400, 0x410
ENTRIES = 0x500, 0x510, 0x520, 0x530
IS_THERE = 1 << 31  # of the version register
_ENTRIES_SHIFT = 16  # of the feature register

READS: Mapping[int, Callable[[], int]] = {
    FEATURE: lambda: len(ENTRIES) << _ENTRIES_SHIFT,
    CONTROL: lambda: 0,
}
WRITES: Mapping[int, Callable[[int], None]] = dict.fromkeys((FEATURE, CONTROL), lambda value: None)
