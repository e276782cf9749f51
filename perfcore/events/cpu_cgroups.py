"""CpuCgroups: which control group has a CPU, and which of those that are counted that makes count.

As struct perf_cgroup_info, and cpuctx->cgrp in kernel/events/core.c. Events of a group are its CPU's, and count while a
task of the group, or of one below it, runs there; so does their time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.linux.cgroup.cgroups import Cgroup
from perfcore.events.context_time import ContextTime
from perfcore.events.counted_cgroup import CountedCgroup
from perfcore.events.event import PerfEvent


@dataclass(slots=True)
class _Counted:
    """A group of which events are open."""

    time: ContextTime
    events: int = 0


class CpuCgroups:
    """Of one CPU. `present` says whose task it has, and is asked when the first event of any group is opened."""

    def __init__(self, clock: Clock, cpu: Cpu, present: Callable[[], Cgroup]) -> None:
        self.current: Cgroup | None = None  # which has the CPU, as long as anybody asks
        self._clock = clock
        self._cpu = cpu
        self._present = present
        self._counted: dict[CountedCgroup, _Counted] = {}

    def matches(self, event: PerfEvent) -> bool:
        """perf_cgroup_match(): whether `event` counts what runs now."""
        return event.cgroup is None or (self.current is not None and event.cgroup.contains(self.current))

    def take_in(self, cgroup: CountedCgroup) -> ContextTime:
        """One more event of a group: its time."""
        if self.current is None:
            self.current = self._present()
        counted = self._counted.get(cgroup)
        if counted is None:
            counted = self._counted[cgroup] = _Counted(ContextTime(self._clock))
            if cgroup.contains(self.current):
                counted.time.start(self._cpu)
        counted.events += 1
        return counted.time

    def let_go(self, cgroup: CountedCgroup) -> None:
        """One less."""
        counted = self._counted[cgroup]
        counted.events -= 1
        if not counted.events:
            del self._counted[cgroup]
            counted.time.stop()
        if not self._counted:
            self.current = None

    def enter(self, cgroup: Cgroup) -> None:
        """A task of another group has the CPU from now on."""
        before, self.current = self.current, cgroup
        assert before is not None, "somebody asks"
        for counted_group, counted in self._counted.items():
            if counted_group.contains(before) != counted_group.contains(cgroup):
                if counted_group.contains(cgroup):
                    counted.time.start(self._cpu)
                else:
                    counted.time.stop()
