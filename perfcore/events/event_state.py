"""EventState: what an event does. enum perf_event_state."""

from __future__ import annotations

from enum import IntEnum


class EventState(IntEnum):
    """Below INACTIVE nothing counts; from ERROR down nothing can be enabled but by ERROR itself."""

    DEAD = -5
    REVOKED = -4  # its PMU has gone (Linux 6.15: before, a PMU with events could not go)
    EXIT = -3
    ERROR = -2
    OFF = -1
    INACTIVE = 0
    ACTIVE = 1


POLL_IN = 1  # siginfo si_code of SIGIO: a sample or a wakeup
POLL_HUP = 6  # the event has disabled itself (IOC_REFRESH), or its task has gone
