"""Recorder: the sampling events of one recording, open on a run, and the way of their records to a writer."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import chain
from typing import Protocol, TextIO

from emulator.core_file.core_file import CoreFile
from emulator.linux.cgroup.cgroups import ROOT_ID
from emulator.linux.errors import LinuxError
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import BranchSampleType, PerfType, SampleType
from perfcore.abi.records import Cgroup
from perfcore.abi.syscall_tracepoints import tracepoints_of
from perfcore.events.event import PerfEvent
from perfcore.events.ring_buffer import RingBuffer
from perfcore.events.sideband import namespaces_of
from perfcore.perfdata.auxtrace import pack_auxtrace_index
from perfcore.perfdata.features import EventDescription, EventGroup, Features, JitFile
from perfcore.perfdata.header import Feature
from perfcore.perfdata.topology import topology
from perfcore.perfdata.tracing_data import tracing_data
from perfcore.perfdata.writer import PerfDataWriter
from perfemu.aux_reader import AuxReader
from perfemu.counters import enable_groups, switch_events
from perfemu.draining import Drain
from perfemu.ending import Ending
from perfemu.errors import PerfemuError, UsageError
from perfemu.events.attributes import TRACKING, Sampling, counting_attr, record_attrs
from perfemu.events.aux_samples import Snapshots, aux_pages_of, with_aux_samples
from perfemu.events.changes import set_filter
from perfemu.events.spec import EventSpec
from perfemu.file_limits import AUX_PAGES, RING_BUFFER_PAGES, LimitedRun
from perfemu.guest import Guest
from perfemu.interruption import Interruption
from perfemu.namespace import Namespace
from perfemu.scope import PROGRAM, Scope
from perfemu.session import Session, cannot_know
from perfemu.snapshots import AuxSnapshots
from perfemu.units import auxtrace_info

ANY_CPU = -1
_MEMORY = SampleType.ADDR | SampleType.DATA_SRC | SampleType.PHYS_ADDR  # whose readers ask which node that is
CLOCK_RESOLUTION_NS = 1
CLOCK_DATA_VERSION = 1  # of the feature: write_clock_data() of tools/perf/util/header.c


class RecordedRun(LimitedRun, Protocol):
    """One run that is recorded: of a program, as Session is, or of a board."""

    guest: Guest
    space: Namespace
    core: CoreFile

    @property
    def isa(self) -> str: ...
    def parse(self, events: Iterable[str]) -> list[EventSpec]: ...
    def opened_as(self, spec: EventSpec) -> EventSpec: ...
    def open(
        self,
        attr: PerfEventAttr,
        cpu: int = -1,
        leader: PerfEvent | None = None,
        *,
        system_wide: bool = False,
        cgroup: str | None = None,
    ) -> PerfEvent: ...
    def features(self, command_line: tuple[str, ...]) -> Features: ...
    def symbol_files(self, pids: Iterable[int], mapped_files: Iterable[str]) -> tuple[JitFile, ...]: ...
    def build_id(self, path: str) -> bytes | None:
        """Of a mapped file, if the run knows it itself, or knows that nobody does (empty)."""

    def count_within(self, scope: Scope, *, inherit: bool) -> None: ...
    def keep_calls(self) -> None:
        """Callchains will be of the calls that the CPUs see. Before any event is open."""

    def check_reached(self) -> None: ...
    def showing_progress(self, stream: TextIO | None) -> AbstractContextManager[object]: ...
    def run(self, interruption: Interruption | None = None) -> Ending: ...
    def realtime_ns(self) -> int:
        """Of its clock, since 1970."""

    def clock_ns(self, clockid: int) -> int:
        """Of one of its clocks, by clockid_t."""


def open_sampling(
    session: RecordedRun,
    specs: Sequence[EventSpec],
    attrs: Sequence[PerfEventAttr],
    cpu: int,
    *,
    system_wide: bool = False,
) -> list[PerfEvent]:
    """One event per spec, which counts the program on `cpu`, or all that this does.

    PerfemuError if one is not supported, for a profile without it would mislead.
    """
    opened: list[PerfEvent] = []
    leader: PerfEvent | None = None
    for spec, attr in zip(specs, attrs, strict=True):
        if spec.counts_nothing:
            raise PerfemuError(f"the {spec.name} event is not supported: there is no hypervisor")
        try:
            leads = None if spec.leads else leader
            event = session.open(attr, cpu, leads, system_wide=system_wide, cgroup=spec.cgroup)
        except LinuxError as error:
            reason = f": {error.why}" if error.why else ""
            what = "is not supported" if cannot_know(error) else "cannot be opened"
            raise PerfemuError(f"the {spec.name} event {what}{reason}") from None
        set_filter(event, spec)
        if spec.leads:
            leader = event
        opened.append(event)
    return opened


def _never_counted(on_cpus: Sequence[PerfEvent]) -> bool:
    """Whether an event, which has been opened on each CPU, was on the PMU of none."""
    values = [event.read_values() for event in on_cpus]
    return any(value.enabled for value in values) and not any(value.running for value in values)


def _tracing_data(specs: Sequence[EventSpec], isa: str) -> bytes | None:
    """What readers need to make something of the samples' raw data."""
    names = {spec.base_name for spec in specs if spec.type == PerfType.TRACEPOINT}
    events = [event for event in tracepoints_of(isa).values() if event.full_name in names]
    events += {spec.tracepoint.id: spec.tracepoint for spec in specs if spec.tracepoint is not None}.values()
    return tracing_data(events) if events else None


