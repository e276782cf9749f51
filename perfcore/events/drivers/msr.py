"""The driver of an x86 CPU's counters that always run. As arch/x86/events/msr.c.

Its events are in the context of software events, as Linux has it: they always fit, and may join any group.
"""

from __future__ import annotations

from emulator.linux.errors import EINVAL, ENOENT, LinuxError
from perfcore.events.drivers.without_counters import CountedByReading, refuse_what_it_cannot
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux
from pmu.event import UnknownEvent
from pmu.event_source import EventSource
from pmu.register import Register
from pmu.x86_msr import REGISTERS, AlwaysRunning


class MsrDriver(CountedByReading):
    """`hw.config` is the event's code. User space may not read it: RDPMC knows no such counter."""

    def __init__(self, kernel: Linux, source: EventSource, type: int) -> None:
        self.source = source
        self.name = source.name
        self.type = type
        self._cpus = {cpu.number: AlwaysRunning(cpu, kernel.clock.reference) for cpu in kernel.cpus}

    def event_init(self, event: PerfEvent) -> None:
        attr = event.attr
        if attr.type != self.type:
            raise LinuxError(ENOENT, f"{self.name}: attr.type {attr.type} is not its own")
        refuse_what_it_cannot(event, self.source)
        try:
            self.source.event_of(attr.config)
        except UnknownEvent as problem:
            raise LinuxError(EINVAL, str(problem)) from None
        event.hw.config = attr.config

    def _now(self, event: PerfEvent) -> int:
        assert event.on_cpu is not None, "an event that is not stopped is on a CPU"
        register: type[Register] = REGISTERS[event.hw.config]
        return self._cpus[event.on_cpu.number].read(register)
