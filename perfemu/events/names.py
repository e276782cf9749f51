"""Generic events: the names and aliases that perf gives to PERF_TYPE_HARDWARE, SOFTWARE and HW_CACHE events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfcore.abi.constants import PerfType, SoftwareId
from pmu.generic_events import CacheId, CacheOp, CacheResult, HardwareId, cache_config


@dataclass(frozen=True, slots=True)
class GenericEvent:
    """One event by the names that the command line knows. The first name is the one printed."""

    names: tuple[str, ...]
    type: PerfType
    config: int

    @property
    def name(self) -> str:
        return self.names[0]


HARDWARE_EVENTS = tuple(GenericEvent(number.names, PerfType.HARDWARE, number) for number in HardwareId)
SOFTWARE_EVENTS = tuple(GenericEvent(number.names, PerfType.SOFTWARE, number) for number in SoftwareId)


_OPERATIONS = {  # of caches that do not have all of them
    CacheId.L1I: (CacheOp.READ, CacheOp.PREFETCH),
    CacheId.ITLB: (CacheOp.READ,),
    CacheId.BPU: (CacheOp.READ,),
}


def _cache_names(cache: CacheId, operation: CacheOp, result: CacheResult) -> Iterator[str]:
    """The printed name, then every other spelling."""
    singular, plural = operation.names[:2]
    yield f"{cache.names[0]}-{singular}-misses" if result is CacheResult.MISS else f"{cache.names[0]}-{plural}"
    for name in cache.names:
        for word in operation.names:
            for suffix in result.names:
                yield f"{name}-{word}-{suffix}"
            if result is CacheResult.ACCESS:
                yield f"{name}-{word}"
        if operation is CacheOp.READ:
            for suffix in result.names:
                yield f"{name}-{suffix}"


def _cache_events() -> Iterator[GenericEvent]:
    for cache in CacheId:
        for operation in _OPERATIONS.get(cache, tuple(CacheOp)):
            for result in CacheResult:
                names = tuple(dict.fromkeys(_cache_names(cache, operation, result)))
                yield GenericEvent(names, PerfType.HW_CACHE, cache_config(cache, operation, result))


CACHE_EVENTS = tuple(_cache_events())
GENERIC_EVENTS = HARDWARE_EVENTS + SOFTWARE_EVENTS + CACHE_EVENTS
# "branch-misses" is also a spelling of a cache event; the hardware event comes first, and wins.
_BY_NAME = {name.lower(): event for event in reversed(GENERIC_EVENTS) for name in event.names}


def generic_event(name: str) -> GenericEvent | None:
    """The event of this name, in any case."""
    return _BY_NAME.get(name.lower())


def printed_names() -> list[str]:
    """Names to suggest: of every event the printed one and its short aliases, without the many spellings of caches."""
    names = [name for event in HARDWARE_EVENTS + SOFTWARE_EVENTS for name in event.names]
    return names + [event.name for event in CACHE_EVENTS]
