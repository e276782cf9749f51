"""Place: where an address lies: file, offset, symbol."""

from __future__ import annotations

import os
from functools import cache

from perfemu.symbols.finder import SymbolisedFile
from perfemu.symbols.jit import JIT_MAP
from perfemu.symbols.table import Symbol
from perfemu.visible import visible

UNKNOWN = "[unknown]"


class Place:
    """One address of one process, resolved. Compared by identity; call trees merge places of equal `frame_key`."""

    __slots__ = ("address", "file", "frame_key", "in_kernel", "offset", "path", "symbol")

    def __init__(
        self, address: int, offset: int, path: str, path_number: int, file: SymbolisedFile | None, in_kernel: bool
    ) -> None:
        self.address = address  # virtual
        self.offset = offset  # in the file; the address itself where nothing is mapped
        self.path = path  # of the mapped file, as recorded; "" where nothing is mapped
        self.file = file
        self.in_kernel = in_kernel
        self.symbol: Symbol | None = None if file is None else file.table.find(offset)
        # Files count from 0 as they are first mapped, -1 is none; perf's dso pointers mostly ascend like that.
        self.frame_key: tuple[int, int] = (path_number, self.symbol.start if self.symbol else address)

    @property
    def file_name(self) -> str:
        """perf's "Shared Object": the last part of the path."""
        return short_name(self.path)

    @property
    def name(self) -> str:
        """The symbol, or the virtual address in hex: a line of a call tree."""
        if self.symbol:
            return self.symbol.shown
        return f"{self.address:#x}" if self.address else "0"  # as C's %#x

    @property
    def function_name(self) -> str:
        """The symbol; functions without a name are one for each file, as in stackcollapse-perf.pl: [libc.so.6]."""
        if self.symbol:
            return self.symbol.shown
        return self.file_name if self.file_name.startswith("[") else f"[{self.file_name}]"

    @property
    def elf_address(self) -> int:
        """As the file's own symbols and disassembly count; the virtual address where there is no file."""
        address = self.file.address_of(self.offset) if self.file else None
        return self.offset if address is None else address

    def source(self, *, called_from: bool = False) -> tuple[str, int] | None:
        """Path and line of the source. `called_from`: the place is a return address, and its call is asked for."""
        if self.file is None:
            return None
        return self.file.source(self.offset - (called_from and self.is_within_symbol))

    def function_source(self) -> tuple[str, int] | None:
        """Path and line of where the function begins."""
        return self.file.source(self.symbol.start, as_function=True) if self.file and self.symbol else None

    @property
    def is_within_symbol(self) -> bool:
        """Not its first instruction: what is before it belongs to the same function."""
        return self.symbol is not None and self.offset > self.symbol.start

    @property
    def level(self) -> str:
        """perf's letter for where the code ran."""
        return "k" if self.in_kernel else "."

    def source_line(self) -> str:
        """`file.c:12`; where there is no line, as perf does: symbol+offset or file[offset]."""
        line = self.file.line(self.offset) if self.file else None
        if line:
            return f"{visible(line[0])}:{line[1]}"
        if self.symbol:
            return f"{self.symbol.shown}+{self.offset - self.symbol.start}"
        return f"{self.file_name}[{self.offset:x}]"


@cache
def short_name(path: str) -> str:
    """What perf prints for a mapped file."""
    if not path:
        return UNKNOWN
    if jit := JIT_MAP.fullmatch(path):
        return f"[JIT] tid {jit[1]}"
    if path.startswith("["):
        return visible(path)
    return visible(os.path.basename(path))
