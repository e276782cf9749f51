"""Sources: the lines in which samples lie, with what is around them, of the source files that are here."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from perfemu.profile.places import Place
from perfemu.profile.profile import EventProfile
from perfemu.visible import visible

AROUND = 12  # lines shown before and after one with samples
_MOST_FILE_BYTES = 8 << 20
_MOST_CHARACTERS = 3_000_000  # of all files together, so that the page stays small
_MOST_COLUMNS = 300
# A recording names the files: what does not look like source is not put into a page that people pass on.
_SOURCE = re.compile(
    r"\.(c|cc|cpp|cxx|c\+\+|h|hh|hpp|hxx|h\+\+|inc|inl|ipp|tcc|tpp|def|s|asm|rs|go|f|for|f\d\d|d|zig|nim|swift|m|mm"
    r"|adb|ads|pas|java|kt|scala|cs|ml|mli|hs|jl|v|cu|cuh|y|l|yy|ll|py|pyx|js|ts|rb|lua|vala|cr)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """`counts`: by line, the periods of each event. `parts`: runs of lines, each with the number of its first."""

    path: str
    counts: dict[int, list[int]]
    parts: list[tuple[int, list[str]]]


def source_files(events: Sequence[EventProfile], symfs: str) -> list[SourceFile]:
    """Those in which samples of `events` lie, the heaviest for the first event first."""
    counts: dict[str, dict[int, list[int]]] = {}
    lines: dict[Place, tuple[str, int] | None] = {}
    for number, event in enumerate(events):
        for sample, weight in event.samples.items():
            place = sample.place
            if place not in lines:
                lines[place] = place.source()
            line = lines[place]
            if line is not None:
                of_line = counts.setdefault(line[0], {}).setdefault(line[1], [0] * len(events))
                of_line[number] += weight.period
    made = []
    left = _MOST_CHARACTERS
    for path in sorted(counts, key=lambda path: (_sums(counts[path].values()), path), reverse=True):
        parts = _parts(_text(path, symfs), counts[path])
        left -= sum(len(line) for _, shown in parts for line in shown)
        if left < 0:
            parts = []
        made.append(SourceFile(path, counts[path], parts))
    return made


def _sums(rows: Iterable[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]


def _text(path: str, symfs: str) -> list[str]:
    """A file's lines; none if it is not here, or is something else. Paths may be relative to the current directory."""
    if not _SOURCE.fullmatch(os.path.splitext(path)[1]):
        return []
    for place in [f"{symfs}/{path}", path] if symfs else [path]:
        try:
            found = os.stat(place)
            if stat.S_ISREG(found.st_mode) and found.st_size <= _MOST_FILE_BYTES:
                with open(place, encoding="utf-8", errors="replace") as file:
                    return file.read().split("\n")
        except (OSError, ValueError):
            continue
    return []


def _parts(text: list[str], wanted: Iterable[int]) -> list[tuple[int, list[str]]]:
    if not text:
        return []
    return [(first, [_shown(line) for line in text[first - 1 : last]]) for first, last in _ranges(wanted, len(text))]


def _ranges(wanted: Iterable[int], length: int) -> Iterator[tuple[int, int]]:
    """First and last lines, so that AROUND lines around each wanted one are within; of a file of `length` lines."""
    first = last = 0
    for line in sorted(line for line in wanted if line <= length):
        if last and line - AROUND <= last + 1:
            last = line + AROUND
            continue
        if last:
            yield first, min(last, length)
        first, last = max(line - AROUND, 1), line + AROUND
    if last:
        yield first, min(last, length)


def _shown(line: str) -> str:
    return visible(line.rstrip().expandtabs(8)[:_MOST_COLUMNS])
