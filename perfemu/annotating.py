"""annotating: what annotate does: functions with their instructions, and how often events were at each of them."""

from __future__ import annotations

import difflib
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from perfemu.annotation.disassembly import Instruction, instructions
from perfemu.errors import PerfemuError
from perfemu.events.attributes import is_exact
from perfemu.profile.places import short_name
from perfemu.profile.profile import EventProfile, Profile
from perfemu.symbols.finder import SymbolisedFile
from perfemu.symbols.table import Symbol

_MACHINE_AT = 18  # e_machine in an ELF header
Line = tuple[str, int]  # source file and line


@dataclass(frozen=True, slots=True)
class AnnotatedInstruction:
    """`counts` and `samples` are in the order of the function's events."""

    address: int  # in the file's own numbering
    raw: bytes
    text: str  # as it is disassembled
    line: Line | None
    counts: tuple[int, ...]  # periods: of exact events how often they happened here
    samples: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AnnotatedFunction:
    """A function of a file. The sums of its instructions are its own."""

    name: str
    path: str  # of the file, as recorded
    address: int
    events: tuple[str, ...]
    exact: tuple[bool, ...]  # by event: counts, and no samples
    instructions: tuple[AnnotatedInstruction, ...]
    totals: tuple[int, ...]  # of all of the file, by event
    total_samples: tuple[int, ...]

    @property
    def counts(self) -> dict[str, int]:
        """By event: the function's own."""
        return dict(zip(self.events, self._sums(each.counts for each in self.instructions), strict=True))

    @property
    def samples(self) -> dict[str, int]:
        return dict(zip(self.events, self._sums(each.samples for each in self.instructions), strict=True))

    @property
    def lines(self) -> dict[Line | None, dict[str, int]]:
        """Counts by event of each source line, in the order of their first instructions; None: of no line."""
        found: dict[Line | None, list[tuple[int, ...]]] = {}
        for each in self.instructions:
            found.setdefault(each.line, []).append(each.counts)
        return {line: dict(zip(self.events, self._sums(rows), strict=True)) for line, rows in found.items()}

    def _sums(self, rows: Iterable[tuple[int, ...]]) -> list[int]:
        return [sum(column) for column in zip(*rows, strict=True)] or [0] * len(self.events)


@dataclass(slots=True)
class SampledFunction:
    """A function in which samples are: by file offset, for each event its period and its samples."""

    symbol: Symbol
    file: SymbolisedFile
    path: str
    at: dict[int, list[list[int]]] = field(default_factory=dict)  # [periods, samples], each by event

    @property
    def name(self) -> str:
        return self.symbol.shown

    def weight(self) -> list[int]:
        """Its periods by event."""
        return [sum(column) for column in zip(*(periods for periods, _ in self.at.values()), strict=True)]


