"""What a guest finds about event sources: /sys/bus/event_source/devices and tracefs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from perfcore.abi.constants import PerfType
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.drivers.probe import ProbeDriver
from perfcore.events.drivers.sources import SourceDriver
from perfcore.events.drivers.uncore import UncoreDriver
from perfcore.events.drivers.unit import UnitDriver
from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import PmuDriver

DEVICES = "/sys/bus/event_source/devices"
_REAL_DEVICES = "/sys/devices"  # where those are links to: perf looks for memory events there
TRACEFS = "/sys/kernel/tracing"
TRACE_EVENTS = f"{TRACEFS}/events"

Text = str | Callable[[], str | bytes]


def sysfs_files(drivers: Iterable[PmuDriver[PerfEvent]]) -> Iterator[tuple[str, Text]]:
    """(path, text) of every file of the drivers' devices, and of tracefs besides `TRACE_EVENTS`."""
    yield from _of_each_device(f"{DEVICES}/software", PerfType.SOFTWARE)
    for driver in drivers:
        if isinstance(driver, HardwareDriver):
            for path, text in _device_files(driver):
                yield path, text
                yield path.replace(DEVICES, _REAL_DEVICES), text
        elif isinstance(driver, SourceDriver):
            yield from _source_files(driver)
        elif isinstance(driver, UnitDriver):
            yield from _unit_files(driver)
        elif isinstance(driver, ProbeDriver):
            yield from _pmu_files(driver, driver.sysfs_format)
    yield from _of_each_device(f"{DEVICES}/tracepoint", PerfType.TRACEPOINT)
    yield from _of_each_device(f"{DEVICES}/breakpoint", PerfType.BREAKPOINT)
    yield f"{TRACEFS}/printk_formats", ""
    yield f"{TRACEFS}/saved_cmdlines", ""


def _of_each_device(device: str, type: int) -> Iterator[tuple[str, Text]]:
    """Nothing is said of a device that is there (`uevent`)."""
    yield f"{device}/type", f"{int(type)}\n"
    yield f"{device}/uevent", ""


def _device_files(driver: HardwareDriver) -> Iterator[tuple[str, Text]]:
    device = f"{DEVICES}/{driver.name}"
    yield from _of_each_device(device, driver.type)
    for name, text in driver.sysfs_attributes().items():
        yield f"{device}/{name}", f"{text}\n"
    for name, text in driver.model.sysfs_format().items() if driver.has_format_files else ():
        yield f"{device}/format/{name}", f"{text}\n"
    for name, text in driver.model.sysfs_events().items():
        yield f"{device}/events/{name}", f"{text}\n"


def _source_files(driver: SourceDriver) -> Iterator[tuple[str, Text]]:
    source = driver.source
    yield from _pmu_files(driver, source.sysfs_format())
    if isinstance(driver, UncoreDriver):
        yield f"{DEVICES}/{driver.name}/cpumask", f"{driver.cpu}\n"
    for name, text in source.sysfs_events().items():
        yield f"{DEVICES}/{driver.name}/events/{name}", f"{text}\n"


def _unit_files(driver: UnitDriver) -> Iterator[tuple[str, Text]]:
    yield from _named_files(driver.name, driver.type, driver.mux_interval_ns, driver.source.sysfs_format())
    for name, text in driver.sysfs_attributes().items():
        yield f"{DEVICES}/{driver.name}/{name}", f"{text}\n"


def _pmu_files(driver: PmuDriver[PerfEvent], format: Mapping[str, str]) -> Iterator[tuple[str, Text]]:
    yield from _named_files(driver.name, driver.type, driver.mux_interval_ns, format)


def _named_files(name: str, type: int, mux_interval_ns: int, format: Mapping[str, str]) -> Iterator[tuple[str, Text]]:
    device = f"{DEVICES}/{name}"
    yield from _of_each_device(device, type)
    yield f"{device}/perf_event_mux_interval_ms", f"{mux_interval_ns // 1_000_000}\n"
    for field, text in format.items():
        yield f"{device}/format/{field}", f"{text}\n"
