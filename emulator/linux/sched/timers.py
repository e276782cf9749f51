"""Timers: what shall happen at an exact cycle of one CPU, whether it executes or idles."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from emulator.clock import Clock

FOREVER = (1 << 63) - 1  # cycles: 97 years at 3 GHz
FEW = 64  # entries that are not worth a clean-up


class Timer:
    """One pending call. `cancel` may be called at any time, also after it fired."""

    __slots__ = ("callback", "wakes", "when")

    def __init__(self, when: int, callback: Callable[[], object] | None, wakes: bool) -> None:
        self.when = when
        self.callback = callback
        self.wakes = wakes  # whether a machine in which all sleep has something to wait for

    @property
    def pending(self) -> bool:
        return self.callback is not None

    def cancel(self) -> None:
        self.callback = None


Entry = tuple[int, int, Timer]  # when, order of adding


class Timers:
    """The timers of one CPU. `on_earlier` hears when the next one has become another."""

    def __init__(self, clock: Clock, cycles: Callable[[], int], on_earlier: Callable[[], None] | None = None) -> None:
        self._clock = clock
        self._cycles = cycles
        self._on_earlier = on_earlier
        self._queue: list[Entry] = []
        self._clean_at = FEW  # entries
        self._order = count()  # equal times fire in the order in which they were added

    def at_cycle(self, cycle: int, callback: Callable[[], object], *, wakes: bool = False) -> Timer:
        """One that merely observes (`wakes` is false) does not keep a machine going in which all sleep."""
        timer = Timer(min(cycle, FOREVER), callback, wakes)
        queue = self._queue
        heapq.heappush(queue, (timer.when, next(self._order), timer))
        if len(queue) > self._clean_at:
            self._clean()
        if self._on_earlier is not None and self._queue[0][2] is timer:
            self._on_earlier()
        return timer

    def at_time(self, elapsed_ns: int, callback: Callable[[], object]) -> Timer:
        """At `elapsed_ns` of the machine's clock."""
        return self.at_cycle(self._clock.cycle_at(elapsed_ns), callback, wakes=True)

    def _clean(self) -> None:
        """Cancelled timers leave when they are due; where they are many, at once: alarm(2) may be called for ever."""
        self._queue[:] = [entry for entry in self._queue if entry[2].pending]
        heapq.heapify(self._queue)
        self._clean_at = max(FEW, 2 * len(self._queue))

    def next_cycle(self) -> int:
        """The cycle at which the next timer is due."""
        queue = self._queue
        while queue:
            timer = queue[0][2]
            if timer.callback is not None:
                return timer.when
            heapq.heappop(queue)
        return FOREVER

    def will_wake(self) -> bool:
        """Whether one is pending that may wake somebody."""
        return any(timer.wakes and timer.pending and timer.when < FOREVER for _, _, timer in self._queue)

    def fire_due(self) -> None:
        """Call whatever is due now."""
        now = self._cycles()
        while self.next_cycle() <= now:
            timer = heapq.heappop(self._queue)[2]
            callback, timer.callback = timer.callback, None
            assert callback is not None, "next_cycle leaves a pending timer in front"
            callback()