class SampledFunctions:
    """All functions with samples of `events`, the heaviest first; and what is in none."""

    def __init__(self, profile: Profile, events: Sequence[EventProfile]) -> None:
        self.profile = profile
        self.events = events
        self.unnamed = [0] * len(events)  # periods of what has no symbol
        self._files: dict[str, SymbolisedFile] = {}
        found: dict[tuple[str, int], SampledFunction] = {}
        for number, event in enumerate(events):
            for sample, weight in event.samples.items():
                place = sample.place
                if place.file is not None:
                    self._files[place.path] = place.file
                if place.symbol is None or place.file is None:
                    self.unnamed[number] += weight.period
                    continue
                key = (place.path, place.symbol.start)
                function = found.get(key)
                if function is None:
                    function = found[key] = SampledFunction(place.symbol, place.file, place.path)
                row = function.at.setdefault(place.offset, [[0] * len(events), [0] * len(events)])
                row[0][number] += weight.period
                row[1][number] += weight.samples
        self.functions = sorted(found.values(), key=lambda each: (each.weight(), each.name), reverse=True)

    def named(self, name: str, files: Iterable[str] = ()) -> list[SampledFunction]:
        """Those of this name, of all where it is empty, in `files` if there are. PerfemuError: there are none."""
        wanted = set(files)
        chosen = [each for each in self.functions if not wanted or wanted & {each.path, short_name(each.path)}]
        if wanted and not chosen:
            known = ", ".join(sorted({short_name(path) for path in self._files})) or "none"
            raise PerfemuError(f"no function of {', '.join(sorted(wanted))} has samples; there are files {known}")
        if not name:
            if not chosen:
                raise PerfemuError(self._why_none())
            return chosen
        matching = [each for each in chosen if name in (each.name, each.symbol.name)]
        if not matching:
            raise PerfemuError(self._why_not(name, chosen))
        return matching

    def _why_none(self) -> str:
        if not any(event.sample_count for event in self.events):
            return f"{self.profile.path} has no samples to annotate"
        without = ", ".join(sorted(path for path, file in self._files.items() if not len(file.table)))
        return f"{self.profile.path}: no sample is in a function that has a name; no symbols in {without or 'any file'}"

    def _why_not(self, name: str, chosen: Sequence[SampledFunction]) -> str:
        for path, file in self._files.items():
            if any(name in (symbol.name, symbol.shown) for symbol in file.table.symbols):
                return f"no sample is in {name} of {path}"
        if not chosen:
            return self._why_none()
        known = list(dict.fromkeys(each.name for each in chosen))
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known[:8])}"
        return f"no function '{name}' has samples; {hint}"

    def annotated(self, function: SampledFunction, syntax: str = "att") -> AnnotatedFunction:
        """PerfemuError where its code is not to be had."""
        file, symbol = function.file, function.symbol
        start = file.address_of(symbol.start)
        base = symbol.start if start is None else start
        machine, code = _code(function)
        table = file.table

        def name_of(address: int) -> str:
            near = table.find(address - base + symbol.start)
            if near is None:
                return ""
            within = address - base + symbol.start - near.start
            return near.shown + (f"+{within:#x}" if within else "")

        rows = list(instructions(code, base, machine, name_of, syntax))
        return AnnotatedFunction(
            function.name,
            function.path,
            base,
            tuple(event.name for event in self.events),
            tuple(is_exact(event.description.attr) for event in self.events),
            tuple(self._counted(function, rows, code, base)),
            tuple(event.period for event in self.events),
            tuple(event.sample_count for event in self.events),
        )

    def _counted(
        self, function: SampledFunction, rows: Sequence[Instruction], code: bytes, base: int
    ) -> Iterator[AnnotatedInstruction]:
        """Each with what is at it, and within it: nothing is lost."""
        count = len(self.events)
        periods = [[0] * count for _ in rows]
        samples = [[0] * count for _ in rows]
        starts = [row.address for row in rows]
        for offset, (of_period, of_samples) in function.at.items():
            index = bisect_right(starts, offset - function.symbol.start + base) - 1
            assert index >= 0, "a sample is in its function"
            for event in range(count):
                periods[index][event] += of_period[event]
                samples[index][event] += of_samples[event]
        for row, own, numbers in zip(rows, periods, samples, strict=True):
            at = row.address - base
            line = function.file.source(function.symbol.start + at)
            yield AnnotatedInstruction(
                row.address, code[at : at + row.size], row.text, line, tuple(own), tuple(numbers)
            )


def _code(function: SampledFunction) -> tuple[int, bytes]:
    """ELF machine and bytes."""
    place, symbol = function.file.code_path, function.symbol
    if not place:
        raise PerfemuError(f"{function.name}: the code of {function.path} was made at run time, and is not recorded")
    try:
        with open(place, "rb") as file:
            machine = int.from_bytes(os.pread(file.fileno(), 2, _MACHINE_AT), "little")
            code = os.pread(file.fileno(), symbol.end - symbol.start, symbol.start)
    except OSError as problem:
        raise PerfemuError(f"{place}: {problem.strerror}") from None
    if not code:
        raise PerfemuError(f"{place}: {function.name} at {symbol.start:#x} is behind the file's end")
    return machine, code
