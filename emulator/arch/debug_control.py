"""DR7 of an x86-64 CPU: which of its breakpoints are on, and what each is (Intel SDM vol. 3, "Debug Registers")."""

from __future__ import annotations

from typing import NamedTuple

BREAKPOINTS = 4  # DR0 to DR3 are their addresses
EXECUTED, STORED, PORT, ACCESSED = range(4)  # R/Wn: PORT, with CR4.DE
_BYTES = (1, 2, 8, 4)  # LENn


class DebugCondition(NamedTuple):
    """R/Wn and LENn."""

    kind: int  # EXECUTED, STORED, PORT or ACCESSED
    length: int  # bytes


def is_enabled(control: int, number: int) -> bool:
    """Ln or Gn."""
    return bool(control >> 2 * number & 0b11)


def condition(control: int, number: int) -> DebugCondition:
    """... of breakpoint `number`, enabled or not."""
    said = control >> 16 + 4 * number
    return DebugCondition(said & 0b11, _BYTES[said >> 2 & 0b11])
