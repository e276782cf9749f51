"""SymbolFinder: (file, offset) to symbol and source line, for a recording's files; each is loaded when asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from perfemu.symbols.elf import ElfFile, ElfProblem
from perfemu.symbols.jit import JIT_MAP, JITDUMP, host_jit_map, jit_symbols
from perfemu.symbols.kallsyms import KALLSYMS, KALLSYMS_FILE, kallsyms_table
from perfemu.symbols.lines import SourceLines
from perfemu.symbols.table import Symbol, SymbolTable

Loaded = TypeVar("Loaded")

VDSO = "[vdso]"  # as the kernel calls it
DEBUG_DIRECTORY = "/usr/lib/debug"


@dataclass(slots=True)
class SymbolisedFile:
    """One mapped file: its symbols, and (through `lines`) its source lines."""

    path: str  # as the recording names it
    table: SymbolTable
    build_id: bytes = b""
    debug_path: str = ""  # the file that the symbols came from
    address_of: Callable[[int], int | None] = field(default=lambda offset: offset)
    code_path: str = ""  # the file that was mapped, where it is now
    _lines: SourceLines | None = None

    def line(self, offset: int) -> tuple[str, int] | None:
        """Source file, without its directories, and line of a file offset."""
        found = self.source(offset)
        return found and (os.path.basename(found[0]), found[1])

    def source(self, offset: int, *, as_function: bool = False) -> tuple[str, int] | None:
        """Source file, by the path that its compiler was told, and line of a file offset; or of a function there."""
        if self._lines is None:
            self._lines = SourceLines(self.debug_path) if self.debug_path else SourceLines.none()
        address = self.address_of(offset)
        return None if address is None else self._lines.find(address, as_function=as_function)


class SymbolFinder:
    """Looks names up below `symfs`. `complain` gets one line for each file that cannot be used.

    `known_build_ids` are the recording's: a file with another build id is not the one that ran, and has no symbols for
    us. `jit_files` are the recording's, too, by their paths; None for a recorder that does not keep them. `vdso` is the
    file whose content [vdso] is; "" if nobody knows.
    """

    def __init__(
        self,
        symfs: str = "",
        complain: Callable[[str], None] = lambda _: None,
        known_build_ids: dict[str, bytes] | None = None,
        jit_files: dict[str, bytes] | None = None,
        vdso: str = "",
    ) -> None:
        self._symfs = symfs
        self._complain = complain
        self._known_build_ids = known_build_ids or {}
        self._jit_files = jit_files
        self._vdso = vdso
        self._files: dict[str, SymbolisedFile] = {}

    def file(self, path: str) -> SymbolisedFile:
        """The file that the recording calls `path`; without symbols if it cannot be read."""
        found = self._files.get(path)
        if found is None:
            found = self._files[path] = self._load(path)
        return found

    def symbol(self, path: str, offset: int) -> Symbol | None:
        return self.file(path).table.find(offset)

    def _load(self, path: str) -> SymbolisedFile:
        nothing = SymbolisedFile(path, SymbolTable([]))
        if path == VDSO:
            return self._load_vdso() or nothing
        if path == KALLSYMS:
            return SymbolisedFile(path, kallsyms_table((self._jit_files or {}).get(KALLSYMS_FILE, b"")))
        if not path.startswith("/") or path.startswith("//"):
            return nothing  # [heap], //anon
        if jit_map := JIT_MAP.fullmatch(path):
            return SymbolisedFile(path, self._jit_table(path, int(jit_map[1])))
        place = self._symfs + path
        try:
            with ElfFile(place) as elf:
                expected = self._known_build_ids.get(path, b"")
                if any(expected) and elf.build_id and elf.build_id != expected:
                    self._complain(f"{place}: build id {elf.build_id.hex()} is not the recording's {expected.hex()}")
                    return nothing
                return self._load_from(path, elf)
        except OSError as error:
            self._complain(f"{place}: {error.strerror}, so its symbols are unknown")
        except ElfProblem as problem:
            self._complain(f"{place}: {problem}")
        return nothing

    def _load_vdso(self) -> SymbolisedFile | None:
        """A guest's own kernel's is in the recording."""
        kept = (self._jit_files or {}).get(VDSO)
        try:
            if kept is not None:
                with ElfFile(VDSO, kept) as elf:
                    return SymbolisedFile(VDSO, elf.symbol_table())
            if self._vdso:
                with ElfFile(self._vdso) as elf:
                    return SymbolisedFile(VDSO, elf.symbol_table(), code_path=self._vdso)
        except ElfProblem as problem:
            self._complain(f"{VDSO}: {problem}")
        return None

    def _jit_table(self, path: str, pid: int) -> SymbolTable:
        """Of the code that process `pid` has made: from the recording, or where perf looks for it."""
        if self._jit_files is None:
            contents, dumps = host_jit_map(path), []
        else:
            contents = self._jit_files.get(path)
            dumps = [data for name, data in self._jit_files.items() if JITDUMP.fullmatch(name)]
        table = jit_symbols(contents or b"", dumps, pid)
        if contents is None and not len(table):
            self._complain(f"{path} is not there, so the code that process {pid} made at run time has no names")
        return table

    def functions(self, path: str, elf: ElfFile) -> list[Symbol]:
        """By each of their names: of the file that the guest calls `path`, and of its debug file."""
        return elf.functions() + (self._from_debug_file(path, elf, lambda debug: debug.functions(runtime=elf)) or [])

    def _load_from(self, path: str, elf: ElfFile) -> SymbolisedFile:
        def load(debug: ElfFile) -> SymbolisedFile:
            table = debug.symbol_table(runtime=elf)
            return SymbolisedFile(path, table, elf.build_id, debug.path, elf.address_of, elf.path)

        from_debug_file = self._from_debug_file(path, elf, load)
        if from_debug_file is not None:
            return from_debug_file
        return SymbolisedFile(path, elf.symbol_table(), elf.build_id, elf.path, elf.address_of, elf.path)

    def _from_debug_file(self, path: str, elf: ElfFile, load: Callable[[ElfFile], Loaded]) -> Loaded | None:
        """What `load` makes of the first debug file that belongs to `elf`."""
        for candidate in self._debug_files(path, elf):
            try:
                with ElfFile(candidate) as debug:
                    if debug.has_symtab and (debug.build_id == elf.build_id or not debug.build_id):
                        return load(debug)
            except (OSError, ElfProblem):
                continue
        return None

    def _debug_files(self, path: str, elf: ElfFile) -> Iterator[str]:
        """Where a debug file may be, in perf's order; then below each directory above the file, as in a sysroot."""
        directory = os.path.dirname(path)
        link = elf.debug_link
        if link:
            for place in (directory, os.path.join(directory, ".debug"), DEBUG_DIRECTORY + directory):
                if self._symfs + place + "/" + link != elf.path:
                    yield f"{self._symfs}{place}/{link}"
        yield f"{self._symfs}{DEBUG_DIRECTORY}{path}.debug"
        yield f"{self._symfs}{DEBUG_DIRECTORY}{path}"
        name = elf.build_id.hex()
        if not name:
            return
        by_id = f"{DEBUG_DIRECTORY}/.build-id/{name[:2]}/{name[2:]}.debug"
        yield self._symfs + by_id
        if elf.has_symtab:
            return
        parent = os.path.dirname(elf.path)
        while parent not in ("/", ""):
            yield parent + by_id
            parent = os.path.dirname(parent)


def build_id_of(path: str) -> bytes:
    """An ELF file's build id; empty if it has none or is not readable."""
    try:
        with ElfFile(path) as elf:
            return elf.build_id
    except (OSError, ElfProblem):
        return b""
