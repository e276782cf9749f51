"""filters: which samples are shown: by task, CPU, time, symbol and file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from perfcore.abi.sample import Sample
from perfemu.errors import UsageError
from perfemu.profile.places import Place
from perfemu.profile.tasks import Thread
from perfemu.script.frames import file_of

_TIME = re.compile(r"(\d+)(?:\.(\d{1,9}))?")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%/(\d+)")
_SHARES = re.compile(r"(\d+(?:\.\d+)?)%-(\d+(?:\.\d+)?)%")
_FOREVER = 1 << 64
_FORMS = "START,STOP in seconds, one of which may be missing; or of the whole time 10%/2 (the second tenth) or 0%-10%"
Span = tuple[int, int]  # ns, both inclusive


@dataclass(frozen=True, slots=True)
class SampleFilter:
    """None: everything. Names of files are whole paths, or their last parts."""

    comms: frozenset[str] | None = None
    pids: frozenset[int] | None = None
    tids: frozenset[int] | None = None
    cpus: frozenset[int] | None = None
    symbols: frozenset[str] | None = None
    files: frozenset[str] | None = None
    spans: tuple[Span, ...] | None = None

    def tests(self) -> list[Callable[[Sample, Thread, Place], bool]]:
        """What all must hold."""
        comms, pids, tids, cpus, spans = self.comms, self.pids, self.tids, self.cpus, self.spans
        symbols, files = self.symbols, self.files
        made: list[Callable[[Sample, Thread, Place], bool]] = []
        if spans is not None:
            made.append(lambda sample, thread, place: any(first <= sample.time <= last for first, last in spans))
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


def time_spans(text: str, known: Span | None) -> tuple[Span, ...]:
    """``START,STOP`` (either may be missing), several with spaces between; ``10%/2``, ``0%-10%`` of the `known` time.

    UsageError for what is neither.
    """
    spans: list[Span] = []
    for word in text.replace(",", " ").split() if "%" in text else text.split():
        if "%" in word:
            spans.append(_share(word, text, known))
            continue
        first, comma, last = word.partition(",")
        if not comma:
            raise UsageError(f"--time {text}: {_FORMS}")
        span = (_nanoseconds(first, text) if first else 0, _nanoseconds(last, text) if last else _FOREVER)
        if span[0] > span[1]:
            raise UsageError(f"--time {text}: it stops before it starts")
        spans.append(span)
    if not spans:
        raise UsageError("--time: no time is given")
    return tuple(spans)


def _nanoseconds(text: str, whole: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise UsageError(f"--time {whole}: '{text}' is no time in seconds")
    return int(found[1]) * 1_000_000_000 + int((found[2] or "0").ljust(9, "0"))


def _share(word: str, text: str, known: Span | None) -> Span:
    if known is None:
        raise UsageError(f"--time {text}: the file does not tell the times of its first and last sample")
    first, last = known
    if found := _SHARE.fullmatch(word):
        percent, number = float(found[1]), int(found[2])
        low, high = percent * (number - 1), percent * number
    elif found := _SHARES.fullmatch(word):
        low, high = float(found[1]), float(found[2])
    else:
        raise UsageError(f"--time {text}: {_FORMS}")
    if not 0 <= low < high <= 100:
        raise UsageError(f"--time {text}: {low:g}%-{high:g}% is not within 0%-100%")
    start, stop = (first + round((last - first) * part / 100) for part in (low, high))
    return start, stop - 1 if start < stop != last else stop  # the next share starts there
