"""Generic events: the names and aliases that perf gives to PERF_TYPE_HARDWARE, SOFTWARE and HW_CACHE events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfcore.abi.constants import CacheId, CacheOp, CacheResult, HardwareId, PerfType, SoftwareId, cache_config


@dataclass(frozen=True, slots=True)
class GenericEvent:
    """One event by the names that the command line knows. The first name is the one printed."""

    names: tuple[str, ...]
    type: PerfType
    config: int

    @property
    def name(self) -> str:
        return self.names[0]


def _hardware(number: HardwareId, *names: str) -> GenericEvent:
    return GenericEvent(names, PerfType.HARDWARE, number)


def _software(number: SoftwareId, *names: str) -> GenericEvent:
    return GenericEvent(names, PerfType.SOFTWARE, number)


HARDWARE_EVENTS = (
    _hardware(HardwareId.CPU_CYCLES, "cycles", "cpu-cycles"),
    _hardware(HardwareId.INSTRUCTIONS, "instructions"),
    _hardware(HardwareId.CACHE_REFERENCES, "cache-references"),
    _hardware(HardwareId.CACHE_MISSES, "cache-misses"),
    _hardware(HardwareId.BRANCH_INSTRUCTIONS, "branches", "branch-instructions"),
    _hardware(HardwareId.BRANCH_MISSES, "branch-misses"),
    _hardware(HardwareId.BUS_CYCLES, "bus-cycles"),
    _hardware(HardwareId.STALLED_CYCLES_FRONTEND, "stalled-cycles-frontend", "idle-cycles-frontend"),
    _hardware(HardwareId.STALLED_CYCLES_BACKEND, "stalled-cycles-backend", "idle-cycles-backend"),
    _hardware(HardwareId.REF_CPU_CYCLES, "ref-cycles"),
)

SOFTWARE_EVENTS = (
    _software(SoftwareId.CPU_CLOCK, "cpu-clock"),
    _software(SoftwareId.TASK_CLOCK, "task-clock"),
    _software(SoftwareId.PAGE_FAULTS, "page-faults", "faults"),
    _software(SoftwareId.CONTEXT_SWITCHES, "context-switches", "cs"),
    _software(SoftwareId.CPU_MIGRATIONS, "cpu-migrations", "migrations"),
    _software(SoftwareId.PAGE_FAULTS_MIN, "minor-faults"),
    _software(SoftwareId.PAGE_FAULTS_MAJ, "major-faults"),
    _software(SoftwareId.ALIGNMENT_FAULTS, "alignment-faults"),
    _software(SoftwareId.EMULATION_FAULTS, "emulation-faults"),
    _software(SoftwareId.DUMMY, "dummy"),
    _software(SoftwareId.BPF_OUTPUT, "bpf-output"),
    _software(SoftwareId.CGROUP_SWITCHES, "cgroup-switches"),
)

CLOCKS = (SoftwareId.CPU_CLOCK, SoftwareId.TASK_CLOCK)  # counted in ns, printed in msec


@dataclass(frozen=True, slots=True)
class _Cache:
    """One row of perf's cache table: spellings (the first is printed) and the operations that can exist on it."""

    cache: CacheId
    names: tuple[str, ...]
    operations: tuple[CacheOp, ...]


_READ_WRITE_PREFETCH = (CacheOp.READ, CacheOp.WRITE, CacheOp.PREFETCH)
_CACHES = (
    _Cache(CacheId.L1D, ("L1-dcache", "l1-d", "l1d", "L1-data"), _READ_WRITE_PREFETCH),
    _Cache(CacheId.L1I, ("L1-icache", "l1-i", "l1i", "L1-instruction"), (CacheOp.READ, CacheOp.PREFETCH)),
    _Cache(CacheId.LL, ("LLC", "L2"), _READ_WRITE_PREFETCH),
    _Cache(CacheId.DTLB, ("dTLB", "d-tlb", "Data-TLB"), _READ_WRITE_PREFETCH),
    _Cache(CacheId.ITLB, ("iTLB", "i-tlb", "Instruction-TLB"), (CacheOp.READ,)),
    _Cache(CacheId.BPU, ("branch", "bpu", "btb", "bpc"), (CacheOp.READ,)),
    _Cache(CacheId.NODE, ("node",), _READ_WRITE_PREFETCH),
)
_OPERATIONS = {  # in the singular first: it stands before "-misses"; in the plural second: it stands alone
    CacheOp.READ: ("load", "loads", "read"),
    CacheOp.WRITE: ("store", "stores", "write"),
    CacheOp.PREFETCH: ("prefetch", "prefetches", "speculative-read", "speculative-load"),
}
_RESULTS = {CacheResult.ACCESS: ("refs", "Reference", "ops", "access"), CacheResult.MISS: ("misses", "miss")}


def _cache_names(row: _Cache, operation: CacheOp, result: CacheResult) -> Iterator[str]:
    """The printed name, then every other spelling."""
    words = _OPERATIONS[operation]
    yield f"{row.names[0]}-{words[0]}-misses" if result is CacheResult.MISS else f"{row.names[0]}-{words[1]}"
    for cache in row.names:
        for word in words:
            for suffix in _RESULTS[result]:
                yield f"{cache}-{word}-{suffix}"
            if result is CacheResult.ACCESS:
                yield f"{cache}-{word}"
        if operation is CacheOp.READ:
            for suffix in _RESULTS[result]:
                yield f"{cache}-{suffix}"


def _cache_events() -> Iterator[GenericEvent]:
    for row in _CACHES:
        for operation in row.operations:
            for result in CacheResult:
                names = tuple(dict.fromkeys(_cache_names(row, operation, result)))
                yield GenericEvent(names, PerfType.HW_CACHE, cache_config(row.cache, operation, result))


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
