"""Which function an instruction belongs to, by the symbols, debug files and unwind tables of the mapped files."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from reference import FileMapping

NO_FILE = "no file"
FUNCTION_TYPES = ("STT_FUNC", "STT_GNU_IFUNC", "STT_LOOS")


class Functions:
    """The functions of an ELF file, by file offset.

    Names come from the file and from its debug file below `debug`, a file tree; a function that has none, but unwind
    information, goes by its address.
    """

    def __init__(self, path: Path, debug: Path) -> None:
        self._functions: list[tuple[int, int, str]] = []
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return
            elf = ELFFile(file)
            segments = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
            functions = _unwound(elf)
            if debug_file := _debug_file(elf, debug):
                with debug_file.open("rb") as separate:
                    functions |= _named(ELFFile(separate))
            functions |= _named(elf)
            for address, (size, name) in functions.items():
                for s in segments:
                    if s["p_vaddr"] <= address < s["p_vaddr"] + s["p_filesz"]:
                        self._functions.append((address - s["p_vaddr"] + s["p_offset"], size, name))
        self._functions.sort()

    def name_at_offset(self, offset: int) -> str:
        """The function's name, or "?"."""
        index = bisect_right(self._functions, (offset, 1 << 64, "")) - 1
        if index < 0:
            return "?"
        start, size, name = self._functions[index]
        return name if offset < start + max(size, 1) else "?"


@cache
def functions_of(path: Path, debug: Path) -> Functions:
    return Functions(path, debug)


def by_function(counts: Mapping[int, int], mappings: Iterable[FileMapping], debug: Path) -> Counter[str]:
    """Counts by `file:function`; what lies in no file, the kernel's signal trampoline, is NO_FILE."""
    ordered = sorted(mappings)
    starts = [start for start, *_ in ordered]
    functions: Counter[str] = Counter()
    for address, count in counts.items():
        start, end, offset, path = ordered[max(bisect_right(starts, address) - 1, 0)]
        if start <= address < end:
            name = functions_of(Path(path), debug).name_at_offset(address - start + offset)
            functions[f"{Path(path).name}:{name}"] += count
        else:
            functions[NO_FILE] += count
    return functions


def _named(elf: ELFFile) -> dict[int, tuple[int, str]]:
    """Address -> size and name. Of several names the first in the alphabet, without leading underscores if possible."""
    names: dict[int, tuple[int, str]] = {}
    for section in elf.iter_sections():
        if isinstance(section, SymbolTableSection):
            for symbol in section.iter_symbols():
                if symbol["st_info"]["type"] in FUNCTION_TYPES and symbol["st_shndx"] != "SHN_UNDEF":
                    found = symbol["st_size"], symbol.name
                    known = names.get(symbol["st_value"], found)
                    names[symbol["st_value"]] = min(found, known, key=lambda pair: (pair[1].startswith("_"), pair[1]))
    return names


def _unwound(elf: ELFFile) -> dict[int, tuple[int, str]]:
    """Address -> size and the address as a name, of what has unwind information."""
    if elf.get_section_by_name(".eh_frame") is None:
        return {}
    entries = elf.get_dwarf_info(relocate_dwarf_sections=False).EH_CFI_entries()
    headers = [entry.header for entry in entries if isinstance(entry, FDE)]
    return {h["initial_location"]: (h["address_range"], hex(h["initial_location"])) for h in headers}


def _debug_file(elf: ELFFile, debug: Path) -> Path | None:
    """What -dbg packages have: usr/lib/debug/.build-id/<first byte>/<the others>.debug."""
    note = elf.get_section_by_name(".note.gnu.build-id")
    if note is None:
        return None
    build_id = next(iter(note.iter_notes()))["n_desc"]
    file = debug / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    return file if file.exists() else None
