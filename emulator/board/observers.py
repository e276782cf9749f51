"""Observers: what happens at exact cycles of a board's CPUs for who watches from outside; its guest sees nothing."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(order=True, slots=True)
class Observation:
    """Something that will happen at a cycle; of those at one cycle, what was asked for first."""

    cycle: int
    number: int
    callback: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        self.cancelled = True


class Observers:
    """A queue for each CPU."""

    def __init__(self, cpus: int) -> None:
        self._queues: list[list[Observation]] = [[] for _ in range(cpus)]
        self._asked = 0

    def at_cycle(self, cpu: int, cycle: int, callback: Callable[[], None]) -> Observation:
        """Call it between two instructions, when `cpu` has come to that cycle; if it idles then, when it goes on."""
        observation = Observation(cycle, self._asked, callback)
        self._asked += 1
        heapq.heappush(self._queues[cpu], observation)
        return observation

    def due_cycle(self, cpu: int) -> int | None:
        """Of the next one, if there is one."""
        queue = self._queues[cpu]
        while queue and queue[0].cancelled:
            heapq.heappop(queue)
        return queue[0].cycle if queue else None

    def look(self, cpu: int, now: int) -> int | None:
        """Let happen what is due at cycle `now`; the cycle of the next one."""
        due = self.due_cycle(cpu)
        while due is not None and due <= now:
            heapq.heappop(self._queues[cpu]).callback()
            due = self.due_cycle(cpu)
        return due
