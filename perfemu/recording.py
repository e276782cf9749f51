"""recording: what record does: open sampling events on a program, and write the ring buffer's bytes to perf.data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import BinaryIO, Protocol, TextIO

from emulator.linux.errors import LinuxError
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, RecordType
from perfcore.abi.sample import HEADER
from perfcore.abi.syscall_tracepoints import tracepoints_of
from perfcore.events.event import PerfEvent
from perfcore.events.ring_buffer import RingBuffer
from perfcore.perfdata.features import EventDescription, EventGroup, Features, JitFile
from perfcore.perfdata.records import BuildId
from perfcore.perfdata.tracing_data import tracing_data
from perfcore.perfdata.writer import PerfDataWriter
from perfemu.counters import enable_groups
from perfemu.ending import Ending
from perfemu.errors import PerfemuError, UsageError
from perfemu.events.attributes import Sampling, counting_attr, record_attrs
from perfemu.events.spec import EventSpec
from perfemu.guest import Guest
from perfemu.interruption import Interrupted, Interruption
from perfemu.namespace import Namespace
from perfemu.output_file import open_output
from perfemu.scope import PROGRAM, Region, Scope
from perfemu.session import Session, cannot_know

DEFAULT_EVENTS = ("cycles",)
RING_BUFFER_PAGES = 128  # of 4 KiB: perf's default, 512 KiB

BuildIdOf = Callable[[str], bytes]
"""From a file of the host."""


class RecordedRun(Protocol):
    """One run that is recorded: of a program, as Session is, or of a board."""

    guest: Guest
    space: Namespace

    @property
    def isa(self) -> str: ...
    def parse(self, events: Iterable[str]) -> list[EventSpec]: ...
    def opened_as(self, spec: EventSpec) -> EventSpec: ...
    def open(
        self, attr: PerfEventAttr, cpu: int = -1, leader: PerfEvent | None = None, *, system_wide: bool = False
    ) -> PerfEvent: ...
    def features(self, command_line: tuple[str, ...]) -> Features: ...
    def symbol_files(self, pids: Iterable[int], mapped_files: Iterable[str]) -> tuple[JitFile, ...]: ...
    def build_id(self, path: str) -> bytes | None:
        """Of a mapped file, if the run knows it itself, or knows that nobody does (empty)."""

    def count_within(self, region: Region) -> None: ...
    def check_region(self) -> None: ...
    def showing_progress(self, stream: TextIO | None) -> AbstractContextManager[object]: ...
    def run(self, interruption: Interruption | None = None) -> Ending: ...


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a recording command gives. `ending` is None if a signal to us cut the run short."""

    ending: Ending | None
    interrupted_by: int | None  # signal
    samples: int
    wakeups: int
    size_bytes: int  # of the file
    path: str  # at which it is
    never_counted: tuple[str, ...] = ()  # events that found no counter, so that they have no samples
    unattributed: tuple[tuple[str, int], ...] = ()  # exact: events of which so many were of no instruction


class _Drain:
    """Moves whole records from all ring buffers to the file. Runs between two guest instructions, when half of one is
    full."""

    def __init__(self, buffers: Sequence[RingBuffer], writer: PerfDataWriter, interruption: Interruption) -> None:
        self.samples = 0
        self.wakeups = 0
        self._buffers = buffers
        self._writer = writer
        self._interruption = interruption

    def __call__(self) -> None:
        self._interruption.hold()
        try:
            self.now()
        finally:
            self._interruption.release()

    def now(self) -> None:
        """CPU after CPU: readers sort the records of a round by time."""
        records = b"".join(buffer.drain() for buffer in self._buffers)
        if records:
            self.wakeups += 1
            self.samples += _count_samples(records)
            self._writer.write(records)
            self._writer.finish_round()  # readers sort by time; they need not wait for the file's end to do so


def _count_samples(records: bytes) -> int:
    unpack, end, sample = HEADER.unpack_from, len(records), int(RecordType.SAMPLE)
    position = count = 0
    while position < end:
        kind, _, size = unpack(records, position)
        count += kind == sample
        position += size
    return count


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
            event = session.open(attr, cpu, leader=None if spec.leads else leader, system_wide=system_wide)
        except LinuxError as error:
            reason = f": {error.why}" if error.why else ""
            what = "is not supported" if cannot_know(error) else "cannot be opened"
            raise PerfemuError(f"the {spec.name} event {what}{reason}") from None
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
    return tracing_data(events) if events else None


