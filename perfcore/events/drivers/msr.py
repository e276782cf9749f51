"""The driver of an x86 CPU's counters that always run. As arch/x86/events/msr.c.

Its events are in the context of software events, as Linux has it: they always fit, and may join any group.
"""

from __future__ import annotations

from collections.abc import Collection

from emulator.cpu import Cpu
from emulator.linux.errors import EINVAL, ENOENT, LinuxError
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux
from pmu.event_source import EventSource
from pmu.register import Register
from pmu.x86_msr import REGISTERS, AlwaysRunning


class MsrDriver:
    """`hw.config` is the event's code, `hw.prev_count` what its register held when it was last looked at."""

    is_software = True
    is_hardware = False

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

    def has_room(self, event: PerfEvent, cpu: Cpu) -> bool:
        return True

    def add(self, event: PerfEvent, cpu: Cpu) -> None:
        self.start(event)

    def del_(self, event: PerfEvent) -> None:
        self.stop(event)

    def start(self, event: PerfEvent, reload: bool = False) -> None:
        event.hw.stopped = False
        event.hw.prev_count = self._now(event)

    def stop(self, event: PerfEvent, update: bool = True) -> None:
        self.read(event)
        event.hw.stopped = True

    def read(self, event: PerfEvent) -> None:
        """msr_event_update"""
        hw = event.hw
        if not hw.stopped:
            now = self._now(event)
            event.counted += now - hw.prev_count
            hw.prev_count = now

    def event_mapped(self, event: PerfEvent) -> None:
        """User space may not read it: RDPMC knows no such counter."""

    def event_unmapped(self, event: PerfEvent) -> None:
        """It could not."""

    def sched_task(self, cpu: Cpu, mapped: Collection[PerfEvent]) -> None:
        """There is none to be read."""

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
