"""SymbolTable: file offsets to symbols, with one name for each start, chosen as perf chooses."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from perfemu.symbols.demangle import demangle

STB_GLOBAL = 1
STB_WEAK = 2
_PAGE = 4096
_NESTING = 8  # how many symbols back an enclosing one is looked for


class Symbol(NamedTuple):
    """One symbol. `start` and `end` are offsets in the file, as perf has them; end is exclusive."""

    start: int
    end: int
    name: str  # as in the ELF, maybe mangled
    binding: int = STB_GLOBAL
    is_data: bool = False
    is_indirect: bool = False  # IFUNC: a function that says which one it is

    @property
    def shown(self) -> str:
        """The name for people."""
        return demangle(self.name)


class SymbolTable:
    """The symbols of one file, by start."""

    def __init__(self, symbols: Iterable[Symbol]) -> None:
        self.symbols = sorted(symbols, key=_start)
        self._starts = [symbol.start for symbol in self.symbols]

    def find(self, offset: int) -> Symbol | None:
        """The nearest symbol before `offset` that reaches over it."""
        index = bisect_right(self._starts, offset) - 1
        for near in range(index, max(index - _NESTING, -1), -1):
            candidate = self.symbols[near]
            if offset < candidate.end or offset == candidate.start:
                return candidate
        return None

    def __len__(self) -> int:
        return len(self.symbols)


def _start(symbol: Symbol) -> int:
    return symbol.start


def with_ends(symbols: Iterable[Symbol]) -> list[Symbol]:
    """Symbols without a size (assembly) end where the next begins; the last at the end of the page after its own."""
    ordered = sorted(symbols, key=_start)
    for index, symbol in enumerate(ordered):
        if symbol.end != symbol.start:
            continue
        if index + 1 < len(ordered):
            end = ordered[index + 1].start
        else:
            end = -(-symbol.start // _PAGE) * _PAGE + _PAGE
        ordered[index] = symbol._replace(end=end)
    return ordered


def without_aliases(ordered: list[Symbol]) -> list[Symbol]:
    """Of symbols with the same start, only the preferred one. Of equals, the one that comes first."""
    chosen: list[Symbol] = []
    for symbol in ordered:
        if chosen and chosen[-1].start == symbol.start:
            if _preference(symbol) > _preference(chosen[-1]):
                chosen[-1] = symbol
        else:
            chosen.append(symbol)
    return chosen


def _preference(symbol: Symbol) -> tuple[bool, bool, bool, int, int]:
    """perf's order, tools/perf/util/symbol.c: sized, not weak, global, fewer leading underscores, a longer name."""
    name = symbol.shown
    underscores = len(name) - len(name.lstrip("_"))
    sized = symbol.end > symbol.start
    return (sized, symbol.binding != STB_WEAK, symbol.binding == STB_GLOBAL, -underscores, len(name))