def _clock_features(clock: int, session: RecordedRun) -> dict[int, bytes]:
    """What the clock of -k is, and what it shows when it is that time of day: perf script -F +tod."""
    wall_ns, clock_ns = session.realtime_ns(), session.clock_ns(clock)
    return {
        Feature.CLOCKID: struct.pack("<Q", CLOCK_RESOLUTION_NS),
        Feature.CLOCK_DATA: struct.pack("<IIQQ", CLOCK_DATA_VERSION, clock, wall_ns, clock_ns),
    }


def _groups(specs: Sequence[EventSpec]) -> tuple[EventGroup, ...]:
    return tuple(
        EventGroup(index, spec.group_size) for index, spec in enumerate(specs) if spec.leads and spec.group_size > 1
    )


def _snapshots(sampling: Sampling, tracing: Sequence[EventSpec]) -> Snapshots | None:
    if sampling.snapshots is None:
        return None
    if not tracing:
        raise UsageError("record -S: takes snapshots of a trace: -e intel_pt//u")
    if sampling.aux_sample_bytes is not None:
        raise UsageError("record -S: a trace is written by snapshots, or goes into samples (--aux-sample)")
    return sampling.snapshots


class Exact(Protocol):
    """What makes an exact recording: perfemu.attributing.ExactSamples, which not everybody who records has to load."""

    def attribution(self, session: Session, inherit: bool) -> Attribution: ...
    def unattributed(self) -> list[int]: ...


class Attribution(Protocol):
    def finish(self) -> None: ...


MakeExact = Callable[[Sequence[EventSpec], Sequence[PerfEventAttr], Sequence[list[PerfEvent]]], Exact]


