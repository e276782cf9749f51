"""What a guest may set of perf_event: /proc/sys/kernel, and how long groups of a PMU count that take turns.

Numbers as proc_dointvec_minmax and the store functions of kernel/events/core.c take them: EINVAL where they are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from emulator.linux.errors import EINVAL, LinuxError
from perfcore.abi.constants import PERF_MAX_CONTEXTS_PER_STACK
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.drivers.x86 import X86Driver
from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import PmuDriver
from perfcore.events.settings import Settings
from perfcore.events.sysfs import DEVICES

_INT_MAX = (1 << 31) - 1
_MS = 1_000_000  # ns

Store = Callable[[bytes], None]
WritableFile = tuple[str, Callable[[], str], Store | None]
"""Path, text, and who takes what is written."""


@dataclass(frozen=True, slots=True)
class Sysctl:
    """A number of `Settings`, by its field's name, and between what it may be."""

    field: str
    least: int = -_INT_MAX - 1
    most: int = _INT_MAX


SYSCTLS = {  # admin-guide/sysctl/kernel.rst
    "perf_cpu_time_max_percent": Sysctl("cpu_time_max_percent", 0, 100),
    "perf_event_max_sample_rate": Sysctl("sample_rate_hz", 1),
    "perf_event_max_stack": Sysctl("max_stack", 0, 640 * 1024),
    "perf_event_mlock_kb": Sysctl("mlock_kib"),
    "perf_event_paranoid": Sysctl("paranoid"),
}
ISA_SYSCTLS = {
    "aarch64": {"perf_user_access": Sysctl("user_access", 0, 1)},
    "x86_64": {},  # which has rdpmc_files
}


def number(data: bytes, least: int, most: int) -> int:
    """What has been written, between `least` and `most`. EINVAL."""
    try:
        value = int(data.strip(b" \t\n\0"))
    except ValueError:
        raise LinuxError(EINVAL, f"{data[:32]!r} is not a number") from None
    if not least <= value <= most:
        raise LinuxError(EINVAL, f"{value} is not in {least}..{most}")
    return value


def sysctl_files(isa: str, settings: Settings) -> Iterator[WritableFile]:
    """The files of /proc/sys/kernel that are about perf_event."""
    for name, sysctl in (SYSCTLS | ISA_SYSCTLS[isa]).items():
        text, store = partial(_shown, settings, sysctl), partial(_set, settings, sysctl)
        yield f"/proc/sys/kernel/{name}", text, store
    contexts = f"{PERF_MAX_CONTEXTS_PER_STACK}\n"
    yield "/proc/sys/kernel/perf_event_max_contexts_per_stack", lambda: contexts, None


def _shown(settings: Settings, sysctl: Sysctl) -> str:
    return f"{getattr(settings, sysctl.field)}\n"


def _set(settings: Settings, sysctl: Sysctl, data: bytes) -> None:
    setattr(settings, sysctl.field, number(data, sysctl.least, sysctl.most))


def mux_interval_files(drivers: Iterable[PmuDriver[PerfEvent]]) -> Iterator[WritableFile]:
    """perf_event_mux_interval_ms of the PMUs whose counters may be too few."""
    return (mux_interval_file(driver) for driver in drivers if isinstance(driver, HardwareDriver))


def mux_interval_file(driver: PmuDriver[PerfEvent]) -> WritableFile:
    path = f"{DEVICES}/{driver.name}/perf_event_mux_interval_ms"
    return path, partial(_shown_interval, driver), partial(_set_interval, driver)


def rdpmc_files(drivers: Iterable[PmuDriver[PerfEvent]]) -> Iterator[WritableFile]:
    """Of x86's own PMU: whether user mode reads its counters by RDPMC."""
    for driver in drivers:
        if isinstance(driver, X86Driver):
            path = f"{DEVICES}/{driver.name}/rdpmc"
            yield path, partial(_shown_rdpmc, driver), partial(_set_rdpmc, driver)


def _shown_rdpmc(driver: X86Driver) -> str:
    return f"{driver.rdpmc}\n"


def _set_rdpmc(driver: X86Driver, data: bytes) -> None:
    driver.set_rdpmc(number(data, 0, 2))


def _shown_interval(driver: PmuDriver[PerfEvent]) -> str:
    return f"{driver.mux_interval_ns // _MS}\n"


def _set_interval(driver: PmuDriver[PerfEvent], data: bytes) -> None:
    driver.mux_interval_ns = number(data, 1, _INT_MAX) * _MS
