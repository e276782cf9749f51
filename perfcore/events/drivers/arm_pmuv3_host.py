"""The driver of a PMUv3 that a host shares with guests. As drivers/perf/arm_pmuv3.c calls arch/arm64/kvm/pmu.c."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emulator.cpu import Cpu, Level
from perfcore.events.drivers.arm_pmuv3 import ArmPmuV3
from perfcore.events.drivers.cpu_counters import CpuCounters
from perfcore.events.drivers.host_counters import HostCounters
from perfcore.events.event import PerfEvent
from pmu.arm.sharing import SharedPmuV3
from pmu.device import Pmu


class ArmPmuV3Host(ArmPmuV3):
    """Guests have the cycle counter and the instruction counter, too."""

    def __init__(self, cpus: Sequence[Cpu], shared: Sequence[SharedPmuV3]) -> None:
        self._host = HostCounters(cpus, shared, shared[0].device.counters)
        super().__init__(cpus, [pmu.device for pmu in shared])

    def _levels(self, event: PerfEvent) -> set[Level]:
        return self._host.levels(event)

    def free_index(self, pmu: Pmu, used: set[int] | dict[int, PerfEvent], event: PerfEvent) -> int | None:
        if event.attr.exclude_guest:
            return super().free_index(pmu, used, event)
        free = (index for index in range(pmu.counters) if index not in used)
        return next((index for index in free if self._host.suits(index, event)), None)

    def enable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        super().enable_counters(counters, events)
        self._host.set_events(counters, events)

    def disable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        self._host.clear_events(counters, events)
        super().disable_counters(counters, events)
