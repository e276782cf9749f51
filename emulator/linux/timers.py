"""Timers: what shall happen at an exact cycle, or when the machine's clock has reached a time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from emulator.clock import Clock

FOREVER = (1 << 63) - 1  # cycles
FEW = 64  # entries that are not worth a clean-up


class Timer:
    """One pending call. `cancel` may be called at any time, also after it fired."""

    __slots__ = ("callback", "when")

    def __init__(self, when: int, callback: Callable[[], None] | None) -> None:
        self.when = when
        self.callback = callback

    @property
    def pending(self) -> bool:
        return self.callback is not None

    def cancel(self) -> None:
        self.callback = None


Entry = tuple[int, int, Timer]  # when, order of adding


class Timers:
    """Two queues: by cycle, which idle time does not touch, and by elapsed time, which idling brings nearer."""

    def __init__(self, clock: Clock, cycles: Callable[[], int]) -> None:
        self._clock = clock
        self._cycles = cycles
        self._by_cycle: list[Entry] = []
        self._by_time: list[Entry] = []
        self._clean_at = FEW  # entries of both queues
        self._order = count()  # equal times fire in the order in which they were added

    def at_cycle(self, cycle: int, callback: Callable[[], None]) -> Timer:
        timer = Timer(cycle, callback)
        self._push(self._by_cycle, timer)
        return timer

    def at_time(self, elapsed_ns: int, callback: Callable[[], None]) -> Timer:
        """`elapsed_ns` of the machine's clock."""
        timer = Timer(elapsed_ns, callback)
        self._push(self._by_time, timer)
        return timer

    def _push(self, queue: list[Entry], timer: Timer) -> None:
        """Cancelled timers leave when they are due; where they are many, at once: alarm(2) may be called for ever."""
        heapq.heappush(queue, (timer.when, next(self._order), timer))
        if len(self._by_cycle) + len(self._by_time) > self._clean_at:
            for entries in (self._by_cycle, self._by_time):
                entries[:] = [entry for entry in entries if entry[2].pending]
                heapq.heapify(entries)
            self._clean_at = max(FEW, 2 * (len(self._by_cycle) + len(self._by_time)))

    def next_cycle(self) -> int:
        """The cycle at which the next timer is due, if the machine does not idle before."""
        if not self._by_cycle and not self._by_time:
            return FOREVER
        cycle = FOREVER
        if (timer := _first(self._by_cycle)) is not None:
            cycle = timer.when
        if (timer := _first(self._by_time)) is not None:
            cycle = min(cycle, self._clock.cycle_at(timer.when))
        return cycle

    def next_time(self) -> int | None:
        """When (elapsed_ns) the next timer by time is due; None without one."""
        timer = _first(self._by_time)
        return None if timer is None else timer.when

    def fire_due(self) -> None:
        """Call whatever is due now."""
        now_cycle = self._cycles()
        while (timer := _first(self._by_cycle)) is not None and timer.when <= now_cycle:
            heapq.heappop(self._by_cycle)
            _call(timer)
        now_ns = self._clock.elapsed_ns()
        while (timer := _first(self._by_time)) is not None and timer.when <= now_ns:
            heapq.heappop(self._by_time)
            _call(timer)


def _first(queue: list[Entry]) -> Timer | None:
    while queue:
        timer = queue[0][2]
        if timer.pending:
            return timer
        heapq.heappop(queue)
    return None


def _call(timer: Timer) -> None:
    callback, timer.callback = timer.callback, None
    if callback is not None:
        callback()
