"""measuring: one side of a comparison, from a file, or from a program that is run on the spot."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

from perfcore.perfdata.errors import PerfDataError
from perfemu.comparing.measured import Measured, measured_of
from perfemu.comparing.stat_results import measured_of_stat
from perfemu.ending import Ending
from perfemu.errors import PerfemuError
from perfemu.events.attributes import Sampling
from perfemu.interruption import Interrupted
from perfemu.recording import record
from perfemu.reporting import open_profile, read_profile
from perfemu.session import GuestSettings
from perfemu.symbols.finder import build_id_of

_PERF_DATA = (b"PERFILE2", b"2ELIFREP")
_MOST_JSON_BYTES = 64 << 20

Complain = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Run:
    """A program that has been measured."""

    measured: Measured
    ending: Ending


def measured_file(path: str, symfs: str, complain: Complain) -> Measured:
    """A perf.data file, or what stat -j wrote. Raises PerfemuError."""
    try:
        with open(path, "rb") as file:
            start = file.read(8)
            if start not in _PERF_DATA:
                text = (start + file.read(_MOST_JSON_BYTES)).decode("utf-8", "replace")
                if text.lstrip()[:1] not in ("{", "#"):
                    raise PerfemuError(f"{path} is neither a perf.data file nor what stat -j writes")
                return measured_of_stat(path, text)
    except OSError as error:
        raise PerfemuError(f"cannot read {path}: {error.strerror}") from None
    return _measured_profile(path, path, symfs, complain)


def measured_run(
    settings: GuestSettings, events: Sequence[str], complain: Complain, progress: TextIO | None = None
) -> Run:
    """Run a program and count `events` exactly, by function."""
    with tempfile.TemporaryDirectory(prefix="perfemu-") as directory:
        path = os.path.join(directory, "perf.data")
        recorded = record(settings, events, Sampling(exact=True), path, build_id_of=build_id_of, progress=progress)
        if recorded.ending is None:
            raise Interrupted(recorded.interrupted_by or 0)
        measured = _measured_profile(path, " ".join(settings.argv), settings.sysroot or "", complain)
    for name, count in recorded.unattributed:
        measured.events[name.partition(":")[0]].add_unattributed(count)
    return Run(measured, recorded.ending)


def _measured_profile(path: str, name: str, symfs: str, complain: Complain) -> Measured:
    try:
        with open_profile(path) as file:
            return measured_of(read_profile(file, symfs, complain), name)
    except PerfDataError as problem:
        raise PerfemuError(str(problem)) from None
