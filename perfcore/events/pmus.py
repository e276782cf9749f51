"""Pmus: all PMUs of one subsystem, in the order in which they are asked for an event. As perf_pmu_register."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from emulator.linux.errors import EEXIST, EINVAL, ENOENT, LinuxError
from perfcore.abi.constants import FIRST_DYNAMIC_TYPE
from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import PmuDriver


class RegisteredPmu(PmuDriver[PerfEvent], Protocol):
    """A driver that comes at run time, with what sysfs says of it."""

    def sysfs_attributes(self) -> Mapping[str, str]:
        """Path in its directory (``format/branches``, ``cpumask``) -> text without its newline."""


class Pmus:
    """Those from the beginning, and those that come and go."""

    def __init__(self, drivers: Sequence[PmuDriver[PerfEvent]]) -> None:
        self._drivers = list(drivers)
        self.on_registered: Callable[[RegisteredPmu], None] | None = None  # shows it in sysfs
        self.on_unregistered: Callable[[PmuDriver[PerfEvent]], None] | None = None

    def __iter__(self) -> Iterator[PmuDriver[PerfEvent]]:
        return iter(tuple(self._drivers))

    def driver_of(self, event: PerfEvent) -> PmuDriver[PerfEvent]:
        """perf_init_event: the first driver that does not say ENOENT."""
        why = f"no driver has type {event.attr.type}"
        for driver in self:
            event.driver = driver
            try:
                driver.event_init(event)
            except LinuxError as error:
                if error.code != ENOENT:
                    raise
                why = error.why if driver.type == event.attr.type or driver.is_hardware else why
                continue
            return driver
        raise LinuxError(ENOENT, why)

    def register(self, driver: RegisteredPmu, type: int = -1) -> None:
        """perf_pmu_register(): -1 gives it the lowest type that is free. EINVAL, EEXIST."""
        if not driver.name:
            raise LinuxError(EINVAL, "a PMU without a name cannot be registered")
        if any(driver.name == other.name for other in self._drivers):
            raise LinuxError(EEXIST, f"there is a PMU {driver.name}")
        taken = {other.type for other in self._drivers}
        if type in taken:
            raise LinuxError(EEXIST, f"attr.type {type} is another PMU's")
        driver.type = type if type >= 0 else next(n for n in range(FIRST_DYNAMIC_TYPE, 1 << 31) if n not in taken)
        self._drivers.append(driver)
        if self.on_registered is not None:
            self.on_registered(driver)

    def remove(self, driver: PmuDriver[PerfEvent]) -> None:
        """Of perf_pmu_unregister() what is not about its events."""
        if driver not in self._drivers:
            raise LinuxError(ENOENT, f"no PMU {driver.name} is registered")
        self._drivers.remove(driver)
        if self.on_unregistered is not None:
            self.on_unregistered(driver)
