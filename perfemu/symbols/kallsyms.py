"""kallsyms: a kernel's symbols as lines of /proc/kallsyms or System.map: address in hex, type, name, maybe a module.

The lines may be a guest's: what makes no sense is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from perfemu.symbols.table import STB_GLOBAL, Symbol, SymbolTable, with_ends, without_aliases

KALLSYMS = "[kernel.kallsyms]"  # what records call the kernel's text
KALLSYMS_FILE = "/proc/kallsyms"
TEXT_SYMBOLS = ("_text", "_stext")  # by which readers find how far a kernel has been moved: the first that it has
MOST_BYTES = 64 << 20
_STB_LOCAL = 0
_CODE = "tTwW"  # types of symbols that perf takes for code


class KernelSymbol(NamedTuple):
    """One line."""

    address: int
    type: str  # nm's letter
    name: str


def parse_kallsyms(contents: bytes) -> Iterator[KernelSymbol]:
    """A symbol for each line that is one; symbols of modules, too."""
    for line in contents.decode("utf-8", "replace").splitlines():
        fields = line.split(None, 2)
        if len(fields) < 3 or len(fields[1]) != 1:
            continue
        try:
            address = int(fields[0], 16)
        except ValueError:
            continue
        if 0 <= address < 1 << 64:
            yield KernelSymbol(address, fields[1], fields[2].split("\t", 1)[0])


def addresses_by_name(contents: bytes) -> dict[str, int]:
    """Of several of one name the last one's."""
    return {symbol.name: symbol.address for symbol in parse_kallsyms(contents)}


def kallsyms_text(symbols: Iterable[KernelSymbol]) -> bytes:
    """The lines, by address."""
    return "".join(f"{address:016x} {kind} {name}\n" for address, kind, name in sorted(symbols)).encode()


def kallsyms_table(contents: bytes) -> SymbolTable:
    """Code, by address. Each symbol ends where the next begins."""
    symbols = [
        Symbol(address, address, name, STB_GLOBAL if kind.isupper() else _STB_LOCAL)
        for address, kind, name in parse_kallsyms(contents)
        if kind in _CODE and not name.startswith("$")
    ]
    return SymbolTable(with_ends(without_aliases(sorted(symbols, key=lambda symbol: symbol.start))))
