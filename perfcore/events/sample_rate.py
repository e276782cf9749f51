"""SampleRate: how often an event samples: led towards attr.sample_freq, and no more than so often in a tick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from emulator.linux.structures import TICK_NS
from perfcore.abi.attr import PerfEventAttr
from perfcore.events.hardware_state import HardwareState
from perfcore.events.kernel import Linux
from perfcore.events.period import calculate_period, filtered_period
from perfcore.events.settings import Settings


class Sampling(Protocol):
    """An event that samples (a PerfEvent)."""

    attr: PerfEventAttr
    hw: HardwareState
    kernel: Linux
    settings: Settings
    counted: int

    def start(self, reload: bool = False) -> None:
        """Its driver counts for it."""

    def stop(self) -> None:
        """... no more, and takes over what was counted."""

    def tell_throttled(self, throttled: bool) -> None:
        """PERF_RECORD_THROTTLE, PERF_RECORD_UNTHROTTLE."""


E = TypeVar("E", bound=Sampling)


class SampleRate(Generic[E]):
    """Of one event. kernel/events/core.c, from __perf_event_account_interrupt to perf_adjust_freq_unthr_events."""

    def __init__(self, event: E) -> None:
        attr = event.attr
        self.throttled = False
        self.wants_tick = bool(attr.freq and attr.sample_period)
        self.matters = event.settings.throttle or self.wants_tick  # else overflows need not be accounted
        self.on_throttled: Callable[[E], None] | None = None
        self._event = event
        self._tick = -1
        self._interrupts = 0  # in that tick
        self._overflow_ns = 0  # when the last one was
        self._counted = 0  # at the last tick

    def fix(self) -> None:
        """A driver has turned the frequency into a period once and for all."""
        self.wants_tick = False
        self.matters = self._event.settings.throttle

    def account_interrupt(self, period: int, throttle: bool) -> bool:
        """Count interrupts per tick; move the period of an event with a frequency. True: it has had too many.

        Linux's drivers have set `last_period` to the period that begins, which here, where the first two samples are
        one nanosecond apart, would be wrong by orders of magnitude: we take the one that ended.
        """
        event = self._event
        now = event.kernel.clock.monotonic_ns()
        stop = False
        tick = now // TICK_NS
        if tick != self._tick:
            self._tick = tick
            self._interrupts = 1
        else:
            self._interrupts += 1
            if throttle and event.settings.throttle and self._interrupts > event.settings.max_samples_per_tick:
                stop = self.throttled = True
                event.tell_throttled(True)
                if self.on_throttled is not None:
                    self.on_throttled(event)
        if event.attr.freq:
            delta = now - self._overflow_ns
            self._overflow_ns = now
            if 0 < delta < 2 * TICK_NS:
                self._adjust_period(delta, period, restart=True)
        return stop

    def _adjust_period(self, time_ns: int, count: int, restart: bool) -> None:
        """perf_adjust_period: towards attr.sample_freq, after `count` events in `time_ns`."""
        event = self._event
        hw = event.hw
        wanted = calculate_period(event.attr.sample_period, time_ns, count)
        hw.sample_period = filtered_period(hw.sample_period, wanted)
        if hw.period_left > 8 * hw.sample_period:
            if restart:
                event.stop()
            hw.period_left = 0
            if restart:
                event.start(reload=True)

    def tick(self) -> None:
        """perf_adjust_freq_unthr_events, for this event, which is active."""
        self.unthrottle(restart=not self.wants_tick)
        if not self.wants_tick:
            return
        event = self._event
        event.stop()
        delta = event.counted - self._counted
        self._counted = event.counted
        if delta > 0:
            self._adjust_period(TICK_NS, delta, restart=False)
        event.start(reload=delta > 0)

    def unthrottle(self, restart: bool) -> None:
        if self.throttled:
            self.throttled = False
            self._interrupts = 0
            self._event.tell_throttled(False)
            if restart:
                self._event.start()
