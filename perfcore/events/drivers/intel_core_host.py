"""The driver of Intel's perfmon that a host shares with guests. As arch/x86/events/intel/core.c has hosts and guests
(intel_set_masks, intel_guest_get_msrs), where guests have counters of their own besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emulator.cpu import Cpu, Level
from perfcore.events.drivers.cpu_counters import CpuCounters
from perfcore.events.drivers.host_counters import HostCounters
from perfcore.events.drivers.intel_core import IntelCore
from perfcore.events.event import PerfEvent
from pmu.device import Pmu
from pmu.intel.sharing import SharedPerfmon


class IntelCoreHost(IntelCore):
    """Guests have the fixed counters, too."""

    def __init__(self, cpus: Sequence[Cpu], shared: Sequence[SharedPerfmon]) -> None:
        self._host = HostCounters(cpus, shared, shared[0].device.counters)
        super().__init__(cpus, [pmu.device for pmu in shared])

    def _levels(self, event: PerfEvent) -> set[Level]:
        return self._host.levels(event)

    def _counters_of(self, event: PerfEvent) -> list[int]:
        return [index for index in super()._counters_of(event) if self._host.suits(index, event)]

    def free_index(self, pmu: Pmu, used: set[int] | dict[int, PerfEvent], event: PerfEvent) -> int | None:
        return next((index for index in self._counters_of(event) if index not in used), None)

    def _globally_enabled(self, counters: CpuCounters) -> int:
        return self._host.counting(counters)

    def enable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        super().enable_counters(counters, events)
        self._host.set_events(counters, events)

    def disable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        self._host.clear_events(counters, events)
        super().disable_counters(counters, events)
