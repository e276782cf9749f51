"""named: functions of a file by a name that somebody has typed: as in the symbol table, or as it is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from perfemu.symbols.demangle import demangle
from perfemu.symbols.table import Symbol


def functions_named(name: str, functions: Iterable[Symbol]) -> Iterator[Symbol]:
    """All of them: static functions may share a name."""
    words = re.findall(r"\w+", name)
    for symbol in functions:
        mangled = symbol.name[:2] in ("_Z", "_R") and bool(words) and words[-1] in symbol.name
        if symbol.name == name or (mangled and demangle(symbol.name) == name):
            yield symbol
