"""Count and Counts: the result of a stat command; one row per event, over one or more runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from perfcore.abi.constants import PerfType, SoftwareId
from perfemu.events.spec import EventSpec
from perfemu.run_times import RunTimes
from perfemu.scope import Split
from perfemu.visible import visible
from pmu.generic_events import CacheId

if TYPE_CHECKING:
    from perfemu.vendor_metrics.plan import PlannedMetric


class Absence(Enum):
    """Why there is no number, as perf prints it."""

    NOT_SUPPORTED = "<not supported>"  # the PMU, or this model of it, cannot know
    NOT_COUNTED = "<not counted>"  # it could, but never got a counter


@dataclass(frozen=True, slots=True)
class Reading:
    """One event after one run. Times in ns."""

    value: int
    enabled_ns: int
    running_ns: int

    @property
    def counted(self) -> bool:
        return self.enabled_ns > 0 and self.running_ns > 0

    @property
    def scaled(self) -> int:
        """The count that running all the time would have given: perf's rounding, to the nearest."""
        if self.running_ns >= self.enabled_ns:
            return self.value
        return int(self.value * self.enabled_ns / self.running_ns + 0.5) if self.counted else 0


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean of several runs and the standard deviation of that mean."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """As perf's stddev_stats: the variance of the sample over its size, square-rooted."""
        mean = sum(values) / len(values)
        if len(values) < 2:
            return cls(mean, 0.0)
        variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
        return cls(mean, math.sqrt(variance / len(values)))

    @property
    def percent(self) -> float:
        """The deviation relative to the mean."""
        return 100.0 * self.deviation / self.mean if self.mean else 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Count:
    """One event: its reading in each run; none at all if it is not supported."""

    spec: EventSpec
    readings: tuple[Reading, ...]

    @property
    def name(self) -> str:
        return self.spec.name

    def __repr__(self) -> str:
        """Short, because pytest prints it where an assertion fails."""
        return f"{self.name} {self.value_text}"

    @property
    def value_text(self) -> str:
        """The count in the kernel's unit, or why there is none."""
        return f"{self.spread.mean:,.0f}" if self.absence is None else self.absence.value

    @property
    def absence(self) -> Absence | None:
        if not self.readings:
            return Absence.NOT_SUPPORTED
        return None if any(reading.counted for reading in self.readings) else Absence.NOT_COUNTED

    @property
    def spread(self) -> Spread:
        """Over the runs, in the kernel's unit (ns for clocks)."""
        return Spread.of([reading.scaled for reading in self.readings]) if self.readings else Spread(0.0, 0.0)

    @property
    def enabled_ns(self) -> float:
        return sum(reading.enabled_ns for reading in self.readings) / max(len(self.readings), 1)

    @property
    def running_ns(self) -> float:
        return sum(reading.running_ns for reading in self.readings) / max(len(self.readings), 1)

    @property
    def running_percent(self) -> float:
        """How much of the time in which it was enabled the event had a counter."""
        return 100.0 * self.running_ns / self.enabled_ns if self.enabled_ns else 100.0


@dataclass(frozen=True, slots=True)
class Label:
    """What CPU, socket or thread a part of the counts is of, as perf prints it."""

    kind: Split
    json: tuple[tuple[str, str | int], ...]
    fields: tuple[str, ...]  # with -x
    text: str
    further: str  # what stands before a further metric


def cpu_label(number: int) -> Label:
    text = f"CPU{number:<7} "
    return Label(Split.CPUS, (("cpu", str(number)),), (f"CPU{number}",), text, text + " " * 8)


def socket_label(cpus: int) -> Label:
    """The only one; so many of its CPUs have counted."""
    text = f"S{0:<5} {cpus:>4} "
    return Label(Split.SOCKETS, (("socket", "S0"), ("aggregate-number", cpus)), ("S0", str(cpus)), text, text)


def die_label(cpus: int) -> Label:
    """The only one of the only socket."""
    text = f"S0-D{0:<8} {cpus:>4} "
    return Label(Split.DIES, (("die", "S0-D0"), ("aggregate-number", cpus)), ("S0-D0", str(cpus)), text, text)


def core_label(number: int) -> Label:
    """Each CPU is a core."""
    name, text = f"S0-D0-C{number}", f"S0-D0-C{number:<8} {1:>4} "
    return Label(Split.CORES, (("core", name), ("aggregate-number", 1)), (name, "1"), text, text)


