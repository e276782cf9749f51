"""Tick: the scheduler's tick, as far as events need it: frequencies are adjusted, and throttled events go on.

It exists only while an event needs it, and falls on multiples of TICK_NS of guest time. The guest sees nothing of it.
"""

from __future__ import annotations

from perfcore.events.event import EventState, PerfEvent
from perfcore.events.kernel import Linux
from perfcore.events.settings import TICK_NS


class Tick:
    """perf_event_task_tick, for all CPUs at once."""

    def __init__(self, kernel: Linux) -> None:
        self._kernel = kernel
        self._events: dict[PerfEvent, None] = {}  # in the order in which they asked
        self._armed = False

    def want(self, event: PerfEvent) -> None:
        self._events[event] = None
        if not self._armed:
            self._arm()

    def _arm(self) -> None:
        clock = self._kernel.clock
        next_ns = (clock.elapsed_ns() // TICK_NS + 1) * TICK_NS
        self._kernel.add_timer(clock.cycle_at(next_ns), self._fire)
        self._armed = True

    def _fire(self) -> None:
        self._armed = False
        for event in list(self._events):
            event.tick()
            if event.state != EventState.ACTIVE or not event.wants_tick:
                del self._events[event]
        if self._events and not self._armed:
            self._arm()
