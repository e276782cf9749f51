"""regions: a region by the names of functions: as places in the files that a program maps; what to say if it never came
there."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from emulator.linux.mm.mapping import MappedFile
from perfcore.events.kernel import Linux
from perfcore.events.regions import Entries, RegionCounts, Regions
from perfemu.errors import PerfemuError, UsageError
from perfemu.markers import MarkerRegion
from perfemu.namespace import Namespace
from perfemu.scope import Scope
from perfemu.symbols.demangle import demangle
from perfemu.symbols.elf import ElfFile, ElfProblem
from perfemu.symbols.finder import SymbolFinder
from perfemu.symbols.named import functions_named
from perfemu.symbols.table import Symbol

# Where a thread lands that has left functions without their returns.
_RETURNING_TWICE = frozenset({"setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp"})
_CATCHING = frozenset({"__cxa_begin_catch", "_Unwind_Resume"})
_MODULE = re.compile(r"([^:]+):(?!:)(.+)", re.DOTALL)
_NEAR = 3  # names


@dataclass(frozen=True, slots=True)
class SymbolRegion:
    """From each entry of one function to its return, or to an entry of another.

    Functions are named as in symbol tables or as they are shown, behind ``MODULE:`` if it matters in which file.
    """

    from_symbol: str
    to_symbol: str | None = None

    def __str__(self) -> str:
        return f"from {self.from_symbol}" + (f" to {self.to_symbol}" if self.to_symbol is not None else "")

    def watched(self, kernel: Linux, isa: str, space: Namespace) -> WatchedSymbolRegion:
        """Before the run."""
        in_files = SymbolRegionInFiles(self, space)
        regions = Regions(kernel, in_files.entries, to_entry=self.to_symbol is not None)
        return WatchedSymbolRegion(in_files, regions)


@dataclass(frozen=True, slots=True)
class WatchedSymbolRegion:
    """... of one run."""

    in_files: SymbolRegionInFiles
    within: Regions

    def remarks(self) -> Iterator[str]:
        """What the user should know of it."""
        return self.in_files.remarks(self.within.counts)

    def check(self) -> None:
        """PerfemuError if it was never reached, or its end was not."""
        self.in_files.check(self.within.counts)


def within(
    scope: Scope, from_symbol: str | None, to_symbol: str | None, marker: int | Literal["any"] | None = None
) -> Scope:
    """What --from-symbol and --to-symbol, or --marker, leave of it. Raises UsageError."""
    if from_symbol is None and to_symbol is not None:
        raise UsageError(f"--to-symbol {to_symbol}: a region begins with --from-symbol")
    if from_symbol is not None and marker is not None:
        raise UsageError("--from-symbol and --marker exclude each other")
    if from_symbol is None and marker is None:
        return scope
    if scope.cpus is not None:
        option = "--marker" if from_symbol is None else f"--from-symbol {from_symbol}"
        raise UsageError(f"{option}: regions are of the program's threads: not with -a or -C")
    if from_symbol is not None:
        return replace(scope, region=SymbolRegion(from_symbol, to_symbol))
    return replace(scope, region=MarkerRegion(None if marker == "any" else marker))


@dataclass(slots=True)
class _Function:
    """One end of a region, as its user has named it, and where that was found."""

    text: str
    module: str | None = field(init=False)
    name: str = field(init=False)
    places: list[str] = field(default_factory=list)
    indirect: str | None = None  # the file where the name is that of an IFUNC

    def __post_init__(self) -> None:
        match = _MODULE.fullmatch(self.text)
        self.module, self.name = (match[1], match[2]) if match else (None, self.text)

    def is_in(self, path: str) -> bool:
        """``MODULE`` is a path, or the name of a file."""
        return self.module in (None, path, os.path.basename(path))

    def find(self, path: str, functions: list[Symbol]) -> tuple[int, ...]:
        """Where it is in a file, by mangled or readable names."""
        if not self.is_in(path):
            return ()
        found: dict[int, None] = {}
        for symbol in functions_named(self.name, functions):
            if symbol.is_indirect:
                self.indirect = path
            else:
                found[symbol.start] = None
        self.places += [f"{os.path.basename(path)}:{self.name}"] * len(found)
        return tuple(found)


class SymbolRegionInFiles:
    """Finds a region's functions in each file that the program maps."""

    def __init__(self, region: SymbolRegion, space: Namespace) -> None:
        self._from = _Function(region.from_symbol)
        self._to = None if region.to_symbol is None else _Function(region.to_symbol)
        self._space = space
        self._finder = SymbolFinder(space.sysroot or "", lambda complaint: None)
        self._entries: dict[MappedFile, Entries] = {}
        self._names: dict[str, list[str]] = {}  # by file: of its functions

    def entries(self, file: MappedFile) -> Entries:
        """As ``perfcore.events.regions`` wants them."""
        known = self._entries.get(file)
        if known is None:
            known = self._entries[file] = self._find(file.path)
        return known

    def _find(self, path: str) -> Entries:
        functions = self._functions(path)
        self._names[path] = [symbol.name for symbol in functions]
        return Entries(
            self._from.find(path, functions),
            () if self._to is None else self._to.find(path, functions),
            tuple({symbol.start for symbol in functions if symbol.name in _RETURNING_TWICE}),
            tuple({symbol.start for symbol in functions if symbol.name in _CATCHING}),
        )

    def _functions(self, path: str) -> list[Symbol]:
        """None of a file that has no symbols, or is none of the host's."""
        try:
            with ElfFile(self._space.on_host(path) or path) as elf:
                return self._finder.functions(path, elf)
        except (OSError, ElfProblem):
            return []

    def remarks(self, counts: RegionCounts) -> Iterator[str]:
        """What the user should know of a region that was reached."""
        for end, function in self._ends():
            if len(function.places) > 1:
                several = ", ".join(sorted(function.places))
                yield f"region {end} {function.text}: {len(function.places)} functions: {several}"
        if counts.left:
            where = "it ended where the stack pointer told"
            yield f"region from {self._from.text}: left {counts.left} times by longjmp or an exception: {where}"

    def check(self, counts: RegionCounts) -> None:
        """PerfemuError for a region that was never reached, or whose end was not."""
        reached = {"from": counts.entered, "to": counts.ended_at_entry}
        for end, function in self._ends():
            if not reached[end]:
                raise PerfemuError(f"region {end} {function.text}: {self._why_not(function)}")

    def _ends(self) -> Iterator[tuple[str, _Function]]:
        yield "from", self._from
        if self._to is not None:
            yield "to", self._to

    def _why_not(self, function: _Function) -> str:
        if function is self._to and self._from.places and function.places:
            return f"never reached from {self._from.text}, so that the region did not end"
        if function.places:
            return f"never reached: the program does not call {', '.join(sorted(set(function.places)))}"
        if function.indirect is not None:
            return f"an IFUNC of {function.indirect}: name one of the functions that it chooses from"
        if not any(function.is_in(path) for path in self._names):
            there = ", ".join(sorted({os.path.basename(path) for path in self._names}))
            return f"the program has mapped no file {function.module}; there are {there}"
        names = {demangle(name) for path, names in self._names.items() if function.is_in(path) for name in names}
        if not names:
            return "the files that the program has mapped have no symbols"
        near = difflib.get_close_matches(function.name, names, _NEAR)
        hint = f"; near: {', '.join(near)}" if near else ""
        where = "no file that the program has mapped has" if function.module is None else f"{function.module} has not"
        return f"{where} such a function{hint}"
