"""Metrics: what perf prints after the number sign, one rule per event; as tools/perf/util/stat-shadow.c."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perfcore.abi.constants import PerfType, SoftwareId
from perfemu.statistics.counts import Count, Counts
from pmu.generic_events import CacheId, CacheOp, CacheResult, HardwareId, cache_config


@dataclass(frozen=True, slots=True)
class Metric:
    """One derived number. `format` is perf's for the value (in text with its padding)."""

    format: str
    value: float
    unit: str

    @property
    def text(self) -> str:
        """As it stands after ``# ``."""
        return f"{self.format % self.value} {self.unit}"


Rule = Callable[[Counts, float], list[Metric]]


def _rate(per_second: float) -> Metric:
    """``/sec`` with perf's K, M or G."""
    prefix = ""
    for larger in ("K", "M", "G"):
        if per_second <= 1000.0:
            break
        per_second /= 1000.0
        prefix = larger
    return Metric("%8.3f", per_second, f"{prefix}/sec")


def _cpus_utilized(counts: Counts, value: float) -> list[Metric]:
    elapsed_ns = counts.elapsed.mean
    return [Metric("%8.3f", value / elapsed_ns, "CPUs utilized")] if elapsed_ns else []


def _gigahertz(counts: Counts, value: float) -> list[Metric]:
    cpu_ns = counts.cpu_ns
    return [Metric("%8.3f", value / cpu_ns, "GHz")] if cpu_ns and not counts.partly_modelled else []


def _per_cycle(counts: Counts, value: float) -> list[Metric]:
    if counts.partly_modelled:  # instructions are of the whole run
        return []
    metrics = []
    cycles = counts.mean_of(PerfType.HARDWARE, HardwareId.CPU_CYCLES)
    if cycles:
        metrics.append(Metric("%7.2f ", value / cycles, "insn per cycle"))
    stalled = max(
        counts.mean_of(PerfType.HARDWARE, HardwareId.STALLED_CYCLES_FRONTEND) or 0.0,
        counts.mean_of(PerfType.HARDWARE, HardwareId.STALLED_CYCLES_BACKEND) or 0.0,
    )
    if stalled and value:
        metrics.append(Metric("%7.2f ", stalled / value, "stalled cycles per insn"))
    return metrics


def _share(type_: int, config: int, unit: str, format: str = "%7.2f%%") -> Rule:
    """A percentage of another event's count; a plain rate where that was not counted, or cannot contain this one."""

    def rule(counts: Counts, value: float) -> list[Metric]:
        mixed = counts.partly_modelled and config == HardwareId.BRANCH_INSTRUCTIONS
        return [] if mixed else _percentage(counts, value, counts.mean_of(type_, config), unit, format)

    return rule


def _percentage(counts: Counts, value: float, whole: float | None, unit: str, format: str) -> list[Metric]:
    if not whole or value > whole:
        return _per_second(counts, value)
    return [Metric(format, 100.0 * value / whole, unit)]


def _per_second(counts: Counts, value: float) -> list[Metric]:
    cpu_ns = counts.cpu_ns
    return [_rate(1e9 * value / cpu_ns)] if cpu_ns and not counts.partly_modelled else []


def _idle(name: str) -> Rule:
    def rule(counts: Counts, value: float) -> list[Metric]:
        cycles = counts.mean_of(PerfType.HARDWARE, HardwareId.CPU_CYCLES)
        return [Metric("%7.2f%%", 100.0 * value / cycles, f"{name} cycles idle")] if cycles else []

    return rule


def _cache_share(cache: CacheId, name: str) -> tuple[tuple[int, int], Rule]:
    """perf divides by what it calls loads, also where that counts hits alone: then misses are a part of both."""
    access = cache_config(cache, CacheOp.READ, CacheResult.ACCESS)
    miss = cache_config(cache, CacheOp.READ, CacheResult.MISS)

    def rule(counts: Counts, value: float) -> list[Metric]:
        loads = counts.mean_of(PerfType.HW_CACHE, access)
        whole = loads + value if loads is not None and cache in counts.counted_by_hits else loads
        return _percentage(counts, value, whole, f"of all {name} accesses", "%7.2f%%")

    return (PerfType.HW_CACHE, miss), rule


