"""What counts a board from outside: perf's events on PMUs that its guest does not see, and what they need of a kernel.

The guest's kernel is executed, not modelled: of its tasks nothing is known here, so that events are of CPUs, and those
that Linux makes itself (faults, switches) are nobody's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.linux.arch import architecture
from emulator.linux.arch.architecture import Architecture
from emulator.linux.process.task import Task
from emulator.linux.tracepoints import Tracepoints
from emulator.machine import Hardware
from perfcore.events.drivers.arm_pmuv3 import ArmPmuV3
from perfcore.events.drivers.clock import software_clocks
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Timer
from perfcore.events.pmu_driver import PmuDriver
from perfcore.events.settings import Settings
from perfcore.events.subsystem import PerfEvents
from perfemu.errors import PerfemuError
from pmu.arm.pmuv3 import PmuV3
from pmu.model import PmuModel


@dataclass(frozen=True)
class BoardKernel:
    """A kernel in which nothing happens, for perf's half of one."""

    clock: Clock
    cpus: Sequence[Cpu]
    architecture: Architecture
    tracepoints: Tracepoints = field(default_factory=Tracepoints)

    @property
    def executing_cpu(self) -> Cpu:
        return self.cpus[0]

    def current(self, cpu: Cpu) -> Task | None:
        return None

    def add_timer(self, cycle: int, callback: Callable[[], None], cpu: Cpu | None = None) -> Timer:
        raise PerfemuError("events that happen at times (-F, cpu-clock samples) are not there on boards yet: -c counts")


def measuring_events(hardware: Hardware, model: PmuModel) -> PerfEvents:
    """Before the run."""
    kernel = BoardKernel(hardware.clock, hardware.cpus, architecture(hardware.config.isa))
    counters = model.most_counters
    pmus = [PmuV3(cpu.core.add_bank(model.bank_size(counters)), model, counters) for cpu in hardware.cpus]
    drivers: list[PmuDriver[PerfEvent]] = [ArmPmuV3(hardware.cpus, pmus), *software_clocks(kernel)]
    return PerfEvents(kernel, drivers, Settings.measuring())
