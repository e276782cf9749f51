"""The clocks that an event's records may have: attr.use_clockid. As perf_event_set_clock."""

from __future__ import annotations

from collections.abc import Callable

from emulator.clock import Clock
from emulator.linux.errors import EINVAL, LinuxError
from perfcore.abi.attr import PerfEventAttr

CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_TAI = 0, 1, 4, 7, 11  # clockid_t


def clock_of(clockid: int, clock: Clock, *, any_clock: bool) -> Callable[[], int]:
    """Its time in ns. EINVAL: there is none, or, without `any_clock`, none that an NMI may read.

    Nothing slews the machine's clocks, it never sleeps as a whole, and nobody has set its offset from TAI.
    """
    if clockid in (CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW):
        return clock.monotonic_ns
    if any_clock and clockid == CLOCK_BOOTTIME:
        return clock.monotonic_ns
    if any_clock and clockid in (CLOCK_REALTIME, CLOCK_TAI):
        return clock.realtime_ns
    raise LinuxError(EINVAL, f"use_clockid: clock {clockid} is none that these events can read")


def clock_id(attr: PerfEventAttr) -> int | None:
    """The clock of an event's records; None is perf's own. Those of one group or one buffer are the same."""
    return attr.clockid if attr.use_clockid else None


def clock_name(attr: PerfEventAttr) -> str:
    return f"clock {attr.clockid}" if attr.use_clockid else "perf's own clock"
