"""CpuCounters: the counters of one CPU's PMU, and who has them, for the drivers of CPU PMUs."""

from __future__ import annotations

from collections.abc import Callable

from emulator.cpu import Cpu
from perfcore.events.event import PerfEvent
from perfcore.events.hardware_state import HardwareState
from pmu.device import Pmu

CounterAccess = tuple[Callable[[], int], Callable[[int], None]]
"""What reads a counter, and what writes it."""


class CpuCounters:
    """The counters of one CPU's PMU, and who has them (struct pmu_hw_events, struct cpu_hw_events)."""

    __slots__ = ("cpu", "events", "pending", "pmu", "running", "selected", "stands", "starting", "stopping", "taken")

    def __init__(self, cpu: Cpu, pmu: Pmu) -> None:
        self.cpu = cpu
        self.pmu = pmu
        self.events: dict[int, PerfEvent] = {}  # by counter
        self.taken = 0  # mask of those in `events`
        self.running = 0  # mask of the counters that count, for drivers that need it
        self.pending: list[PerfEvent] = []  # with something to do at the end of the interrupt
        self.selected: dict[int, int] = {}  # by counter: what its selecting register holds, for drivers that look
        self.stands = False  # between pmu_disable and pmu_enable
        self.stopping: dict[int, PerfEvent] = {}  # by counter: whose are to be disabled by pmu_enable
        self.starting: dict[int, PerfEvent] = {}  # ... to be enabled, after that

    def take(self, event: PerfEvent, index: int, access: Callable[[Pmu, int, HardwareState], CounterAccess]) -> None:
        """Counter `index` is the event's from now on. `access` is asked if that has not been its last one."""
        hw = event.hw
        hw.idx = index
        self.events[index] = event
        self.taken |= 1 << index
        if hw.accessed != index or hw.pmu is not self.pmu:
            hw.accessed, hw.pmu = index, self.pmu
            hw.read_counter, hw.write_counter = access(self.pmu, index, hw)

    def leave(self, index: int) -> None:
        """It is nobody's."""
        del self.events[index]
        self.taken &= ~(1 << index)

    def go_on(self) -> tuple[dict[int, PerfEvent], dict[int, PerfEvent]]:
        """They stand no longer. Whose are to be disabled, and whose enabled then?"""
        self.stands = False
        changes = self.stopping, self.starting
        self.stopping, self.starting = {}, {}
        return changes

    def run_pending(self) -> None:
        """The interrupt has been handled."""
        pending, self.pending = self.pending, []
        for event in pending:
            event.run_pending()
