"""SourceLines: addresses to source file and line, from DWARF's line programs by pyelftools."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Any

from perfemu.symbols.elf import ElfFile, ElfProblem, damage_is_a_problem

_Row = tuple[int, str, int]  # address, path, line; line 0 ends a sequence


class SourceLines:
    """The line table of one file. A unit is decoded when an address in it is first asked for."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._dwarf: Any = None
        self._units: list[tuple[int, int, int]] = []  # start, end, offset of the unit in .debug_info
        self._rows: dict[int, tuple[list[int], list[_Row]]] = {}
        if path:
            try:
                with damage_is_a_problem():
                    self._open()
            except ElfProblem:
                self._units = []

    @classmethod
    def none(cls) -> SourceLines:
        """The table of a file without any."""
        return cls("")

    def _open(self) -> None:
        with ElfFile(self._path) as elf:
            if not elf.has_lines:
                return
            self._dwarf = elf.dwarf()  # a copy of the sections
        aranges = self._dwarf.get_aranges()
        covered = set()
        if aranges is not None:
            for entry in aranges.entries:
                self._units.append((entry.begin_addr, entry.begin_addr + entry.length, entry.info_offset))
                covered.add(entry.info_offset)
        for unit in self._dwarf.iter_CUs():
            if unit.cu_offset not in covered:
                rows = self._unit_rows(unit.cu_offset)[1]
                for row, following in pairwise(rows):
                    if row[2]:
                        self._units.append((row[0], following[0], unit.cu_offset))
        self._units.sort()

    def find(self, address: int, *, as_function: bool = False) -> tuple[str, int] | None:
        """(path as the compiler was told it, line) of the instruction at `address`, in the file's own numbering.

        With `as_function` of the function that begins there, whose first instruction may be of an inlined one.
        """
        index = bisect_right(self._units, (address, 1 << 64, 0)) - 1
        if index < 0 or address >= self._units[index][1]:
            return None
        try:
            with damage_is_a_problem():
                starts, rows = self._unit_rows(self._units[index][2])
        except ElfProblem:
            return None
        at = bisect_right(starts, address) - 1
        if as_function:
            first = bisect_left(starts, address)
            at = next((row for row in range(first, at) if rows[row][2]), at)
        if at < 0 or not rows[at][2]:
            return None
        return rows[at][1], rows[at][2]

    def _unit_rows(self, offset: int) -> tuple[list[int], list[_Row]]:
        known = self._rows.get(offset)
        if known is None:
            rows = self._decode(offset)
            known = self._rows[offset] = ([row[0] for row in rows], rows)
        return known

    def _decode(self, offset: int) -> list[_Row]:
        unit = self._dwarf.get_CU_at(offset)
        program = self._dwarf.line_program_for_CU(unit)
        if program is None:
            return []
        first = 0 if program.header["version"] >= 5 else 1
        names = _paths(unit, program.header)
        rows: list[_Row] = []
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            index = state.file - first
            name = names[index] if 0 <= index < len(names) else "?"
            rows.append((state.address, name, 0 if state.end_sequence else state.line))
        # Of rows with one address the last wins, and one that starts a sequence wins over one that ends another there.
        rows.sort(key=lambda row: (row[0], row[2] != 0))
        return rows


def _paths(unit: Any, header: Any) -> list[str]:
    """Of a unit's source files, below the directory in which it was compiled. That is DWARF 5's directory 0."""
    directories = [_text(name) for name in header["include_directory"]]
    if header["version"] < 5:
        told = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        directories.insert(0, _text(told.value) if told else "")
    paths = []
    for entry in header["file_entry"]:
        within = directories[entry.dir_index] if entry.dir_index < len(directories) else ""
        below = directories[0] if directories and entry.dir_index else ""
        paths.append(os.path.normpath(os.path.join(below, within, _text(entry.name))))
    return paths


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
