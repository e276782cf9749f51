"""What counts a board from outside: perf's events on PMUs that its guest does not see, and what they need of a kernel.

The guest's kernel is executed, not modelled: of its tasks nothing is known here but their address spaces, or what is
read in its memory, so that events are of CPUs, and those that Linux makes itself (faults, switches) are nobody's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from emulator.board.observers import Observers
from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.linux.arch import architecture
from emulator.linux.arch.architecture import Architecture
from emulator.linux.cgroup.cgroups import Cgroup
from emulator.linux.process.task import Task
from emulator.linux.tracepoints import Tracepoints
from emulator.machine import Hardware
from perfcore.events.drivers.clock import software_clocks
from perfcore.events.drivers.sources import source_drivers
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Timer
from perfcore.events.pmu_driver import PmuDriver
from perfcore.events.settings import Settings
from perfcore.events.subsystem import PerfEvents
from perfemu.board_kinds import Tables
from perfemu.pmu_kinds import PMU_KINDS, Attached
from pmu.model import PmuModel

_MOST_SPACES = 1 << 16  # that are told apart; a guest may make any number


class Threads(Protocol):
    """Who can tell what runs."""

    def thread(self, cpu: Cpu) -> tuple[int, int]:
        """pid and tid of what runs on `cpu`. Called at each look, before its sample is written."""


class AddressSpaces:
    """Processes, as far as hardware can tell: their page tables, numbered from 1 as they are first seen."""

    def __init__(self, tables: Tables, seen: Callable[[Cpu, int | None], None]) -> None:
        """`seen`: called at each look, before its sample is written: with the tables' address where they are new."""
        self._tables = tables
        self._seen = seen
        self._numbers: dict[int, int] = {}

    def thread(self, cpu: Cpu) -> tuple[int, int]:
        """Its number stands for both."""
        base = cpu.core.read_kernel_register(self._tables.register) & self._tables.mask
        number = self._numbers.get(base)
        new = None
        if number is None:
            number = min(len(self._numbers) + 1, _MOST_SPACES)
            if number < _MOST_SPACES:
                self._numbers[base] = number
                new = base
        self._seen(cpu, new)
        return number, number


@dataclass(frozen=True)
class BoardKernel:
    """A kernel of which nothing is known, for perf's half of one."""

    clock: Clock
    cpus: Sequence[Cpu]
    architecture: Architecture
    observers: Observers
    threads: Threads
    knows_frames: Callable[[], bool]  # whether the guest's kernel keeps frame pointers
    no_cgroup: Cgroup = field(default_factory=lambda: Cgroup("", None, 0))  # they are the guest's kernel's
    tracepoints: Tracepoints = field(default_factory=Tracepoints)

    @property
    def executing_cpu(self) -> Cpu:
        return self.cpus[0]

    @property
    def executes(self) -> bool:
        return True

    @property
    def keeps_frame_pointers(self) -> bool:
        return self.knows_frames()

    def current(self, cpu: Cpu) -> Task | None:
        return None

    def cgroup(self, cpu: Cpu) -> Cgroup:
        return self.no_cgroup

    def add_timer(self, cycle: int, callback: Callable[[], None], cpu: Cpu | None = None) -> Timer:
        return self.observers.at_cycle((cpu or self.executing_cpu).number, cycle, callback)

    def thread(self, cpu: Cpu) -> tuple[int, int]:
        return self.threads.thread(cpu)


def measuring_events(
    hardware: Hardware,
    model: PmuModel,
    counters: int,
    observers: Observers,
    threads: Threads,
    knows_frames: Callable[[], bool],
) -> tuple[PerfEvents, Attached]:
    """And the PMUs that they count on, with `counters` event counters. Before the run.

    `knows_frames`: whether the guest's kernel keeps frame pointers; asked at each sample in it.
    """
    kernel = BoardKernel(
        hardware.clock, hardware.cpus, architecture(hardware.config.isa), observers, threads, knows_frames
    )
    attached = PMU_KINDS[model.driver].attach(hardware.cpus, model.without_limits(), counters, hardware.clock)
    drivers: list[PmuDriver[PerfEvent]] = [
        attached.driver,
        *source_drivers(kernel, model.without_limits()),
        *software_clocks(kernel),
    ]
    return PerfEvents(kernel, drivers, Settings.measuring()), attached
