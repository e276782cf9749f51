"""What a guest finds about event sources: /sys/bus/event_source/devices and the sysctls of /proc/sys/kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from perfcore.abi.constants import PerfType
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.event import PmuDriver
from perfcore.events.settings import TICK_NS, Settings

DEVICES = "/sys/bus/event_source/devices"

Text = str | Callable[[], str | bytes]


def sysfs_files(drivers: Sequence[PmuDriver]) -> Iterator[tuple[str, Text]]:
    """(path, text) of every file of the drivers' devices."""
    yield f"{DEVICES}/software/type", f"{PerfType.SOFTWARE}\n"
    for driver in drivers:
        if isinstance(driver, HardwareDriver):
            yield from _device_files(driver)


def _device_files(driver: HardwareDriver) -> Iterator[tuple[str, Text]]:
    device = f"{DEVICES}/{driver.name}"
    yield f"{device}/type", f"{driver.type}\n"
    yield f"{device}/perf_event_mux_interval_ms", f"{TICK_NS // 1_000_000}\n"
    for name, text in driver.sysfs_attributes().items():
        yield f"{device}/{name}", f"{text}\n"
    for name, text in driver.model.sysfs_format().items():
        yield f"{device}/format/{name}", f"{text}\n"
    for name, text in driver.model.sysfs_events().items():
        yield f"{device}/events/{name}", f"{text}\n"


def sysctl_files(isa: str, settings: Settings) -> Iterator[tuple[str, Text]]:
    """What the kernel's own /proc/sys/kernel does not have: arm64's switch for counter reads from user space."""
    if isa == "aarch64":
        yield "/proc/sys/kernel/perf_user_access", partial(_user_access, settings)


def _user_access(settings: Settings) -> str:
    return f"{settings.user_access}\n"
