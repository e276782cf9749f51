"""The driver of AMD's core counters that a host shares with guests: by the global control, where Linux has the bits
GuestOnly and HostOnly of each counter (arch/x86/events/amd/core.c)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emulator.cpu import Cpu, Level
from perfcore.events.drivers.amd_core import AmdCore
from perfcore.events.drivers.cpu_counters import CpuCounters
from perfcore.events.drivers.host_counters import HostCounters
from perfcore.events.event import PerfEvent
from pmu.amd.sharing import SharedCoreCounters
from pmu.device import Pmu


class AmdCoreHost(AmdCore):
    """All counters are alike."""

    def __init__(self, cpus: Sequence[Cpu], shared: Sequence[SharedCoreCounters]) -> None:
        self._host = HostCounters(cpus, shared, shared[0].device.counters)
        super().__init__(cpus, [pmu.device for pmu in shared])

    def _levels(self, event: PerfEvent) -> set[Level]:
        return self._host.levels(event)

    def free_index(self, pmu: Pmu, used: set[int] | dict[int, PerfEvent], event: PerfEvent) -> int | None:
        free = (index for index in range(pmu.counters) if index not in used)
        return next((index for index in free if self._host.suits(index, event)), None)

    def _globally_enabled(self, counters: CpuCounters) -> int:
        return self._host.counting(counters)

    def enable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        super().enable_counters(counters, events)
        self._host.set_events(counters, events)

    def disable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        self._host.clear_events(counters, events)
        super().disable_counters(counters, events)
