"""Timers: what shall happen at an exact cycle, or when the machine's clock has reached a time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from emulator.clock import Clock

FOREVER = (1 << 63) - 1  # cycles


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


class Timers:
    """Two queues: by cycle, which idle time does not touch, and by elapsed time, which idling brings nearer."""

    def __init__(self, clock: Clock, cycles: Callable[[], int]) -> None:
        self._clock = clock
        self._cycles = cycles
        self._by_cycle: list[tuple[int, int, Timer]] = []
        self._by_time: list[tuple[int, int, Timer]] = []
        self._order = count()  # equal times fire in the order in which they were added

    def at_cycle(self, cycle: int, callback: Callable[[], None]) -> Timer:
        timer = Timer(cycle, callback)
        heapq.heappush(self._by_cycle, (cycle, next(self._order), timer))
        return timer

    def at_time(self, elapsed_ns: int, callback: Callable[[], None]) -> Timer:
        """`elapsed_ns` of the machine's clock."""
        timer = Timer(elapsed_ns, callback)
        heapq.heappush(self._by_time, (elapsed_ns, next(self._order), timer))
        return timer

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


def _first(queue: list[tuple[int, int, Timer]]) -> Timer | None:
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