def thread_label(comm: str, tid: int) -> Label:
    """A thread goes by the name that it has at the end."""
    comm = visible(comm)
    name, text = f"{comm}-{tid}", f"{comm:>16}-{tid:<8} "
    return Label(Split.THREADS, (("thread", name),), (name,), text, text)


_LABELS_OF_ONE = {Split.SOCKETS: socket_label, Split.DIES: die_label}  # of what all CPUs share: one has counted it


@dataclass(frozen=True, slots=True)
class Part:
    """What one CPU, socket or thread has counted."""

    label: Label
    counts: Counts


@dataclass(frozen=True, slots=True, repr=False)
class Counts:
    """All that stat has to print."""

    command: str  # the program and its arguments; with `system_wide`, perf's name for the CPUs
    core: str
    events: tuple[Count, ...]
    runs: tuple[RunTimes, ...]
    system_wide: bool = False
    of_ids: str = ""  # perf's name for the processes or threads that alone are counted
    parts: tuple[Part, ...] = ()  # of CPUs or threads, which are shown instead of the sums
    counted_by_hits: frozenset[CacheId] = frozenset()  # as PmuModel has them
    partly_modelled: bool = False  # cycles and what models count are of less than the other events
    metrics: tuple[PlannedMetric, ...] = ()  # by name, over events of their own
    metrics_asked: int = 0  # behind how many -e these are

    def __iter__(self) -> Iterator[Count]:
        return iter(self.events)

    def __repr__(self) -> str:
        return f"<{visible(self.command)} (core {self.core}): {', '.join(map(repr, self.events))}>"

    def shown(self) -> Iterator[tuple[Label | None, Counts, Count]]:
        """What has a line, event after event, or core after core: whose it is, among which counts, and the count."""
        if self.parts and self.parts[0].label.kind is Split.CORES:
            for number, part in enumerate(self.parts):
                yield from (
                    (part.label, part.counts, own) for own in part.counts if not (number and own.spec.system_wide)
                )
            return
        for index, count in enumerate(self.events):
            if not self.parts:
                yield None, self, count
                continue
            parts = [(part, part.counts.events[index]) for part in self.parts]
            if count.spec.system_wide:  # as perf: where its PMU's cpumask has it counted
                parts = parts[:1]
            if self.parts[0].label.kind is Split.THREADS:  # as perf: the busiest first, and none that did nothing
                parts = [(part, own) for part, own in parts if own.spread.mean or not own.readings]
                parts.sort(key=lambda pair: -pair[1].spread.mean)
            for part, own in parts:
                one = _LABELS_OF_ONE.get(part.label.kind) if count.spec.system_wide else None
                yield part.label if one is None else one(1), part.counts, own

    def wholes(self) -> Iterator[tuple[Label | None, str | None, Counts]]:
        """What is shown, by control groups, where there are some, and CPU after CPU or thread after thread: whose it
        is, the group, and the counts."""
        for cgroup in dict.fromkeys(count.spec.cgroup for count in self.events):
            if not self.parts:
                yield None, cgroup, self.of_cgroup(cgroup)
            for part in self.parts:
                yield part.label, cgroup, part.counts.of_cgroup(cgroup)

    def of_cgroup(self, cgroup: str | None) -> Counts:
        """The events of this one alone: what others count is no part of theirs."""
        if cgroup is None:
            return self
        return replace(self, events=tuple(count for count in self.events if count.spec.cgroup == cgroup))

    @property
    def elapsed(self) -> Spread:
        """ns, over the runs."""
        return Spread.of([run.elapsed_ns for run in self.runs])

    def comparable_with(self, spec: EventSpec) -> Counts:
        """Without events of other levels, where more than one is executed: user mode's instructions are not those of
        the kernel's cycles (evsel_context of tools/perf/util/stat-shadow.c)."""
        if not spec.kernel_executed:
            return self
        return replace(self, events=tuple(count for count in self.events if count.spec.levels in ("", spec.levels)))

    def mean_of(self, type_: int, config: int) -> float | None:
        """Mean of the first event of this identity that was counted."""
        for count in self.events:
            if count.spec.type == type_ and count.spec.config == config and count.absence is None:
                return count.spread.mean
        return None

    @property
    def cpu_ns(self) -> float | None:
        """What rates are relative to: task-clock, or cpu-clock."""
        for clock in (SoftwareId.TASK_CLOCK, SoftwareId.CPU_CLOCK):
            mean = self.mean_of(PerfType.SOFTWARE, clock)
            if mean is not None:
                return mean
        return None
