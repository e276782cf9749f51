"""The driver of PMUs that all CPUs of a package share: its last cache, its memory controller.

As arch/x86/events/intel/uncore.c and arch/x86/events/amd/uncore.c. Their events are of no task, and whichever CPU is
named, the first counts (``cpumask``). What they count happens on behalf of cores, which say so by their probes.
"""

from __future__ import annotations

from emulator.cpu import Cpu
from emulator.linux.errors import EINVAL, ENOENT, LinuxError
from perfcore.events.drivers.without_counters import CountedByReading, refuse_what_it_cannot
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux
from pmu.event import UnknownEvent
from pmu.event_source import EventSource


class UncoreDriver(CountedByReading):
    """`hw.config` is the attr's. User space may not read it."""

    counts_tasks = False
    is_software = False  # its events need a counter, and join groups of its own alone

    def __init__(self, kernel: Linux, source: EventSource, type: int, *, limited: bool) -> None:
        """`limited`: to as many counters as the part has."""
        self.source = source
        self.name = source.name
        self.type = type
        self._cpus = kernel.cpus
        self._most = source.counters if limited else 0
        self._counting: set[PerfEvent] = set()

    @property
    def cpu(self) -> int:
        """The one that counts."""
        return self._cpus[0].number

    def event_init(self, event: PerfEvent) -> None:
        attr = event.attr
        if attr.type != self.type:
            raise LinuxError(ENOENT, f"{self.name}: attr.type {attr.type} is not its own")
        refuse_what_it_cannot(event, self.source)
        if event.of_task:
            raise LinuxError(EINVAL, f"{self.name}: it cannot tell tasks apart: its events are of all CPUs")
        try:
            self.source.event_of(attr.config, attr.config1, attr.config2)
            core = self.source.core_asked_for(attr.config)
        except UnknownEvent as problem:
            raise LinuxError(EINVAL, str(problem)) from None
        if core is not None and core not in {cpu.number for cpu in self._cpus}:
            raise LinuxError(EINVAL, f"{self.name}: coreid={core}: there are {len(self._cpus)} cores, from 0 on")
        event.hw.config = attr.config
        event.cpu = self.cpu

    def add(self, event: PerfEvent, cpu: Cpu) -> bool:
        if self._most and len(self._counting) >= self._most:
            return False
        self._counting.add(event)
        return super().add(event, cpu)

    def del_(self, event: PerfEvent) -> None:
        super().del_(event)
        self._counting.discard(event)

    def _now(self, event: PerfEvent) -> int:
        counted = self.source.event_of(event.hw.config)
        only = self.source.core_asked_for(event.hw.config)
        cores = [cpu.core for cpu in self._cpus if only in (None, cpu.number)]
        added = sum(core.total(probe) for core in cores for probe in counted.probes)
        return added - sum(core.total(probe) for core in cores for probe in counted.less)
