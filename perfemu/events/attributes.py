"""Attributes: the perf_event_attr that stat or record opens for an EventSpec, as perf's evsel__config fills it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, ReadFormat, SampleType, SoftwareId
from perfemu.events.sample_options import all_registers, apply_options, register_mask
from perfemu.events.spec import EventSpec, parse_modifiers
from pmu.unit_pmu import UnitPmu

if TYPE_CHECKING:
    from perfemu.events.aux_samples import Snapshots  # only who records loads that

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
    exact_callchains: bool = False  # of the calls that the CPUs have seen, rather than by frame pointers
    exact: bool = False  # no samples, but how often each instruction made each event
    inherit: bool = True
    cpu: bool = False  # which one, in each sample
    system_wide: bool = False  # what CPUs do, rather than the program
    clock: int | None = None  # of the samples' times, a clockid_t; None: perf's own
    options: tuple[str, ...] = ()  # names of SAMPLE_OPTIONS
    nothing: bool = False  # no samples: counts alone
    user_registers: str | None = None  # as --user-regs names them; "" is all
    interrupt_registers: str | None = None
    stack_bytes: int = 0  # of each sample's stack, and the registers to unwind it by
    begins_later: bool = False  # some time after the program
    is_switched: bool = False  # ... or ends before it, as the guest says
    backward: bool = False  # only the last samples are kept
    branches: int = 0  # attr.branch_sample_type of those before each sample; 0: none
    per_thread: bool = False  # one buffer for all CPUs, and the first task alone
    of_cgroups: bool = False  # some events are of control groups alone
    traces: bool = False  # one event writes into an AUX area
    aux_sample_bytes: int | None = None  # of that, in each sample of the other events of its group: --aux-sample
    snapshots: Snapshots | None = None  # only the latest of it is written, when somebody asks for it

    @property
    def tracks_apart(self) -> bool:
        """Whether tasks and mappings are told of by an event of their own: the others are not there all the time, or
        do not hear of all tasks."""
        return self.begins_later or self.is_switched or self.backward or self.of_cgroups or self.traces


TRACKING = EventSpec("dummy", PerfType.SOFTWARE, SoftwareId.DUMMY, -1, modifiers=parse_modifiers("u"), period=1)


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


def record_attrs(specs: Sequence[EventSpec], sampling: Sampling, isa: str = "x86_64") -> list[PerfEventAttr]:
    """As evsel__config and evlist__config in tools/perf/util. The first event also tracks mappings and tasks; where
    these are tracked apart, the last one does, which is TRACKING. ValueError for registers that the ISA has not."""
    tracking = len(specs) - 1 if sampling.tracks_apart else 0
    attrs = [_record_attr(spec, sampling, isa, tracking=number == tracking) for number, spec in enumerate(specs)]
    if len(attrs) > 1:  # samples must say whose they are: by ID, or by IDENTIFIER where their layouts differ
        same_layout = len({attr.sample_type for attr in attrs}) == 1 and not sampling.traces
        for attr in attrs:
            attr.sample_type |= SampleType.ID if same_layout else SampleType.IDENTIFIER
    return attrs


def _record_attr(spec: EventSpec, sampling: Sampling, isa: str, tracking: bool) -> PerfEventAttr:
    attr = _sampling_attr(spec, sampling)
    attr.enable_on_exec = int(
        spec.leads and not sampling.system_wide and (spec is TRACKING or not sampling.begins_later)
    )
    attr.inherit = int(sampling.inherit and not spec.modifiers.sample_read)
    attr.write_backward = int(sampling.backward and spec is not TRACKING)
    attr.sample_id_all = 1
    if sampling.clock is not None:
        attr.use_clockid, attr.clockid = 1, sampling.clock
    if tracking:
        attr.context_switch = int(sampling.traces)
        attr.mmap = attr.comm = attr.task = attr.mmap2 = attr.comm_exec = attr.ksymbol = attr.bpf_event = 1
    if sampling.per_thread:
        attr.sample_type &= ~SampleType.TIME
    apply_options(sampling.options, attr, isa, tracking=tracking)
    _add_stack(attr, sampling, isa, tracking)
    return attr


def _sampling_attr(spec: EventSpec, sampling: Sampling) -> PerfEventAttr:
    """Which event, how often it is sampled, and what goes into each of its samples."""
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
    if sampling.callchains and spec is not TRACKING:
        sample_type |= SampleType.CALLCHAIN
    if sampling.branches and spec is not TRACKING:
        sample_type |= SampleType.BRANCH_STACK
    if sampling.cpu:
        sample_type |= SampleType.CPU
    if spec.aux_sample_bytes:
        sample_type |= SampleType.AUX
    if frequency is not None:
        sample_type |= SampleType.PERIOD
    if spec.traces:
        period, frequency = _period_of_trace(spec, period), None
        sample_type &= ~SampleType.PERIOD
    if sampling.nothing and spec is not TRACKING:  # what a sample would have stays as it is, in the records besides
        period, frequency = (0, None) if frequency is None else (None, 0)
    return _base_attr(spec).copy(
        sample_period=frequency if frequency is not None else period or 0,
        freq=int(frequency is not None),
        sample_type=sample_type,
        read_format=read_format,
        aux_sample_size=spec.aux_sample_bytes or 0,
        branch_sample_type=sampling.branches if sample_type & SampleType.BRANCH_STACK else 0,
        precise_ip=3 if sampling.exact else spec.modifiers.precise,
    )


def _period_of_trace(spec: EventSpec, period: int | None) -> int:
    """A unit that samples has the period that was asked for, or its own; a trace has none: it says 1."""
    default = spec.source.default_period if isinstance(spec.source, UnitPmu) else 0
    return (period or default) if default else 1


def _add_stack(attr: PerfEventAttr, sampling: Sampling, isa: str, tracking: bool) -> None:
    """Registers, and with them what callers are found by afterwards: as --call-graph dwarf."""
    if sampling.interrupt_registers is not None:
        attr.sample_type |= SampleType.REGS_INTR
        attr.sample_regs_intr = register_mask(sampling.interrupt_registers, isa)
    if sampling.user_registers is not None:
        attr.sample_type |= SampleType.REGS_USER
        attr.sample_regs_user = register_mask(sampling.user_registers, isa)
    if sampling.stack_bytes:
        attr.sample_type |= SampleType.REGS_USER | SampleType.STACK_USER | SampleType.ADDR | SampleType.DATA_SRC
        attr.sample_regs_user |= all_registers(isa)
        attr.sample_stack_user = sampling.stack_bytes
        attr.exclude_callchain_user = 1
        attr.mmap_data = int(tracking)


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
