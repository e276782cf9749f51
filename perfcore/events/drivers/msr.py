"""The driver of an x86 CPU's counters that always run. As arch/x86/events/msr.c.

Its events are in the context of software events, as Linux has it: they always fit, and may join any group.
"""

from __future__ import annotations

from emulator.linux.errors import EINVAL, ENOENT, LinuxError
from perfcore.events.drivers.without_counters import CountedByReading
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux
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
        refuse_what_it_cannot(event, self.name)
        if self.source.find_code(attr.config) is None:
            raise LinuxError(EINVAL, f"{self.name}: there is no event {attr.config:#x}")
        event.hw.config = attr.config

    def _now(self, event: PerfEvent) -> int:
        assert event.on_cpu is not None, "an event that is not stopped is on a CPU"
        register: type[Register] = REGISTERS[event.hw.config]
        return self._cpus[event.on_cpu.number].read(register)


def refuse_what_it_cannot(event: PerfEvent, name: str) -> None:
    """PERF_PMU_CAP_NO_INTERRUPT, PERF_PMU_CAP_NO_EXCLUDE: of a PMU that knows neither samples nor levels. EINVAL."""
    attr = event.attr
    if event.is_sampling:
        raise LinuxError(EINVAL, f"{name}: its counters do not interrupt, so that nothing can be sampled by them")
    excluded = ("user", "kernel", "hv", "idle", "host", "guest")
    asked = [f"exclude_{what}" for what in excluded if getattr(attr, f"exclude_{what}")]
    if asked:
        raise LinuxError(EINVAL, f"{name}: {', '.join(asked)}: it counts whatever happens")
