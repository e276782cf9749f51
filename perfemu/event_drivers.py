"""Event drivers: all event sources of one perf_event subsystem of a modelled Linux."""

from __future__ import annotations

from emulator.linux.kernel import Kernel
from perfcore.events.drivers.breakpoint import BreakpointDriver
from perfcore.events.drivers.clock import software_clocks
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.drivers.probe import KprobeDriver, UprobeDriver
from perfcore.events.drivers.software import SoftwareDriver
from perfcore.events.drivers.sources import source_drivers
from perfcore.events.drivers.tracepoint import TracepointDriver
from perfcore.events.event import PerfEvent
from perfcore.events.late_probes import LateProbes
from perfcore.events.pmu_driver import PmuDriver
from perfemu.units import share_branch_units, unit_drivers
from pmu.model import PmuModel


def all_drivers(
    kernel: Kernel, hardware: HardwareDriver, model: PmuModel, probes: LateProbes, *, measures: bool = False
) -> list[PmuDriver[PerfEvent]]:
    """In the order in which they are asked."""
    of_the_machine = source_drivers(kernel, model)
    breakpoints = BreakpointDriver(kernel, measures=measures)
    of_software = SoftwareDriver(kernel), TracepointDriver(kernel, probes), breakpoints
    by_memory = () if measures else (KprobeDriver(probes), UprobeDriver(probes))  # of who opens an event: its names
    units = list(unit_drivers(kernel, model, hardware))
    if not measures:
        share_branch_units(hardware, units)
    return [hardware, *of_the_machine, *units, *software_clocks(kernel), *of_software, *by_memory]