class Recorder:
    """The events of one recording, open on a session that has yet to run, and the way of their records to a writer."""

    def __init__(
        self,
        session: RecordedRun,
        specs: Sequence[EventSpec],
        sampling: Sampling,
        scope: Scope = PROGRAM,
        command_line: tuple[str, ...] = (),
        make_exact: MakeExact | None = None,
        pages: int = RING_BUFFER_PAGES,
        aux_pages: int | None = None,
    ) -> None:
        """`make_exact`: ExactSamples, for no samples but how often each instruction made each event. `pages`: of each
        buffer; `aux_pages`: of the area beside it, where an event's unit traces, if the user says it."""
        specs = with_aux_samples(specs, sampling.aux_sample_bytes)
        tracing = [spec for spec in specs if spec.traces]
        if len(tracing) > 1:
            raise UsageError(f"record: {tracing[0].name} and {tracing[1].name}: one trace is recorded at a time")
        snapshots = _snapshots(sampling, tracing)
        sampling = replace(sampling, exact=make_exact is not None, traces=bool(tracing))
        if sampling.tracks_apart:
            specs = [*specs, TRACKING]
        system_wide = scope.cpus is not None
        cpu_wanted = sampling.cpu or system_wide or session.guest.cpus > 1 or sampling.traces
        try:
            attrs = record_attrs(specs, replace(sampling, cpu=cpu_wanted, system_wide=system_wide), session.isa)
        except ValueError as problem:
            raise UsageError(f"record: {problem}") from None
        cpus: Sequence[int] = range(session.guest.cpus) if scope.cpus is None else scope.cpus
        if sampling.per_thread:
            cpus = (ANY_CPU,)
        to_open = [counting_attr(attr) for attr in attrs] if sampling.exact else attrs
        self._specs, self._attrs = specs, attrs
        self._opened = [open_sampling(session, specs, to_open, cpu, system_wide=system_wide) for cpu in cpus]
        self._exact = None if make_exact is None else make_exact(specs, attrs, self._opened)
        self._attribution: Attribution | None = None
        if self._exact is not None:
            assert isinstance(session, Session), "of a board's instructions none is attributed"
            self._attribution = self._exact.attribution(session, sampling.inherit)
        self._buffers = [RingBuffer.allocate(pages) for _ in cpus]  # as perf: inherited events share them
        self._newest = [
            RingBuffer.allocate(pages, overwrite=True, backward=True) for _ in (cpus if sampling.backward else ())
        ]
        self._attach_buffers()
        tid = session.program_task.tid if isinstance(session, Session) and not system_wide else None
        sample_bytes = max((spec.aux_sample_bytes or 0 for spec in specs), default=0)
        overwrite = snapshots is not None or sample_bytes > 0
        aux_pages = aux_pages_of(snapshots, sample_bytes, aux_pages, AUX_PAGES)
        readers = [
            AuxReader(event, buffer, number, aux_pages, spec.unit_pmu, tid, overwrite=overwrite)
            for number, (events, buffer) in enumerate(zip(self._opened, self._buffers, strict=True))
            for event, spec in zip(events, specs, strict=True)
            if spec.traces
        ]
        self._traces = () if overwrite else readers
        self._snapshots: AuxSnapshots | None = None
        if snapshots is not None:
            self._snapshots = AuxSnapshots(snapshots, readers, [event for event in self._events() if event.driver.aux])
            session.on_signal(self.snapshot)
        for event in self.tracking[:1]:
            if event.attr.cgroup:  # of the only control group that is there before anybody makes one
                event.write_record(event.output.record(Cgroup(ROOT_ID, "/")))
            if event.attr.namespaces:
                assert isinstance(session, Session), "of a board's tasks nothing is known"
                event.write_record(event.output.record(namespaces_of(session.program_task)))
        if system_wide:
            enable_groups(event for event in self._events() if not sampling.begins_later or event.attr.mmap)
        self.features = session.features(command_line)
        self.features.groups = _groups(specs)
        if any(attr.sample_type & _MEMORY == _MEMORY for attr in attrs) or any(
            spec.tells_of_memory for spec in tracing
        ):
            self.features.other |= topology(session.guest.cpus, self.features.total_memory_kb or 0)
        self.features.tracing_data = _tracing_data(specs, session.isa)
        if tracing:
            hz, per_cpu = session.core.frequency_hz, not sampling.per_thread
            self.features.first_records = auxtrace_info(
                tracing[0], per_cpu=per_cpu, hz=hz, snapshot=snapshots is not None
            )
            self.features.other[Feature.AUXTRACE] = pack_auxtrace_index(())  # of those that are written
        if sampling.branches and not sampling.branches & BranchSampleType.CALL_STACK:  # that is a callchain to readers
            self.features.other[Feature.BRANCH_STACK] = b""
        if sampling.clock is not None:
            self.features.other |= _clock_features(sampling.clock, session)
        self.described = [
            EventDescription(attr, tuple(event.id for event in on_cpus), spec.name)
            for attr, spec, on_cpus in zip(attrs, specs, self._by_event(), strict=True)
        ]
        self.drain: Drain | None = None

    def _attach_buffers(self) -> None:
        for number, events_of_cpu in enumerate(self._opened):
            for event in events_of_cpu:
                event.attach_buffer((self._newest if event.attr.write_backward else self._buffers)[number])

    def _events(self) -> Iterator[PerfEvent]:
        return chain.from_iterable(self._opened)

    def _by_event(self) -> Iterator[tuple[PerfEvent, ...]]:
        return zip(*self._opened, strict=True)

    @property
    def tracking(self) -> list[PerfEvent]:
        """The event of each CPU that tells of tasks and mappings."""
        return [event for event in self._events() if event.attr.mmap]

    def switch(self, on: bool, name: str = "") -> None:
        """All of them, or those of this name, begin to sample, or end; tasks and mappings are told of all the time."""
        for spec, on_cpus in zip(self._specs, self._by_event(), strict=True):
            if spec is not TRACKING and name in ("", spec.name, spec.base_name):
                switch_events(on_cpus, on, groups=not name)

    def write_to(self, writer: Callable[[], PerfDataWriter], interruption: Interruption) -> None:
        """From now on, whenever half a buffer is full. `writer`: of the file that is written then."""
        self.drain = drain = Drain(self._buffers, self._newest, writer, interruption, self._traces)
        for buffer in self._buffers:
            buffer.on_wakeup = drain

    def snapshot(self) -> None:
        """Write the latest of the trace, if that is what is wanted of it: record -S."""
        if self._snapshots is not None and self.drain is not None:
            self._snapshots.take(self.drain)

    def finish(self) -> None:
        """Write what is left, after the run: also what units have of events that are still on a CPU, as those of whole
        CPUs are. As perf, which disables all of them."""
        assert self.drain is not None, "write_to comes first"
        for event in self._events():
            event.disable()
        if self._attribution is not None:
            self._attribution.finish()
        self.drain.now(newest=True)
        if self._snapshots is not None:
            self._snapshots.finish(self.drain)

    @property
    def samples(self) -> int:
        return self.drain.samples if self.drain is not None else 0

    @property
    def wakeups(self) -> int:
        return self.drain.wakeups if self.drain is not None else 0

    def never_counted(self) -> tuple[str, ...]:
        """Events that found no counter, so that they have no samples."""
        pairs = zip(self._specs, self._by_event(), strict=True)
        return tuple(spec.name for spec, on_cpus in pairs if _never_counted(on_cpus))

    def unattributed(self) -> tuple[tuple[str, int], ...]:
        """Of an exact recording, events of which so many were of no instruction."""
        if self._exact is None:
            return ()
        left = zip(self._specs, self._exact.unattributed(), strict=True)
        return tuple((spec.name, count) for spec, count in left if count)