_RULES: dict[tuple[int, int], Rule] = {
    (PerfType.SOFTWARE, SoftwareId.TASK_CLOCK): _cpus_utilized,
    (PerfType.SOFTWARE, SoftwareId.CPU_CLOCK): _cpus_utilized,
    (PerfType.HARDWARE, HardwareId.CPU_CYCLES): _gigahertz,
    (PerfType.HARDWARE, HardwareId.INSTRUCTIONS): _per_cycle,
    (PerfType.HARDWARE, HardwareId.BRANCH_MISSES): _share(
        PerfType.HARDWARE, HardwareId.BRANCH_INSTRUCTIONS, "of all branches"
    ),
    (PerfType.HARDWARE, HardwareId.CACHE_MISSES): _share(
        PerfType.HARDWARE, HardwareId.CACHE_REFERENCES, "of all cache refs", "%8.3f %%"
    ),
    (PerfType.HARDWARE, HardwareId.STALLED_CYCLES_FRONTEND): _idle("frontend"),
    (PerfType.HARDWARE, HardwareId.STALLED_CYCLES_BACKEND): _idle("backend"),
    **dict(
        _cache_share(cache, name)
        for cache, name in (
            (CacheId.L1D, "L1-dcache"),
            (CacheId.L1I, "L1-icache"),
            (CacheId.LL, "LL-cache"),
            (CacheId.DTLB, "dTLB cache"),
            (CacheId.ITLB, "iTLB cache"),
        )
    ),
}


@dataclass(frozen=True, slots=True)
class Slots:
    """An event of top-down analysis: its name in the report; and of which event it leaves a rest, of what name."""

    unit: str
    part_of: str = ""
    rest: str = ""


TOP_DOWN = {  # by the names that Linux gives to Intel's events
    "topdown-retiring": Slots("Retiring"),
    "topdown-bad-spec": Slots("Bad Speculation"),
    "topdown-fe-bound": Slots("Frontend Bound"),
    "topdown-be-bound": Slots("Backend Bound"),
    "topdown-br-mispredict": Slots("Branch Mispredict", "topdown-bad-spec", "Machine Clears"),
    "topdown-fetch-lat": Slots("Fetch Latency", "topdown-fe-bound", "Fetch Bandwidth"),
    "topdown-mem-bound": Slots("Memory Bound", "topdown-be-bound", "Core Bound"),
}
_SLOTS_FORMAT = "%8.1f%%"


def _bare(count: Count) -> str:
    """The event's name, also if it is written pmu/name/."""
    return count.spec.base_name.rstrip("/").rpartition("/")[2]


def _named(counts: Counts, name: str) -> float | None:
    return next((count.spread.mean for count in counts if _bare(count) == name and count.absence is None), None)


def _top_down(counts: Counts, row: Slots, value: float) -> list[Metric]:
    """Shares of all slots, as print_metric's callers in stat-shadow.c; nothing if those were not counted."""
    slots = _named(counts, "slots")
    if not slots:
        return []
    metrics = [Metric(_SLOTS_FORMAT, 100.0 * value / slots, row.unit)]
    whole = _named(counts, row.part_of) if row.part_of else None
    if whole is not None:
        metrics.append(Metric(_SLOTS_FORMAT, 100.0 * (whole - value) / slots, row.rest))
    return metrics


def metrics_of(counts: Counts, count: Count) -> list[Metric]:
    """What follows from `count` among `counts`; the first stands on its line, others below it."""
    if count.absence is not None:
        return []
    counts = counts.of_cgroup(count.spec.cgroup)
    if not counts.metrics or count.spec.asked < counts.metrics_asked:
        return _by_event(counts, count)
    return _by_name(counts, [event for event in counts.events if event.spec.asked >= counts.metrics_asked], count)


def _by_name(counts: Counts, events: Sequence[Count], count: Count) -> list[Metric]:
    """The vendor's that were asked for, beside the first of their events; generic_metric() of stat-shadow.c."""
    values = [event.spread.mean for event in events]
    elapsed_s = counts.elapsed.mean / 1e9
    return [
        Metric("%8.1f", planned.value(values, elapsed_s), f"{planned.metric.unit}  {planned.metric.name}")
        if planned.metric.scale_unit
        else Metric("%8.2f", planned.value(values, elapsed_s), planned.metric.name)
        for planned in counts.metrics
        if events[planned.shown_at] is count and all(events[at].absence is None for at in planned.places.values())
    ]


def _by_event(counts: Counts, count: Count) -> list[Metric]:
    counts = counts.comparable_with(count.spec)
    slots = TOP_DOWN.get(_bare(count))
    if slots is not None:
        return _top_down(counts, slots, count.spread.mean)
    rule = _RULES.get((count.spec.type, count.spec.config), _per_second)
    return rule(counts, count.spread.mean)
