"""The driver of Intel's perfmon that a host shares with guests. As arch/x86/events/intel/core.c has hosts and guests
(intel_set_masks, intel_guest_get_msrs), where guests have counters of their own besides.

While a guest runs, the first general-purpose counters and the fixed ones are its own, so an event that counts in guests
(without exclude_guest) gets a counter behind them. One with exclude_host counts there alone: it waits for the next
entry, whatever the host writes to IA32_PERF_GLOBAL_CTRL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emulator.cpu import Cpu, Level
from perfcore.events.drivers.hardware import CpuCounters
from perfcore.events.drivers.intel_core import IntelCore
from perfcore.events.event import PerfEvent
from pmu.device import Pmu
from pmu.intel.sharing import SharedPerfmon


class IntelCoreHost(IntelCore):
    """Programs the PMU while the host runs, and at no other time."""

    def __init__(self, cpus: Sequence[Cpu], shared: Sequence[SharedPerfmon]) -> None:
        self._shared: Mapping[int, SharedPerfmon] = {cpu.number: pmu for cpu, pmu in zip(cpus, shared, strict=True)}
        device = shared[0].device
        self._of_host = range(shared[0].guest_counters, device.counters)
        super().__init__(cpus, [pmu.device for pmu in shared])

    def _levels(self, event: PerfEvent) -> set[Level]:
        """At which it counts, in the host or in guests."""
        return set(filter(event.counts_at, Level))

    def _counters_of(self, event: PerfEvent) -> list[int]:
        return [index for index in super()._counters_of(event) if event.attr.exclude_guest or index in self._of_host]

    def free_index(self, pmu: Pmu, used: set[int] | dict[int, PerfEvent], event: PerfEvent) -> int | None:
        return next((index for index in self._counters_of(event) if index not in used), None)

    def _globally_enabled(self, counters: CpuCounters) -> int:
        return counters.running & ~self._shared[counters.cpu.number].deferred

    def enable_counter(self, counters: CpuCounters, event: PerfEvent) -> None:
        """... and intel_set_masks."""
        super().enable_counter(counters, event)
        attr = event.attr
        if event.hw.idx in self._of_host:
            self._shared[counters.cpu.number].set_pmu_events(
                1 << event.hw.idx, exclude_host=bool(attr.exclude_host), exclude_guest=bool(attr.exclude_guest)
            )

    def disable_counter(self, counters: CpuCounters, event: PerfEvent) -> None:
        """... and intel_clear_masks."""
        if event.hw.idx in self._of_host:
            self._shared[counters.cpu.number].clr_pmu_events(1 << event.hw.idx)
        super().disable_counter(counters, event)
