"""The driver of a PMUv3 that a host shares with guests. As drivers/perf/arm_pmuv3.c calls arch/arm64/kvm/pmu.c.

While a guest runs, the first event counters, the cycle counter and the instruction counter are its own, so an event
that counts in guests (without exclude_guest) gets a counter behind them. One with exclude_host counts there alone: it
is deferred to the next entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emulator.cpu import Cpu, Level
from perfcore.events.drivers.arm_pmuv3 import ArmPmuV3
from perfcore.events.drivers.hardware import CpuCounters
from perfcore.events.event import PerfEvent
from pmu.arm.sharing import SharedPmuV3
from pmu.device import Pmu


class ArmPmuV3Host(ArmPmuV3):
    """Programs the PMU while the host runs, and at no other time."""

    def __init__(self, cpus: Sequence[Cpu], shared: Sequence[SharedPmuV3]) -> None:
        self._shared: Mapping[int, SharedPmuV3] = {cpu.number: pmu for cpu, pmu in zip(cpus, shared, strict=True)}
        self._first_of_host = shared[0].guest_counters
        super().__init__(cpus, [pmu.device for pmu in shared])

    def _levels(self, event: PerfEvent) -> set[Level]:
        """At which it counts, in the host or in guests."""
        return set(filter(event.counts_at, Level))

    def free_index(self, pmu: Pmu, used: set[int] | dict[int, PerfEvent], event: PerfEvent) -> int | None:
        if event.attr.exclude_guest:
            return super().free_index(pmu, used, event)
        return next((index for index in range(self._first_of_host, pmu.counters) if index not in used), None)

    def enable_counter(self, counters: CpuCounters, event: PerfEvent) -> None:
        """kvm_set_pmu_events."""
        super().enable_counter(counters, event)
        attr = event.attr
        if event.hw.idx in range(self._first_of_host, counters.pmu.counters):
            self._shared[counters.cpu.number].set_pmu_events(
                1 << event.hw.idx, exclude_host=bool(attr.exclude_host), exclude_guest=bool(attr.exclude_guest)
            )

    def disable_counter(self, counters: CpuCounters, event: PerfEvent) -> None:
        """kvm_clr_pmu_events."""
        if event.hw.idx in range(self._first_of_host, counters.pmu.counters):
            self._shared[counters.cpu.number].clr_pmu_events(1 << event.hw.idx)
        super().disable_counter(counters, event)
