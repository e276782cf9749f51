"""filters: which samples are shown: by task, CPU, time, symbol and file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perfcore.abi.sample import Sample
from perfemu.profile.places import Place
from perfemu.profile.tasks import Thread
from perfemu.profile.time_ranges import Range, is_within
from perfemu.script.frames import file_of


@dataclass(frozen=True, slots=True)
class SampleFilter:
    """None: everything. Names of files are whole paths, or their last parts."""

    comms: frozenset[str] | None = None
    pids: frozenset[int] | None = None
    tids: frozenset[int] | None = None
    cpus: frozenset[int] | None = None
    symbols: frozenset[str] | None = None
    files: frozenset[str] | None = None
    times: tuple[Range, ...] = ()

    def tests(self) -> list[Callable[[Sample, Thread, Place], bool]]:
        """What all must hold."""
        comms, pids, tids, cpus, times = self.comms, self.pids, self.tids, self.cpus, self.times
        symbols, files = self.symbols, self.files
        made: list[Callable[[Sample, Thread, Place], bool]] = []
        if times:
            made.append(lambda sample, thread, place: is_within(sample.time, times))
        if cpus is not None:
            made.append(lambda sample, thread, place: sample.cpu in cpus)
        if comms is not None:
            made.append(lambda sample, thread, place: thread.comm in comms)
        if pids is not None:
            made.append(lambda sample, thread, place: sample.pid in pids)
        if tids is not None:
            made.append(lambda sample, thread, place: sample.tid in tids)
        if files is not None:
            made.append(lambda sample, thread, place: file_of(place) in files or place.file_name in files)
        if symbols is not None:
            made.append(lambda sample, thread, place: place.symbol is not None and place.symbol.shown in symbols)
        return made
