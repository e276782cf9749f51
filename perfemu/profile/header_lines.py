"""header_lines: a file's features as `perf report --header` prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from enum import IntFlag

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import ReadFormat, SampleType
from perfcore.perfdata.features import Features
from perfcore.perfdata.header import Feature
from perfemu.profile.profile import Profile
from perfemu.visible import visible


def header_lines(profile: Profile) -> list[str]:
    """Lines of comment; the file's time on disk is left out, for it is the host's."""
    told = profile.features
    header = profile.header
    lines = ["# ========"]
    if header is not None:
        lines += ["# header version : 1", f"# data offset    : {header.data.offset}"]
        lines += [f"# data size      : {header.data.size}", f"# feat offset    : {header.data.end}"]
    for label, value in _labelled(told):
        if value is not None:
            lines.append(f"# {label} : {value}")
    if told.command_line:
        lines.append(f"# cmdline : {' '.join(told.command_line)} ")
    for event in profile.events:
        attr = event.description.attr
        identifiers = ", ".join(str(identifier) for identifier in event.description.ids)
        lines.append(f"# event : name = {event.name}, , id = {{ {identifiers} }}, {', '.join(_attr_facts(attr))}")
    if told.pmu_mappings:
        lines.append(f"# pmu mappings: {', '.join(f'{name} = {number}' for number, name in told.pmu_mappings)}")
    if told.sample_time_ns:
        first, last = told.sample_time_ns
        lines.append(f"# time of first sample : {_seconds(first)}")
        lines.append(f"# time of last sample : {_seconds(last)}")
        lines.append(f"# sample duration : {(last - first) / 1e6:10.3f} ms")
    missing = [feature.name for feature in Feature if feature not in told.pack()]
    lines.append(f"# missing features: {' '.join(missing)} ")
    return [*map(visible, lines), "# ========", "#"]


def _labelled(told: Features) -> list[tuple[str, object]]:
    return [
        ("hostname", told.hostname),
        ("os release", told.os_release),
        ("perf version", told.version),
        ("arch", told.architecture),
        ("nrcpus online", told.cpus and told.cpus.online),
        ("nrcpus avail", told.cpus and told.cpus.available),
        ("cpudesc", told.cpu_description),
        ("cpuid", told.cpuid),
        ("total memory", None if told.total_memory_kb is None else f"{told.total_memory_kb} kB"),
    ]


def _attr_facts(attr: PerfEventAttr) -> Iterator[str]:
    """What of an attr is not 0, as tools/perf/util/perf_event_attr_fprintf.c has it."""
    for field in fields(attr):
        value = getattr(attr, field.name)
        if value:
            yield f"{_ATTR_LABELS.get(field.name, field.name)} = {_ATTR_TEXTS.get(field.name, str)(value)}"


def _names(flags: type[IntFlag]) -> Callable[[int], str]:
    return lambda value: "|".join(flag.name or "" for flag in flags if flag & value)


_ATTR_LABELS = {
    "sample_period": "{ sample_period, sample_freq }",
    "wakeup_events": "{ wakeup_events, wakeup_watermark }",
    "config1": "{ bp_addr, config1 }",
    "config2": "{ bp_len, config2 }",
}
_ATTR_TEXTS: dict[str, Callable[[int], str]] = {
    "sample_type": _names(SampleType),
    "read_format": _names(ReadFormat),
    **dict.fromkeys(("config", "config1", "config2", "sample_regs_user", "sample_regs_intr"), hex),
}


def _seconds(time_ns: int) -> str:
    return f"{time_ns // 1_000_000_000}.{time_ns % 1_000_000_000 // 1000:06}"