def _groups(specs: Sequence[EventSpec]) -> tuple[EventGroup, ...]:
    return tuple(
        EventGroup(index, spec.group_size) for index, spec in enumerate(specs) if spec.leads and spec.group_size > 1
    )


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
    ) -> None:
        """`make_exact`: ExactSamples, for no samples but how often each instruction made each event."""
        sampling = replace(sampling, exact=make_exact is not None)
        system_wide = scope.cpus is not None
        cpu_wanted = sampling.cpu or system_wide or session.guest.cpus > 1
        attrs = record_attrs(specs, replace(sampling, cpu=cpu_wanted, system_wide=system_wide))
        cpus = range(session.guest.cpus) if scope.cpus is None else scope.cpus
        to_open = [counting_attr(attr) for attr in attrs] if sampling.exact else attrs
        self._specs = specs
        self._opened = [open_sampling(session, specs, to_open, cpu, system_wide=system_wide) for cpu in cpus]
        self._exact = None if make_exact is None else make_exact(specs, attrs, self._opened)
        self._attribution: Attribution | None = None
        if self._exact is not None:
            assert isinstance(session, Session), "of a board's instructions none is attributed"
            self._attribution = self._exact.attribution(session, sampling.inherit)
        self._buffers = [RingBuffer.allocate(RING_BUFFER_PAGES) for _ in cpus]  # as perf: inherited events share them
        for buffer, events_of_cpu in zip(self._buffers, self._opened, strict=True):
            for event in events_of_cpu:
                event.attach_buffer(buffer)
        if system_wide:
            for events_of_cpu in self._opened:
                enable_groups(events_of_cpu)
        self.features = session.features(command_line)
        self.features.groups = _groups(specs)
        self.features.tracing_data = _tracing_data(specs, session.isa)
        self.described = [
            EventDescription(attr, tuple(event.id for event in on_cpus), spec.name)
            for attr, spec, on_cpus in zip(attrs, specs, self._by_event(), strict=True)
        ]
        self._drain: _Drain | None = None

    def _by_event(self) -> Iterator[tuple[PerfEvent, ...]]:
        return zip(*self._opened, strict=True)

    def write_to(self, writer: PerfDataWriter, interruption: Interruption) -> None:
        """From now on, whenever half a buffer is full."""
        self._drain = drain = _Drain(self._buffers, writer, interruption)
        for buffer in self._buffers:
            buffer.on_wakeup = drain

    def finish(self) -> None:
        """Write what is left, after the run."""
        assert self._drain is not None, "write_to comes first"
        if self._attribution is not None:
            self._attribution.finish()
        self._drain.now()

    @property
    def samples(self) -> int:
        return self._drain.samples if self._drain is not None else 0

    @property
    def wakeups(self) -> int:
        return self._drain.wakeups if self._drain is not None else 0

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


def record(
    session: RecordedRun,
    events: Sequence[str],
    sampling: Sampling,
    output: str | BinaryIO,
    *,
    command_line: tuple[str, ...] = (),
    build_id_of: BuildIdOf | None = None,
    scope: Scope = PROGRAM,
    progress: TextIO | None = None,
    make_exact: MakeExact | None = None,
) -> Recorded:
    """Run what the session has and write its profile to the file `output`, or to a pipe if that is an open stream.

    With a `scope` of CPUs the profile is of all that they do. Whatever ends the run, the file is complete up to there,
    and there in the end. A program that cannot be started leaves what is there as it is.
    """
    if scope.region is not None:
        session.count_within(scope.region)
    specs = [session.opened_as(spec) for spec in session.parse(events)]
    recorder = Recorder(session, specs, sampling, scope, command_line, make_exact)
    features = recorder.features
    with _Destination(output, recorder.described, features) as destination, Interruption() as interruption:
        writer = destination.writer
        recorder.write_to(writer, interruption)
        ending, interrupted_by = None, None
        try:
            with session.showing_progress(progress):
                ending = session.run(interruption)
        except Interrupted as interrupted:
            interrupted_by = interrupted.number
        interruption.hold()  # a second signal does not hurry the end
        recorder.finish()
        if interrupted_by is None:
            session.check_region()
        features.jit_files = session.symbol_files(writer.pids_with_own_code, writer.mapped_files)
        if build_id_of is not None:
            features.build_ids = _build_ids(writer.mapped_files, session, build_id_of)
        path, size_bytes = destination.publish()
        return Recorded(
            ending,
            interrupted_by,
            recorder.samples,
            recorder.wakeups,
            size_bytes,
            path,
            recorder.never_counted(),
            recorder.unattributed(),
        )


class _Destination:
    """Where the profile goes: made before the program runs, so that an unwritable name is no wasted run.

    An error that leaves it discards the file; of a full disk's, what was written before is kept.
    """

    def __init__(self, output: str | BinaryIO, events: list[EventDescription], features: Features) -> None:
        self._shown = output if isinstance(output, str) else "the pipe"
        self._output = open_output(output, keeps_old=True) if isinstance(output, str) else None
        if self._output is None:
            assert not isinstance(output, str)
            self.writer = PerfDataWriter(output, events, features, pipe=True)
            return
        if self._output.file.isatty():
            self._output.discard()
            raise UsageError(f"record -o {self._shown}: perf.data is not for a terminal")
        try:
            self.writer = PerfDataWriter(self._output.file, events, features, pipe=self._output.is_stream)
        except OSError as error:
            self._output.discard()
            raise self._failure(error, False) from None

    def publish(self) -> tuple[str, int]:
        """The path at which the profile is, and its size in bytes."""
        self.writer.close()  # what it raises is salvaged
        output, self._output = self._output, None
        if output is None:
            return self._shown, self.writer.data_bytes
        size = self.writer.data_bytes if output.is_stream else os.fstat(output.file.fileno()).st_size
        return output.publish(), size

    def _failure(self, error: OSError, kept: bool) -> Exception:
        if isinstance(error, BrokenPipeError):
            return error
        what_is_there = "; what was recorded before is in it" if kept else ""
        return PerfemuError(f"cannot write {self._shown}: {error.strerror}{what_is_there}")

    def __enter__(self) -> _Destination:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self._output is None:
            return
        kept = not isinstance(error, PerfemuError) and self.writer.salvage()
        if kept:
            self._output.publish()
        else:
            self._output.discard()
        if isinstance(error, OSError):
            raise self._failure(error, kept) from None


def _build_ids(paths: Sequence[str], session: RecordedRun, build_id_of: BuildIdOf) -> tuple[BuildId, ...]:
    """Of the files that the guest had at these paths."""

    def found(path: str) -> bytes:
        known = session.build_id(path)
        return build_id_of(session.space.on_host(path) or "") if known is None else known

    build_ids = ((path, found(path)) for path in paths)
    return tuple(BuildId(path, build_id) for path, build_id in build_ids if build_id)
