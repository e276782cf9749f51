"""HostCounters: what the drivers of PMUs that a host shares with guests have in common. As Linux calls KVM, or has it.

While a guest runs, the first counters and the fixed ones are its own, so an event that counts in guests (without
exclude_guest) gets a counter behind them. One with exclude_host counts there alone: it waits for the next entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emulator.cpu import Cpu, Level
from perfcore.events.drivers.cpu_counters import CpuCounters
from perfcore.events.event import PerfEvent
from pmu.sharing import SharedPmu


class HostCounters:
    """The host programs PMUs while it runs, and at no other time."""

    def __init__(self, cpus: Sequence[Cpu], shared: Sequence[SharedPmu], counters: int) -> None:
        self._shared: Mapping[int, SharedPmu] = {cpu.number: pmu for cpu, pmu in zip(cpus, shared, strict=True)}
        self._of_host = range(shared[0].guest_counters, counters)

    def levels(self, event: PerfEvent) -> set[Level]:
        """At which it counts, in the host or in guests."""
        return set(filter(event.counts_at, Level))

    def suits(self, index: int, event: PerfEvent) -> bool:
        """Whether the event counts there wherever it is to."""
        return bool(event.attr.exclude_guest) or index in self._of_host

    def set_events(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        """Their counters have been enabled. kvm_set_pmu_events."""
        for index, event in events.items():
            attr = event.attr
            if index in self._of_host:
                self._shared[counters.cpu.number].set_pmu_events(
                    1 << index, exclude_host=bool(attr.exclude_host), exclude_guest=bool(attr.exclude_guest)
                )

    def clear_events(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        """Their counters will be disabled. kvm_clr_pmu_events."""
        for index in events:
            if index in self._of_host:
                self._shared[counters.cpu.number].clr_pmu_events(1 << index)

    def counting(self, counters: CpuCounters) -> int:
        """Mask of those that are to count while the host runs."""
        return counters.running & ~self._shared[counters.cpu.number].deferred
