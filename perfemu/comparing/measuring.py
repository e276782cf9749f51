"""measuring: one side of a comparison, from a file, or from a program that is run on the spot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TextIO

from perfcore.perfdata.errors import PerfDataError
from perfemu.comparing.measured import Measured, measured_of
from perfemu.comparing.stat_results import measured_of_stat
from perfemu.counting import count
from perfemu.ending import Ending
from perfemu.errors import PerfemuError, UsageError
from perfemu.functions import FunctionCounter
from perfemu.guest import Guest
from perfemu.interruption import Interrupted
from perfemu.reporting import open_profile, read_profile
from perfemu.scope import PROGRAM, Scope

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
    guest: Guest,
    events: Sequence[str],
    complain: Complain,
    progress: TextIO | None = None,
    scope: Scope = PROGRAM,
) -> Run:
    """Run a program and count `events` exactly, as stat does, and by function. UsageError: which cannot be counted."""
    counted = count(guest, events, scope=scope, progress=progress, attach=partial(FunctionCounter, complain=complain))
    if counted.ending is None:
        raise Interrupted(counted.interrupted_by or 0)
    assert counted.measured is not None, "it was attached"
    for row in counted.counts:
        if row.absence is not None:
            raise UsageError(f"{row.name}: {row.absence.value} on core {counted.counts.core}")
    return Run(counted.measured, counted.ending)


def _measured_profile(path: str, name: str, symfs: str, complain: Complain) -> Measured:
    try:
        with open_profile(path) as file:
            return measured_of(read_profile(file, symfs, complain), name)
    except PerfDataError as problem:
        raise PerfemuError(str(problem)) from None
