"""CpuCounters: the counters of one CPU's PMU, and who has them, for the drivers of CPU PMUs."""

from __future__ import annotations

from collections.abc import Callable

from emulator.cpu import Cpu
from perfcore.events.drivers.saved_counters import SavedCounters
from perfcore.events.event import PerfEvent
from perfcore.events.hardware_state import HardwareState
from pmu.device import Pmu

CounterAccess = tuple[Callable[[], int], Callable[[int], None]]
"""What reads a counter, and what writes it."""


class CpuCounters:
    """The counters of one CPU's PMU, and who has them (struct pmu_hw_events, struct cpu_hw_events)."""

    __slots__ = (
        "changes",
        "cpu",
        "events",
        "left",
        "pending",
        "pmu",
        "read_status",
        "running",
        "selected",
        "stands",
        "starting",
        "stopping",
        "taken",
    )

    def __init__(self, cpu: Cpu, pmu: Pmu) -> None:
        self.cpu = cpu
        self.pmu = pmu
        self.read_status: Callable[[], int]  # which counters have overflowed
        self.events: dict[int, PerfEvent] = {}  # by counter
        self.taken = 0  # mask of those in `events`
        self.running = 0  # mask of the counters that count, for drivers that need it
        self.pending: list[PerfEvent] = []  # with something to do at the end of the interrupt
        self.selected: dict[int, int] = {}  # by counter: what its selecting register holds, for drivers that look
        self.stands = False  # between pmu_disable and pmu_enable
        self.stopping: dict[int, PerfEvent] = {}  # by counter: whose are to be disabled by pmu_enable
        self.starting: dict[int, PerfEvent] = {}  # ... to be enabled, after that
        self.left: SavedCounters | None = None  # whose task has gone meanwhile; they are to be disabled, too
        self.changes = 0  # how often any one has come, gone, started or stopped by itself

    def take(self, event: PerfEvent, index: int, access: Callable[[Pmu, int, HardwareState], CounterAccess]) -> None:
        """Counter `index` is the event's from now on. `access` is asked if that has not been its last one."""
        hw = event.hw
        hw.idx = index
        self.events[index] = event
        self.taken |= 1 << index
        self.changes += 1
        if hw.accessed != index or hw.pmu is not self.pmu:
            hw.accessed, hw.pmu = index, self.pmu
            hw.read_counter, hw.write_counter = access(self.pmu, index, hw)

    def leave(self, index: int) -> None:
        """It is nobody's."""
        del self.events[index]
        self.taken &= ~(1 << index)
        self.changes += 1

    def save(self, saved: SavedCounters) -> None:
        """A task goes, while they stand."""
        saved.values = saved.read()
        if self.taken == saved.mask:
            self.events.clear()
        else:
            for index in saved.holders:
                del self.events[index]
        self.taken -= saved.mask
        saved.others = self.taken
        self.left = saved

    def restore(self, saved: SavedCounters) -> None:
        """It comes back, to counters that are free, while they stand."""
        saved.write(saved.values)
        self.events.update(saved.holders)
        self.taken |= saved.mask
        if self.left is not None and saved.selects_like(self.left):
            self.left = None  # they count on, the same for others
        else:
            self.starting.update(saved.holders)
        saved.changes = self.changes

    def go_on(self) -> tuple[dict[int, PerfEvent], dict[int, PerfEvent]]:
        """They stand no longer. Whose are to be disabled, and whose enabled then?"""
        self.stands = False
        if self.left is not None:
            self.stopping.update(self.left.holders)
            self.left = None
        changes = self.stopping, self.starting
        self.stopping, self.starting = {}, {}
        return changes

    def run_pending(self) -> None:
        """The interrupt has been handled."""
        pending, self.pending = self.pending, []
        for event in pending:
            event.run_pending()
