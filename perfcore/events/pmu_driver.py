"""PmuDriver: the kind of thing that counts events. As Linux's struct pmu."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeVar

from emulator.cpu import Cpu
from perfcore.events.programs import ProgramArray

Event = TypeVar("Event", contravariant=True)  # PerfEvent


class AuxUnit(Protocol[Event]):
    """The half of struct pmu that units have which trace into memory by themselves (setup_aux and its like)."""

    exclusive: bool  # PERF_PMU_CAP_EXCLUSIVE: it cannot serve two events at once
    itrace: bool  # PERF_PMU_CAP_ITRACE: it traces instructions, so that readers want to hear of tasks
    pausable: bool  # PERF_PMU_CAP_AUX_PAUSE: it has pause and resume
    takes_snapshots: bool  # it has snapshot_aux

    def setup_aux(self, event: Event, memory: memoryview, overwrite: bool) -> object | None:
        """An area has been mapped for `event`: what the driver keeps with it; None: it cannot do anything with it."""

    def free_aux(self, private: object) -> None:
        """Nobody has it any more."""

    def pause(self, event: Event) -> None:
        """PERF_EF_PAUSE: `event.aux_paused` is set; what it has begun to write goes on when it is resumed."""

    def resume(self, event: Event) -> None:
        """PERF_EF_RESUME"""

    def snapshot_aux(self, event: Event, size: int) -> bytes:
        """At most `size` bytes, the latest that `event`, which is on a CPU, has written."""

    def aux_output_match(self, event: Event) -> bool:
        """Whether an event of another PMU can write into its trace (attr.aux_output)."""


class Saved(Protocol):
    """What a driver keeps of the events of a task that is on no CPU."""

    def settle(self) -> None:
        """They are as after `del_`."""


class PmuDriver(Protocol[Event]):
    """A driver keeps its part of an event in `event.hw`; it programs hardware by registers only."""

    name: str  # below /sys/bus/event_source/devices, "" for those without
    type: int  # attr.type
    is_software: bool  # its events always fit, and may join any group
    mux_interval_ns: int  # how long groups count that take turns: perf_event_mux_interval_ms
    is_called_by_no_nmi: bool  # PERF_PMU_CAP_NO_NMI: its records may have any clock
    writes_aux: bool  # PERF_PMU_CAP_AUX_OUTPUT: its events may have aux_output
    counts_tasks: bool  # it has events of single tasks and cgroups, not of whole CPUs alone
    is_hardware: bool  # its overflows come as interrupts, with the instruction known

    @property
    def aux(self) -> AuxUnit[Event] | None:
        """Its AUX area, if its events have one."""

    def event_init(self, event: Event) -> None:
        """Accept `event`, or raise LinuxError: ENOENT if it is not this driver's, else why it cannot be."""

    def pmu_disable(self, cpu: Cpu) -> None:
        """Several events are about to come and go on `cpu`, where nothing is executed before `pmu_enable`."""

    def pmu_enable(self, cpu: Cpu) -> None:
        """They have."""

    def add(self, event: Event, cpu: Cpu) -> bool:
        """Give `event` a counter on `cpu`, and start it. False: there is none for it."""

    def del_(self, event: Event) -> None:
        """Stop `event`, update its count and take its counter away."""

    def save(self, cpu: Cpu, events: Callable[[], Sequence[Event] | None], last: Saved | None) -> Saved | None:
        """All `events` of a task, which leaves `cpu`, lose their counters, and shall not hear of it before they must:
        `restore` gives them back, `Saved.settle` tells. None, and nothing is done: each has to be told at once.

        `last`: what was restored when the task came, from which it can be seen whether anything has changed since.
        """

    def restore(self, cpu: Cpu, saved: Saved) -> bool:
        """The task comes back. False, and nothing is done, if others have its counters."""

    def start(self, event: Event, reload: bool = False) -> None:
        """Count. With `reload`, from the period that is left (PERF_EF_RELOAD)."""

    def stop(self, event: Event, update: bool = True) -> None:
        """Do not count. With `update`, take over what was counted (PERF_EF_UPDATE)."""

    def read(self, event: Event) -> None:
        """Add what was counted since the last time to `event.counted`."""

    def set_filter(self, event: Event, text: str) -> None:
        """PERF_EVENT_IOC_SET_FILTER: `event` counts no more than what `text` says. LinuxError where that cannot be."""

    def programs(self, event: Event) -> ProgramArray | None:
        """The BPF programs of the tracepoint that `event` is; None: its own one is run when it overflows."""

    def event_mapped(self, event: Event) -> None:
        """A guest has mapped the event's page, and may read the counter by itself if the driver lets it."""

    def event_unmapped(self, event: Event) -> None:
        """No guest has it mapped any more."""

    def sched_task(self, cpu: Cpu, mapped: Collection[Event]) -> None:
        """On `cpu` a task runs of whose events guests have mapped these: what may user space read there?"""
