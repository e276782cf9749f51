"""What is taken of a trace besides all of it: snapshots (record -S), and parts in samples of others (--aux-sample).

As tools/perf/util/auxtrace.c: auxtrace_parse_sample_options and auxtrace_parse_snapshot_options.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfemu.errors import UsageError
from perfemu.events.spec import EventSpec

DEFAULT_BYTES = 4096  # of the trace in a sample
_MOST_BYTES = 0xFFFF  # as a record's length has 16 bits
_ALIGNMENT = 8
_PSB_PERIOD = re.compile(r"[/,]psb_period\b")


@dataclass(frozen=True, slots=True)
class Snapshots:
    """record -S."""

    bytes: int | None = None  # of each at most; None: the whole AUX area
    at_end: bool = False  # one more when the program has ended


def read_snapshots(text: str) -> Snapshots:
    """``[e][SIZE]``. ValueError says what is right."""
    size = text.removeprefix("e")
    return Snapshots(_number(size, f"'{text}' is not [e][BYTES]") if size else None, at_end=text.startswith("e"))


def read_aux_sample(text: str) -> int:
    """Bytes, rounded up to whole words. ValueError says what is right."""
    if not text:
        return DEFAULT_BYTES
    size = -(-_number(text, f"'{text}' is no number of bytes") // _ALIGNMENT) * _ALIGNMENT
    if size > _MOST_BYTES:
        raise ValueError(f"a sample has at most {_MOST_BYTES // _ALIGNMENT * _ALIGNMENT} bytes of a trace, not {size}")
    return size


def _number(text: str, problem: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        raise ValueError(problem) from None
    if value <= 0:
        raise ValueError(problem)
    return value


def with_aux_samples(specs: Sequence[EventSpec], bytes_: int | None) -> list[EventSpec]:
    """Which events have how much of a trace in their samples, and are in its group.

    `bytes_`: of --aux-sample, for all in the trace's group; None without. Raises UsageError.
    """
    found = list(specs)
    if bytes_ is not None:
        found = [
            spec if _source(found, spec) in (None, spec) else replace(spec, aux_sample_bytes=bytes_) for spec in found
        ]
        asked = {
            number: spec.aux_sample_bytes for number, spec in enumerate(specs) if spec.aux_sample_bytes is not None
        }
        for number, size in asked.items():
            found[number] = replace(found[number], aux_sample_bytes=size)
    trace: int | None = None
    for number, spec in enumerate(found):
        if spec.traces:
            trace = number
        if spec.aux_sample_bytes and trace is not None and not spec.traces:
            found = _grouped(found, trace, number)
    sampled = [spec for spec in found if spec.aux_sample_bytes]
    for spec in sampled:
        if spec.aux_sample_bytes is not None and spec.aux_sample_bytes > _MOST_BYTES:
            raise UsageError(
                f"record: {spec.name}: AUX area sample size {spec.aux_sample_bytes} too big, max. {_MOST_BYTES}"
            )
        if spec.leads:
            what = "an AUX area event" if spec.traces else "a group leader"
            raise UsageError(f"record: {spec.name}: Cannot add AUX area sampling to {what}")
        source = _source(found, spec)
        if source is None:
            why = "Cannot add AUX area sampling because group leader is not an AUX area event"
            raise UsageError(f"record: {spec.name}: {why}")
        if not source.unit_pmu.goes_into_samples:
            raise UsageError(f"record: {source.name}: of its trace there are no parts in samples")
    if bytes_ is not None and not sampled:
        why = "requires an AUX area event group leader plus other events to which to add samples"
        raise UsageError(f"record: AUX area sampling {why}: -e '{{intel_pt//u,cycles:u}}'")
    return [_with_many_psbs(spec) if spec.traces and sampled else spec for spec in found]


def _source(specs: Sequence[EventSpec], spec: EventSpec) -> EventSpec | None:
    """The event that leads its group, if it traces."""
    return next((other for other in specs if other.group == spec.group and other.leads and other.traces), None)


def _grouped(specs: Sequence[EventSpec], first: int, last: int) -> list[EventSpec]:
    """evlist__regroup(): all from `first`, which traces, to `last` in its group; none where some have another."""
    group = specs[first].group
    between = specs[first + 1 : last + 1]
    if any(spec.group != group and spec.group_size > 1 for spec in between):
        return list(specs)
    joined = [replace(spec, group=group, leads=False) for spec in between]
    found = [*specs[: first + 1], *joined, *specs[last + 1 :]]
    size = sum(spec.group == group for spec in found)
    return [replace(spec, group_size=size) if spec.group == group else spec for spec in found]


def _with_many_psbs(spec: EventSpec) -> EventSpec:
    """intel_pt_config_sample_mode(): unless the user says it, the least psb_period, as parts are short."""
    fields = [bits for bits in spec.unit_pmu.format if bits.name == "psb_period"]
    if not fields or _PSB_PERIOD.search(spec.base_name):
        return spec
    return replace(spec, config=spec.config & ~fields[0].mask)


def aux_pages_of(snapshots: Snapshots | None, sample_bytes: int, pages: int | None, default: int) -> int:
    """Of the AUX area, of 4 KiB each; `pages`: that the user says. As intel_pt_recording_options(). UsageError."""
    wanted = sample_bytes if snapshots is None else snapshots.bytes or 0
    if pages is None and wanted:
        pages = 1 << (-(-wanted // 4096) - 1).bit_length()
    pages = pages or default
    if wanted > pages * 4096:
        what = "Sample" if snapshots is None else "Snapshot"
        raise UsageError(
            f"record: {what} size {wanted} must not be greater than AUX area tracing mmap size {pages * 4096}"
        )
    return pages
