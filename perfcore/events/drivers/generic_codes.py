"""What a CPU's PMU selects by for PERF_TYPE_HARDWARE and PERF_TYPE_HW_CACHE."""

from __future__ import annotations

from emulator.linux.errors import EINVAL, ENOENT, LinuxError
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType
from pmu.event import Event
from pmu.generic_events import HardwareId, cache_event
from pmu.model import PmuModel

_PMU_TYPE_SHIFT = 32  # PERF_PMU_TYPE_SHIFT: above it, config may name a PMU
_OTHER_TYPES = (PerfType.SOFTWARE, PerfType.TRACEPOINT, PerfType.BREAKPOINT)  # of PMUs that are not the CPU's


def generic_code(model: PmuModel, name: str, attr: PerfEventAttr) -> int:
    """The code of the generic event that `attr` is, on the PMU `name`. LinuxError where it has none."""
    pmu_type = attr.config >> _PMU_TYPE_SHIFT
    if pmu_type in _OTHER_TYPES:  # one that nobody has is as none: perf_init_event then asks all drivers
        raise LinuxError(ENOENT, f"{name}: config {attr.config:#x} names PMU type {pmu_type}")
    config = attr.config & (1 << _PMU_TYPE_SHIFT) - 1
    generic = _hardware_event if attr.type == PerfType.HARDWARE else _cache_event
    return model.config_of(generic(model, name, config))


def _hardware_event(model: PmuModel, name: str, config: int) -> Event:
    if config >= len(HardwareId):
        raise LinuxError(EINVAL, f"PERF_TYPE_HARDWARE has no event {config}")
    event = model.generic_event(HardwareId(config))
    if event is None:
        raise LinuxError(ENOENT, f"{name} has no event for PERF_COUNT_HW_{HardwareId(config).name}")
    return event


def _cache_event(model: PmuModel, name: str, config: int) -> Event:
    try:
        cache, op, result = cache_event(config)
    except ValueError:
        raise LinuxError(EINVAL, f"PERF_TYPE_HW_CACHE has no event {config:#x}") from None
    event = model.generic_cache_event((cache, op, result))
    if event is None:
        generic = f"PERF_COUNT_HW_CACHE_{cache.name}_OP_{op.name}_RESULT_{result.name}"
        raise LinuxError(ENOENT, f"{name} has no event for {generic}")
    return event
