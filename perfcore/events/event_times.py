"""EventTimes: how long an event has been enabled, and has counted. kernel/events/core.c, __perf_update_times."""

from __future__ import annotations

from perfcore.events.context_time import ContextTime
from perfcore.events.event_state import EventState

_ACTIVE, _INACTIVE = EventState.ACTIVE, EventState.INACTIVE


class EventTimes:
    """In ns, by the time of the event's context."""

    __slots__ = ("_stamp", "_time", "enabled_ns", "running_ns")

    def __init__(self) -> None:
        self.enabled_ns = 0
        self.running_ns = 0
        self._stamp = 0
        self._time: ContextTime

    def begin(self, time: ContextTime) -> None:
        """They run by `time` from now on."""
        self._time = time
        self._stamp = time.now()

    def update(self, state: EventState) -> None:
        """In this state until now."""
        now = self._time.now()
        delta = now - self._stamp
        self._stamp = now
        if state is _ACTIVE:
            self.enabled_ns += delta
            self.running_ns += delta
        elif state is _INACTIVE:
            self.enabled_ns += delta

    def ran_until(self, now: int) -> None:
        """ACTIVE until the context's time was `now`."""
        delta = now - self._stamp
        self._stamp = now
        self.enabled_ns += delta
        self.running_ns += delta

    def running_since_boot(self) -> int | None:
        """CLOCK_MONOTONIC of the CPU on which the context is; None if it is on none."""
        return self._time.running_since_boot()
