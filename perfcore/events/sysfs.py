"""What a guest finds about event sources: /sys/bus/event_source/devices and tracefs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from perfcore.abi.constants import PerfType
from perfcore.abi.kernel_tracepoints import PRINT
from perfcore.abi.syscall_tracepoints import tracepoints_of
from perfcore.abi.tracepoints import HEADER_EVENT, HEADER_PAGE, TracepointEvent
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.drivers.probe import ProbeDriver
from perfcore.events.drivers.sources import SourceDriver
from perfcore.events.drivers.uncore import UncoreDriver
from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import PmuDriver
from perfcore.events.probes.error_log import ErrorLog
from perfcore.events.probes.event_filter import EventFilter
from perfcore.events.probes.tracing_files import Store, enable

DEVICES = "/sys/bus/event_source/devices"
TRACEFS = "/sys/kernel/tracing"
TRACE_EVENTS = f"{TRACEFS}/events"

Text = str | Callable[[], str | bytes]


def sysfs_files(drivers: Iterable[PmuDriver[PerfEvent]]) -> Iterator[tuple[str, Text]]:
    """(path, text) of every file of the drivers' devices, and of tracefs besides `TRACE_EVENTS`."""
    yield from _of_each_device(f"{DEVICES}/software", PerfType.SOFTWARE)
    for driver in drivers:
        if isinstance(driver, HardwareDriver):
            yield from _device_files(driver)
        elif isinstance(driver, SourceDriver):
            yield from _source_files(driver)
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


def trace_event_files(isa: str, errors: ErrorLog) -> Iterator[tuple[str, Text] | tuple[str, Text, Store]]:
    """(path, text) of every file below `TRACE_EVENTS`, and what is done with what is written there. Nothing is traced
    into a buffer, and so nothing is enabled. `errors`: of filters."""
    yield "header_page", HEADER_PAGE
    yield "header_event", HEADER_EVENT
    systems = dict.fromkeys(event.system for event in tracepoints_of(isa).values())
    for directory in ("", *(f"{system}/" for system in systems)):
        yield f"{directory}enable", "0\n", enable
    for event in (PRINT, *tracepoints_of(isa).values()):
        directory = f"{event.system}/{event.name}"
        yield f"{directory}/id", f"{event.id}\n"
        yield f"{directory}/format", partial(_format, event)
        if event is not PRINT:
            filter = EventFilter(event, errors)
            yield f"{directory}/enable", "0\n", enable
            yield f"{directory}/filter", filter.text, filter.store


def _format(event: TracepointEvent) -> str:
    return event.text


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


def _pmu_files(driver: PmuDriver[PerfEvent], format: Mapping[str, str]) -> Iterator[tuple[str, Text]]:
    device = f"{DEVICES}/{driver.name}"
    yield from _of_each_device(device, driver.type)
    yield f"{device}/perf_event_mux_interval_ms", f"{driver.mux_interval_ns // 1_000_000}\n"
    for name, text in format.items():
        yield f"{device}/format/{name}", f"{text}\n"
