"""Which driver a PMU gets: by the name in its model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from emulator.cpu import Cpu
from perfcore.events.drivers.arm_pmuv3 import ArmPmuV3
from perfcore.events.drivers.clock import software_clocks
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.drivers.intel_core import IntelCore
from perfcore.events.drivers.software import SoftwareDriver
from perfcore.events.event import PmuDriver
from perfcore.events.kernel import Linux

DRIVERS: dict[str, Callable[[Sequence[Cpu], Sequence[Any]], HardwareDriver]] = {  # PmuModel.driver -> driver
    "arm_pmuv3": ArmPmuV3,
    "intel_core": IntelCore,
}


def drivers_for(kernel: Linux, pmus: Sequence[Any]) -> list[PmuDriver]:
    """All drivers of one subsystem: that of the CPUs' PMUs (`pmus[n]` is of `kernel.cpus[n]`), and the kernel's own."""
    name = pmus[0].model.driver
    if name not in DRIVERS:
        raise ValueError(f"{pmus[0].model.name}: no driver '{name}'; there are {', '.join(DRIVERS)}")
    return [DRIVERS[name](kernel.cpus, pmus), SoftwareDriver(kernel), *software_clocks(kernel)]
