"""Tick: the scheduler's tick, as far as events need it: frequencies are adjusted, and throttled events go on.

Each CPU's exists only while an event there needs it, and falls on multiples of TICK_NS of guest time. The guest sees
nothing of it.
"""

from __future__ import annotations

from emulator.cpu import Cpu
from emulator.linux.structures import TICK_NS
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux


class Tick:
    """perf_event_task_tick of every CPU."""

    def __init__(self, kernel: Linux) -> None:
        self._kernel = kernel
        self._events: dict[int, dict[PerfEvent, None]] = {}  # by CPU, in the order in which they asked
        self._armed: set[int] = set()  # CPUs

    def want(self, event: PerfEvent) -> None:
        """At the next tick of the CPU that `event` is on."""
        cpu = event.on_cpu
        assert cpu is not None, "who needs a tick is on a CPU"
        self._events.setdefault(cpu.number, {})[event] = None
        if cpu.number not in self._armed:
            self._arm(cpu)

    def _arm(self, cpu: Cpu) -> None:
        clock = self._kernel.clock
        next_ns = (clock.at(cpu.core.cycles) // TICK_NS + 1) * TICK_NS
        self._kernel.add_timer(clock.cycle_at(next_ns), lambda: self._fire(cpu), cpu)
        self._armed.add(cpu.number)

    def _fire(self, cpu: Cpu) -> None:
        self._armed.discard(cpu.number)
        events = self._events[cpu.number]
        for event in list(events):
            if event.on_cpu is cpu:
                event.tick()
            if event.on_cpu is not cpu or not event.rate.wants_tick:
                del events[event]
        if events and cpu.number not in self._armed:
            self._arm(cpu)
