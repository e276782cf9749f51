"""Address filters: what --filter says behind an event that traces, as what PERF_EVENT_IOC_SET_FILTER takes: with
symbols resolved. As tools/perf/util/auxtrace.c; `man perf-record`, --filter."""

from __future__ import annotations

import os
import re

from perfcore.events.kstrtox import unsigned
from perfemu.errors import UsageError
from perfemu.symbols.elf import ElfFile, ElfProblem
from perfemu.symbols.table import STB_GLOBAL, Symbol, with_ends

_ACTIONS = {"filter": "filter", "start": "start", "stop": "stop", "tracestop": "stop"}
_RANGES = ("filter", "tracestop")  # which end where their symbol does
_PLACE = r"[^\s,/@#]+(?:\s*#\s*(?:\d+|[gG]))?"
_FILTER = re.compile(rf"[\s,]*(\w+)\s+({_PLACE})(?:\s*/\s*({_PLACE}))?(?:\s*@\s*([^\s,]+))?")
_ALL = "*"


def resolved(text: str) -> str:
    """The same with offsets of files alone. UsageError says what is wrong with it."""
    found: list[str] = []
    at = 0
    while text[at:].strip(" \t\n,"):
        match = _FILTER.match(text, at)
        if match is None:
            raise UsageError(
                f"--filter '{text}': '{text[at:].strip()}' is no address filter: filter|start|stop|tracestop "
                "START [/ SIZE] @ FILE"
            )
        found.append(_one(text, *match.groups()))
        at = match.end()
    if not found:
        raise UsageError(f"--filter '{text}': there is none in it")
    return ",".join(found)


def _one(text: str, action: str, start: str, size: str | None, path: str | None) -> str:
    if action not in _ACTIONS:
        raise UsageError(f"--filter '{text}': '{action}' is none of {', '.join(_ACTIONS)}")
    if path is None:
        raise UsageError(
            f"--filter '{text}': without @ FILE it is of the kernel, which is modelled, and has no addresses"
        )
    file = os.path.realpath(path)
    if not os.path.isfile(file):
        raise UsageError(f"--filter '{text}': {path} is not a file")
    functions = _Functions(text, path, file)
    is_range = action in _RANGES
    if start == _ALL:
        first, end = functions.all()
        is_range = True
    elif (offset := unsigned(start)) is not None:
        first, end = offset, offset
    else:
        symbol = functions.find(start)
        first, end = symbol.start, symbol.end if is_range else symbol.start
    if size is not None:
        length = unsigned(size)
        end = functions.find(size).end if length is None else first + length
    if end < first or (is_range and end == first):
        raise UsageError(f"--filter '{text}': {start} has no size, or ends before it begins: START / SIZE @ FILE")
    return f"{_ACTIONS[action]} {first:#x}/{end - first:#x}@{file}"


class _Functions:
    """Of one file, which is read when they are asked for."""

    def __init__(self, text: str, path: str, file: str) -> None:
        self._text, self._path, self._file = text, path, file

    def _read(self) -> list[Symbol]:
        try:
            with ElfFile(self._file) as elf:
                functions = with_ends(elf.functions())
        except ElfProblem as problem:
            raise UsageError(f"--filter '{self._text}': {self._path}: {problem}") from None
        if not functions:
            raise UsageError(f"--filter '{self._text}': {self._path} has no symbols: give it numbers")
        return functions

    def all(self) -> tuple[int, int]:
        """From the first one to the last."""
        functions = self._read()
        return functions[0].start, max(symbol.end for symbol in functions)

    def find(self, wanted: str) -> Symbol:
        """NAME, or NAME#n for the nth of that name, NAME#g for the global one."""
        name, _, which = (part.strip() for part in wanted.partition("#"))
        named = [symbol for symbol in self._read() if name in (symbol.name, symbol.shown)]
        if which in ("0", "g", "G"):
            named = [symbol for symbol in named if symbol.binding == STB_GLOBAL]
        elif which:
            named = named[int(which) - 1 : int(which)]
        if not named:
            raise UsageError(f"--filter '{self._text}': {self._path} has no function {wanted}")
        if len(named) > 1:
            places = ", ".join(f"{name}#{number} at {symbol.start:#x}" for number, symbol in enumerate(named, 1))
            raise UsageError(f"--filter '{self._text}': {self._path} has several of {name}: {places}")
        return named[0]
