"""PmuDriver: the kind of thing that counts events. As Linux's struct pmu."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, TypeVar

from emulator.cpu import Cpu

Event = TypeVar("Event", contravariant=True)  # PerfEvent


class PmuDriver(Protocol[Event]):
    """A driver keeps its part of an event in `event.hw`; it programs hardware by registers only."""

    name: str  # below /sys/bus/event_source/devices, "" for those without
    type: int  # attr.type
    is_software: bool  # its events always fit, and may join any group
    mux_interval_ns: int  # how long groups count that take turns: perf_event_mux_interval_ms
    is_called_by_no_nmi: bool  # PERF_PMU_CAP_NO_NMI: its records may have any clock
    counts_tasks: bool  # it has events of single tasks and cgroups, not of whole CPUs alone
    is_hardware: bool  # its overflows come as interrupts, with the instruction known

    def event_init(self, event: Event) -> None:
        """Accept `event`, or raise LinuxError: ENOENT if it is not this driver's, else why it cannot be."""

    def has_room(self, event: Event, cpu: Cpu) -> bool:
        """Whether `cpu` has a counter for `event`."""

    def add(self, event: Event, cpu: Cpu) -> None:
        """Give `event` a counter on `cpu`, which has room for it, and start it."""

    def del_(self, event: Event) -> None:
        """Stop `event`, update its count and take its counter away."""

    def start(self, event: Event, reload: bool = False) -> None:
        """Count. With `reload`, from the period that is left (PERF_EF_RELOAD)."""

    def stop(self, event: Event, update: bool = True) -> None:
        """Do not count. With `update`, take over what was counted (PERF_EF_UPDATE)."""

    def read(self, event: Event) -> None:
        """Add what was counted since the last time to `event.counted`."""

    def set_filter(self, event: Event, text: str) -> None:
        """PERF_EVENT_IOC_SET_FILTER: `event` counts no more than what `text` says. LinuxError where that cannot be."""

    def event_mapped(self, event: Event) -> None:
        """A guest has mapped the event's page, and may read the counter by itself if the driver lets it."""

    def event_unmapped(self, event: Event) -> None:
        """No guest has it mapped any more."""

    def sched_task(self, cpu: Cpu, mapped: Collection[Event]) -> None:
        """On `cpu` a task runs of whose events guests have mapped these: what may user space read there?"""
