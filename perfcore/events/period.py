"""How frequency mode finds its period. kernel/events/core.c, perf_calculate_period and perf_adjust_period."""

from __future__ import annotations


def calculate_period(frequency_hz: int, time_ns: int, count: int) -> int:
    """The period at which `count` events in `time_ns` would give `frequency_hz` overflows a second.

    Linux shifts bits away where 64 are too few; here the quotient is exact.
    """
    divisor = time_ns * frequency_hz
    return count * 1_000_000_000 // divisor if divisor else count * 1_000_000_000


def filtered_period(old: int, wanted: int) -> int:
    """The period to use next: an eighth of the way from `old` to `wanted`, rounded away from `old`; at least 1."""
    delta = wanted - old
    step = (delta + 7) // 8 if delta >= 0 else -((7 - delta) // 8)
    return max(old + step, 1)
