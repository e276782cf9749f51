"""recording: what record does: run a program with its events open, and write what they say to perf.data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import BinaryIO, NamedTuple, TextIO

from emulator.linux.mm.vdso import NAME as VDSO
from emulator.linux.mm.vdso import vdso_image
from perfcore.perfdata.features import Features
from perfcore.perfdata.records import BuildId
from perfcore.perfdata.writer import PerfDataWriter
from perfemu.destination import NO_SWITCHING, Destinations, Switching
from perfemu.ending import Ending
from perfemu.events.attributes import Sampling
from perfemu.events.changes import UNCHANGED, Changes
from perfemu.events.spec import EventSpec
from perfemu.file_limits import ONE_FILE, FileLimits, Files
from perfemu.interruption import Interrupted, Interruption
from perfemu.moments import ALWAYS, When, let_switch
from perfemu.recorder import MakeExact, RecordedRun, Recorder
from perfemu.scope import PROGRAM, Scope

DEFAULT_EVENTS = ("cycles",)
BuildIdOf = Callable[[str], bytes]
"""From a file of the host."""


class RecordedBeside(NamedTuple):
    """Another recording of the same run."""

    path: str
    size_bytes: int
    samples: int


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
    files: tuple[str, ...] = ()  # those of --switch-output, of which `path` is the last
    dropped_files: int = 0  # ... of which so many were not kept
    full: bool = False  # the file was as large as it may be, and ended the run
    beside: tuple[RecordedBeside, ...] = ()  # what else was recorded of the run


def planned(
    session: RecordedRun,
    events: Sequence[str],
    sampling: Sampling,
    scope: Scope = PROGRAM,
    changes: Changes = UNCHANGED,
    when: When = ALWAYS,
) -> tuple[list[EventSpec], Sampling]:
    """What a Recorder will open for `events`, and how it samples, once the session knows within what it counts."""
    session.count_within(scope, inherit=sampling.inherit)
    if sampling.exact_callchains:
        session.keep_calls()
    sampling = replace(sampling, begins_later=when.toggles is not None, is_switched=when.control is not None)
    if scope.ids is not None:
        sampling = replace(sampling, inherit=True)  # by which alone the events come to those
    specs = [session.opened_as(spec) for spec in changes.applied(session.parse(events))]
    return specs, replace(sampling, of_cgroups=any(spec.cgroup is not None for spec in specs))


@dataclass(frozen=True, slots=True)
class View:
    """One more recording of the same run, in a file of its own: FILE.NAME."""

    name: str
    specs: tuple[EventSpec, ...]
    sampling: Sampling
    make_exact: MakeExact | None = None


ViewsBeside = Callable[[Sequence[EventSpec], Sampling], Sequence[View]]
"""Of the events that are recorded, and how."""


class _Written:
    """A recording and its files."""

    def __init__(
        self,
        session: RecordedRun,
        recorder: Recorder,
        output: str | BinaryIO,
        switching: Switching,
        interruption: Interruption,
        build_id_of: BuildIdOf | None,
    ) -> None:
        self.recorder = recorder
        self.destinations = Destinations(
            output, recorder.described, recorder.features, switching, partial(_time_of, session)
        )
        recorder.write_to(lambda: self.destinations.writer, interruption)
        self._session, self._build_id_of = session, build_id_of

    def publish(self) -> tuple[tuple[str, ...], int]:
        """The paths at which the files are, and their size in bytes. After the run, and `Recorder.finish`."""
        return self.destinations.publish(self._complete)

    def _complete(self, writer: PerfDataWriter, features: Features) -> None:
        features.jit_files = self._session.symbol_files(writer.pids_with_own_code, writer.mapped_files)
        if self._build_id_of is not None:
            features.build_ids = _build_ids(writer.mapped_files, self._session, self._build_id_of)


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
    changes: Changes = UNCHANGED,
    when: When = ALWAYS,
    on_switch: Callable[[bool], None] | None = None,
    files: Files = ONE_FILE,
    views_beside: ViewsBeside | None = None,
) -> Recorded:
    """Run what the session has and write its profile to the file `output`, or to a pipe if that is an open stream.

    With a `scope` of CPUs the profile is of all that they do. Whatever ends the run, the file is complete up to there,
    and there in the end. A program that cannot be started leaves what is there as it is.

    `when` says when samples are taken, all the time or not; `on_switch` hears of each begin and end. `views_beside`
    says what else is recorded, in files beside `output`; for as long as the run takes, and at once.
    """
    specs, sampling = planned(session, events, sampling, scope, changes, when)
    recorder = Recorder(session, specs, sampling, scope, command_line, make_exact, files.pages, files.aux_pages)
    views = views_beside(specs, sampling) if views_beside is not None else ()
    interruption = Interruption()
    with ExitStack() as opened:
        written = _Written(session, recorder, output, files.switching, interruption, build_id_of)
        destinations = opened.enter_context(written.destinations)
        all_written = [written]
        for view in views:
            assert isinstance(output, str), "what is beside it has a name"
            beside = Recorder(
                session, view.specs, view.sampling, scope, command_line, view.make_exact, files.pages, files.aux_pages
            )
            path = f"{output}.{view.name}"
            all_written.append(_Written(session, beside, path, NO_SWITCHING, interruption, build_id_of))
            opened.enter_context(all_written[-1].destinations)
        opened.enter_context(interruption)
        assert recorder.drain is not None, "it writes"
        limits = FileLimits(session, recorder.tracking, recorder.drain, destinations, files)
        let_switch(session, when, recorder.switch, on_switch, recorder.snapshot)
        ending, interrupted_by = None, None
        try:
            with session.showing_progress(progress):
                ending = session.run(interruption)
        except Interrupted as interrupted:
            interrupted_by = interrupted.number
        interruption.hold()  # a second signal does not hurry the end
        for each in all_written:
            each.recorder.finish()
        if interrupted_by is None:
            session.check_reached()
        paths, size_bytes = written.publish()
        return Recorded(
            ending,
            interrupted_by,
            recorder.samples,
            recorder.wakeups,
            size_bytes,
            paths[-1],
            recorder.never_counted(),
            recorder.unattributed(),
            paths if files.switching.is_wanted else (),
            destinations.dropped,
            limits.reached,
            tuple(_beside(each) for each in all_written[1:]),
        )


def _beside(written: _Written) -> RecordedBeside:
    (path,), size_bytes = written.publish()
    return RecordedBeside(path, size_bytes, written.recorder.samples)


def _time_of(session: RecordedRun) -> str:
    """Of the guest's clock, UTC, as perf has it in names of files, but to the ns."""
    seconds, ns = divmod(session.realtime_ns(), 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%d%H%M%S") + f"{ns:09}"


def _build_ids(paths: Sequence[str], session: RecordedRun, build_id_of: BuildIdOf) -> tuple[BuildId, ...]:
    """Of the files that the guest had at these paths, and of its vDSO."""

    def found(path: str) -> bytes:
        known = session.build_id(path)
        if known is not None:
            return known
        return build_id_of(str(vdso_image(session.isa)) if path == VDSO else session.space.on_host(path) or "")

    build_ids = ((path, found(path)) for path in paths)
    return tuple(BuildId(path, build_id) for path, build_id in build_ids if build_id)
