"""Attributes: the perf_event_attr that stat or record opens for an EventSpec, as perf's evsel__config fills it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, ReadFormat, SampleType, SoftwareId
from perfemu.events.spec import EventSpec, parse_modifiers

HAPPEN_IN_KERNEL = (SoftwareId.CONTEXT_SWITCHES, SoftwareId.CPU_MIGRATIONS)  # exclude_kernel would leave nothing
ATTR_SIZE = 128  # PERF_ATTR_SIZE_VER7, what perf 6.1 passes


DEFAULT_FREQUENCY_HZ = 4000  # perf record's


@dataclass(frozen=True, slots=True)
class Sampling:
    """What record samples: by period or by frequency, and what goes into a sample."""

    frequency_hz: int | None = DEFAULT_FREQUENCY_HZ
    period: int | None = None  # instead of the frequency
    rate_asked: bool = False  # one of them by the user: otherwise tracepoints and breakpoints sample each
    callchains: bool = False
    exact: bool = False  # no samples, but how often each instruction made each event
    inherit: bool = True
    cpu: bool = False  # which one, in each sample
    system_wide: bool = False  # what CPUs do, rather than the program
    clock: int | None = None  # of the samples' times, a clockid_t; None: perf's own
    per_thread_counts: bool = False  # a READ record at the end of each task but the first


def _base_attr(spec: EventSpec) -> PerfEventAttr:
    """What stat and record have in common: which event, where, and when it is enabled."""
    modifiers = spec.modifiers
    user_only = spec.user_only
    return PerfEventAttr(
        type=spec.type,
        size=ATTR_SIZE,
        config=spec.config,
        config1=spec.config1,
        config2=spec.config2,
        bp_type=spec.bp_type,
        disabled=int(spec.leads),
        enable_on_exec=int(spec.leads),
        pinned=int(modifiers.pinned and spec.leads),
        exclusive=int(modifiers.exclusive and spec.leads),
        exclude_user=int(modifiers.exclude_user),
        exclude_kernel=int(modifiers.exclude_kernel or user_only),
        exclude_hv=int(modifiers.exclude_hv or user_only),
        exclude_host=int(modifiers.exclude_host),
        exclude_guest=int(modifiers.exclude_guest and spec.source is None),
        exclude_idle=int(modifiers.exclude_idle),
        precise_ip=modifiers.precise,
    )


def stat_attr(
    spec: EventSpec, *, inherit: bool = True, system_wide: bool = False, per_thread: bool = False
) -> PerfEventAttr:
    """As create_perf_stat_counter in tools/perf/util/stat.c. `per_thread`: what a task counted stays with it."""
    read_format = ReadFormat.TOTAL_TIME_ENABLED | ReadFormat.TOTAL_TIME_RUNNING
    if spec.group_size > 1:
        read_format |= ReadFormat.ID | ReadFormat.GROUP
    return _base_attr(spec).copy(
        sample_type=SampleType.IDENTIFIER,
        read_format=read_format,
        inherit=int(inherit),
        inherit_stat=int(per_thread),
        enable_on_exec=int(spec.leads and not system_wide),
    )


def user_mode_only(spec: EventSpec) -> EventSpec:
    """`spec` as record opens it. A software event of user mode says so: else readers want the kernel's symbols."""
    in_kernel = spec.type == PerfType.SOFTWARE and spec.config in HAPPEN_IN_KERNEL
    asked = any(letter in spec.modifiers.text for letter in "ukh")
    if spec.is_hardware or spec.source is not None or in_kernel or asked or spec.type == PerfType.TRACEPOINT:
        return spec
    return replace(spec, modifiers=parse_modifiers(spec.modifiers.text + "u"))


def record_attrs(specs: Sequence[EventSpec], sampling: Sampling) -> list[PerfEventAttr]:
    """As evsel__config and evlist__config in tools/perf/util. The first event also tracks mappings and tasks."""
    attrs = [_record_attr(spec, sampling, tracking=number == 0) for number, spec in enumerate(specs)]
    if len(attrs) > 1:  # samples must say whose they are: by ID, or by IDENTIFIER where their layouts differ
        same_layout = len({attr.sample_type for attr in attrs}) == 1
        for attr in attrs:
            attr.sample_type |= SampleType.ID if same_layout else SampleType.IDENTIFIER
    return attrs


def _record_attr(spec: EventSpec, sampling: Sampling, tracking: bool) -> PerfEventAttr:
    sample_type = SampleType.IP | SampleType.TID | SampleType.TIME
    read_format = ReadFormat.ID | ReadFormat.LOST
    period, frequency = spec.period, spec.frequency
    if period is None and frequency is None:
        period, frequency = sampling.period, sampling.frequency_hz if sampling.period is None else None
    if spec.type == PerfType.TRACEPOINT:
        sample_type |= SampleType.CPU | SampleType.PERIOD | SampleType.RAW
    if spec.type in (PerfType.TRACEPOINT, PerfType.BREAKPOINT) and not sampling.rate_asked:
        period, frequency = 1, None
    if spec.modifiers.sample_read:
        sample_type |= SampleType.READ
        read_format |= ReadFormat.GROUP
        if not spec.leads:
            period, frequency = 0, None
            sample_type |= SampleType.PERIOD if sampling.period is None else 0
    if sampling.exact:
        sample_type |= SampleType.PERIOD
        period, frequency = 1, None
    if sampling.callchains:
        sample_type |= SampleType.CALLCHAIN
    if sampling.cpu:
        sample_type |= SampleType.CPU
    if sampling.per_thread_counts:
        read_format |= ReadFormat.TOTAL_TIME_ENABLED | ReadFormat.TOTAL_TIME_RUNNING
    if frequency is not None:
        sample_type |= SampleType.PERIOD
    flag = int(tracking)
    return _base_attr(spec).copy(
        sample_period=frequency if frequency is not None else period or 0,
        freq=int(frequency is not None),
        sample_type=sample_type,
        read_format=read_format,
        precise_ip=3 if sampling.exact else spec.modifiers.precise,
        inherit=int(sampling.inherit and not spec.modifiers.sample_read),
        inherit_stat=int(sampling.per_thread_counts),
        enable_on_exec=int(spec.leads and not sampling.system_wide),
        sample_id_all=1,
        use_clockid=int(sampling.clock is not None),
        clockid=sampling.clock or 0,
        mmap=flag,
        comm=flag,
        task=flag,
        mmap2=flag,
        comm_exec=flag,
        ksymbol=flag,
        bpf_event=flag,
    )


def counting_attr(attr: PerfEventAttr) -> PerfEventAttr:
    """What is opened for an event that will be described as `attr`: it counts, and nothing overflows."""
    return attr.copy(sample_period=0, freq=0, precise_ip=0)


def is_exact(attr: PerfEventAttr) -> bool:
    """Whether an event's samples are attributed counts: "every event, at its own instruction", with a period of many.

    No other recording has that: where the period is fixed, perf leaves it out of its samples.
    """
    return bool(
        attr.sample_period == 1 and not attr.freq and attr.precise_ip == 3 and attr.sample_type & SampleType.PERIOD
    )
