"""BranchStacks: what the drivers of units that record branches have in common. As arch/x86/events/intel/lbr.c.

A unit records as long as some event wants it, for all of them the same branches: an event that wants others waits for
its turn, as for a counter. When a task leaves, what was recorded is dropped; where calls are recorded as a stack, it is
kept for the task.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from emulator.cpu import Cpu
from perfcore.abi.constants import BranchSampleType
from perfcore.abi.sample import BranchStack
from perfcore.events.event import PerfEvent
from perfcore.events.event_context import EventContext

Kept = Sequence[object]
"""A unit's records while their task is elsewhere, as its driver has read them."""


@dataclass(eq=False, frozen=True, slots=True)
class EventBranches:
    """What one event wants."""

    unit: BranchStacks
    event: PerfEvent
    selected: int  # as the unit's selecting register takes it
    classes: int  # which branches, as the driver tells them apart afterwards

    @property
    def wanted(self) -> int:
        """attr.branch_sample_type"""
        return self.event.attr.branch_sample_type

    @property
    def as_stack(self) -> bool:
        return bool(self.wanted & BranchSampleType.CALL_STACK)

    def add(self, cpu: Cpu) -> bool:
        return self.unit.add(self, cpu)

    def remove(self, cpu: Cpu) -> None:
        self.unit.remove(self, cpu)

    def read(self, cpu: Cpu) -> BranchStack:
        return self.unit.read(self, cpu)


class BranchStacks(ABC):
    """A driver of the units of all CPUs."""

    entries: int  # of each

    def __init__(self, cpus: Sequence[Cpu]) -> None:
        self._users: dict[int, list[EventBranches]] = {cpu.number: [] for cpu in cpus}
        self._hears_switches = False
        self._kept: WeakKeyDictionary[EventContext[PerfEvent], Kept] = WeakKeyDictionary()

    # what each kind does by its registers

    @abstractmethod
    def configured(self, event: PerfEvent) -> EventBranches:
        """What `event` wants; LinuxError where that cannot be."""

    @abstractmethod
    def start(self, cpu: Cpu, branches: EventBranches) -> None:
        """The unit records from now on."""

    @abstractmethod
    def stop(self, cpu: Cpu) -> None:
        """It records no more."""

    @abstractmethod
    def reset(self, cpu: Cpu) -> None:
        """Its records are empty."""

    @abstractmethod
    def keep(self, cpu: Cpu) -> Kept:
        """What it has recorded, for `bring_back`."""

    @abstractmethod
    def bring_back(self, cpu: Cpu, kept: Kept) -> None: ...

    @abstractmethod
    def read(self, branches: EventBranches, cpu: Cpu) -> BranchStack: ...

    @abstractmethod
    def go_on(self, cpu: Cpu) -> None:
        """The interrupt has been handled, for which the unit may have stopped."""

    # users

    def in_use(self, cpu: Cpu) -> bool:
        return bool(self._users[cpu.number])

    def add(self, branches: EventBranches, cpu: Cpu) -> bool:
        users = self._users[cpu.number]
        if users and users[0].selected != branches.selected:
            return False
        users.append(branches)
        self.hear_of_switches(branches)
        if len(users) == 1:
            kept = self._kept.pop(branches.event.context, None) if branches.as_stack else None
            if kept is None:
                self.reset(cpu)
            else:
                self.bring_back(cpu, kept)
            self.start(cpu, branches)
        return True

    def remove(self, branches: EventBranches, cpu: Cpu) -> None:
        users = self._users[cpu.number]
        users.remove(branches)
        if not users:
            self.stop(cpu)
            if branches.as_stack and branches.event.of_task:
                self._kept[branches.event.context] = self.keep(cpu)

    def hear_of_switches(self, branches: EventBranches) -> None:
        """If it stays where it is while tasks come and go."""
        if not branches.event.of_task and not self._hears_switches:
            self._hears_switches = True
            branches.event.kernel.tracepoints.sched_in.subscribe(lambda task, cpu: self._flush(cpu))

    def _flush(self, cpu: Cpu) -> None:
        """Another task is about to run there, which has made none of the branches that are recorded. A task's own
        events come and go with it."""
        if any(not user.event.of_task for user in self._users[cpu.number]):
            self.reset(cpu)
