"""listing: the events that a core's PMU and its Linux can count, with how truly: what `perfemu list` shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from perfcore.abi.constants import CLOCKS, PerfType, SoftwareId
from perfcore.abi.kernel_tracepoints import KERNEL_TRACEPOINTS
from perfcore.abi.syscall_tracepoints import tracepoints_of
from perfcore.events.drivers.breakpoint import NOTE as BREAKPOINT_NOTE
from perfcore.events.drivers.software import NOTES
from perfemu.errors import EventSyntaxError
from perfemu.events.names import CACHE_EVENTS, HARDWARE_EVENTS, SOFTWARE_EVENTS, GenericEvent
from perfemu.events.parser import parse_events
from perfemu.vendor_metrics.plan import events_needed
from perfemu.vendor_metrics.tables import literals_of, metrics_of
from pmu.event import Event, Support
from pmu.generic_events import HardwareId, cache_event
from pmu.model import PmuModel
from pmu.unit_pmu import UnitPmu

KINDS = {
    "hw": "Hardware event",
    "sw": "Software event",
    "cache": "Hardware cache event",
    "pmu": "Kernel PMU event",
    "tracepoint": "Tracepoint event",
    "breakpoint": "Hardware breakpoint",
    "probe": "Probe in a program",
    "metric": "Metric",
    "metricgroup": "Metric group",
}
_CLOCK_NOTE = "guest time while the task runs; sampled by timers"


@dataclass(frozen=True, slots=True)
class Listed:
    """One line. `support` None: it cannot be counted on this core."""

    names: tuple[str, ...]
    kind: str  # key of KINDS
    support: Support | None
    note: str = ""
    counts: str = ""  # the PMU's event behind it

    def matches(self, pattern: str) -> bool:
        """Part of a name, or a shell pattern, also of what follows a tracepoint's colon; in any case."""
        wanted, names = pattern.lower(), [name.lower() for name in self.names]
        return any(
            wanted in name or fnmatchcase(name, wanted) or fnmatchcase(name.rpartition(":")[2], wanted)
            for name in names
        )


def software_events(isas: Iterable[str]) -> Iterator[Listed]:
    """The same on every core of `isas`."""
    for generic in SOFTWARE_EVENTS:
        if generic.config in CLOCKS:
            yield Listed(generic.names, "sw", Support.EXACT, _CLOCK_NOTE)
            continue
        note = NOTES.get(SoftwareId(generic.config))
        if note is not None:
            yield Listed(generic.names, "sw", Support.EXACT, note)
    yield from _tracepoints({isa: [event.full_name for event in KERNEL_TRACEPOINTS[isa]] for isa in isas})


def breakpoint_events() -> Iterator[Listed]:
    """How they are written, and probes: there is no list of addresses."""
    yield Listed(("mem:ADDRESS[/LENGTH][:rwx]",), "breakpoint", Support.EXACT, BREAKPOINT_NOTE)
    yield Listed(("uprobe:[PATH:]FUNCTION[+OFFSET] [ARGUMENTS]",), "probe", Support.EXACT, "each entry, or instruction")
    yield Listed(("uretprobe:[PATH:]FUNCTION [ARGUMENTS]",), "probe", Support.EXACT, "each return")


def system_call_events(isas: Iterable[str]) -> Iterator[Listed]:
    """Two tracepoints for each call that any of `isas` has."""
    yield from _tracepoints(
        {isa: [name for name, event in tracepoints_of(isa).items() if event.system == "syscalls"] for isa in isas}
    )


def _tracepoints(known: dict[str, list[str]]) -> Iterator[Listed]:
    """By ISA."""
    for name in sorted({name for names in known.values() for name in names}):
        having = [isa for isa, names in known.items() if name in names]
        note = "" if len(having) == len(known) else f"{having[0]} only"
        yield Listed((name,), "tracepoint", Support.EXACT, note)


def _generic(generic: GenericEvent, kind: str, event: Event | None) -> Listed:
    if event is None:
        return Listed(generic.names, kind, None)
    return Listed(generic.names, kind, event.support, event.note, event.name)


def hardware_events(model: PmuModel) -> Iterator[Listed]:
    for generic in HARDWARE_EVENTS:
        yield _generic(generic, "hw", model.generic_event(HardwareId(generic.config)))


def cache_events(model: PmuModel) -> Iterator[Listed]:
    """One name each: the many spellings that perf knows are for typing, not for reading."""
    for generic in CACHE_EVENTS:
        event = model.generic_cache_event(cache_event(generic.config))
        yield _generic(GenericEvent(generic.names[:1], PerfType.HW_CACHE, generic.config), "cache", event)


def pmu_events(model: PmuModel) -> Iterator[Listed]:
    """The vendor's names in lower case, as perf takes them, with the alias that sysfs has beside."""
    aliases: dict[str, list[str]] = {}
    for alias, name in model.sysfs_aliases.items():
        aliases.setdefault(name, []).append(f"{model.sysfs_name}/{alias}/")
    for event in model.events:
        if event.listed:
            names = (event.name.lower(), *aliases.get(event.name, ()))
            code = f"{event.name}, {model.sysfs_name}/{model.event_text(event)}/"
            yield Listed(names, "pmu", event.support, event.note, code)


def metrics(model: PmuModel) -> Iterator[Listed]:
    """The vendor's, for ``stat -M``, and their groups. A metric is as true as the least true of its events."""
    table, literals = metrics_of(model), literals_of(model)
    groups: dict[str, list[str]] = {}
    for name, metric in table.items():
        support = _support(events_needed(metric, table, literals), model)
        yield Listed((name,), "metric", support, metric.text, metric.formula)
        for group in metric.groups if support is not None else ():
            groups.setdefault(group, []).append(name)
    for group, members in groups.items():
        yield Listed((group,), "metricgroup", Support.APPROXIMATE, counts=", ".join(members))


def _support(events: Iterable[str], model: PmuModel) -> Support | None:
    try:
        counted = [spec.counted_by(model) for spec in parse_events(events, model)]
    except EventSyntaxError:
        return None
    exact = all(event is not None and event.support is Support.EXACT for event in counted)
    return Support.EXACT if exact else Support.APPROXIMATE


def source_events(model: PmuModel) -> Iterator[Listed]:
    """Of the machine's other PMUs."""
    for source in model.sources:
        if isinstance(source, UnitPmu):
            yield Listed((f"{source.name}//",), "pmu", Support.EXACT, source.note, f"{source.name}//")
        aliases: dict[str, list[str]] = {}
        for alias, name in source.aliases.items():
            aliases.setdefault(name, []).append(f"{source.name}/{alias}/")
        for event in source.events:
            code = f"{source.name}/{source.event_text(event)}/"
            names = () if source.sysfs_aliases is None else (event.name,)
            yield Listed((*names, *aliases.get(event.name, ())), "pmu", event.support, event.note, code)


def events_of(model: PmuModel) -> list[Listed]:
    """All that depends on the PMU."""
    return [*hardware_events(model), *cache_events(model), *pmu_events(model), *source_events(model)]
