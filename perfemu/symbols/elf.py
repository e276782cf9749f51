"""ElfFile: what symbolisation needs of one ELF file: symbols, PLT names, segments, build id, debug link.

Section and program headers by pyelftools; the symbol tables themselves are unpacked in one go, because they are long.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, BinaryIO, NamedTuple

from elftools.elf.elffile import ELFFile

from perfemu.symbols.table import STB_GLOBAL, Symbol, SymbolTable, with_ends, without_aliases

_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym: name, info, other, shndx, value, size
_RELA = struct.Struct("<QQq")  # Elf64_Rela
_STT_NOTYPE, _STT_OBJECT, _STT_FUNC, _STT_GNU_IFUNC = 0, 1, 2, 10
_STV_INTERNAL, _STV_HIDDEN = 1, 2
_SHN_UNDEF, _SHN_LORESERVE, _SHN_XINDEX = 0, 0xFF00, 0xFFFF
_NT_GNU_BUILD_ID = 3


class ElfProblem(Exception):
    """The file is no ELF file that we can use; the text says why, without its name."""


@contextmanager
def damage_is_a_problem() -> Iterator[None]:
    """Around pyelftools, which raises nearly anything on a damaged file, assertions and attribute errors included."""
    try:
        yield
    except ElfProblem:
        raise
    except Exception as error:
        raise ElfProblem(f"not a usable ELF file: {str(error) or type(error).__name__}") from None


class Segment(NamedTuple):
    """A PT_LOAD program header."""

    address: int
    offset: int
    memory_size: int
    file_size: int


class _Plt(NamedTuple):
    """How a machine's procedure linkage table lies in .plt, in bytes; zeros: both are the section's sh_entsize."""

    header: int  # before the first entry
    entry: int


_PLT_OF_MACHINE = {"EM_AARCH64": _Plt(32, 16)}
_PLT_DEFAULT = _Plt(0, 0)
_MAPPING_SYMBOLS = frozenset("adtx")  # $x and its kind: where Arm code and data alternate


class ElfFile:
    """An open little-endian 64-bit ELF file. Raises ElfProblem, and OSError where there is no file."""

    def __init__(self, path: str, contents: bytes | None = None) -> None:
        """`contents`: of a file that is not on the disk."""
        self.path = path
        self._file: BinaryIO = open(path, "rb") if contents is None else BytesIO(contents)  # noqa: SIM115  # close()
        try:
            with damage_is_a_problem():
                self._read_headers()
        except ElfProblem:
            self._file.close()
            raise

    def _read_headers(self) -> None:
        self._size = self._file.seek(0, os.SEEK_END)  # bytes
        self._file.seek(0)
        self._elf = ELFFile(self._file)
        if self._elf.elfclass != 64 or not self._elf.little_endian:
            raise ElfProblem("not a 64-bit little-endian ELF file")
        self.machine: str = self._elf["e_machine"]
        self.segments = [
            Segment(header["p_vaddr"], header["p_offset"], header["p_memsz"], header["p_filesz"])
            for header in self._elf.iter_segments("PT_LOAD")
        ]
        self._sections: dict[str, Any] = {}
        self._section_names: list[str] = []
        for section in self._elf.iter_sections():
            self._sections.setdefault(section.name, section)
            self._section_names.append(section.name)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> ElfFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _data(self, section: Any) -> bytes:
        """A section's bytes; none where it has none in the file (.bss, or stripped into a debug file)."""
        if section["sh_type"] == "SHT_NOBITS" or section["sh_offset"] + section["sh_size"] > self._size:
            return b""
        self._file.seek(section["sh_offset"])
        return self._file.read(section["sh_size"])

    def _named_data(self, name: str) -> bytes:
        section = self._sections.get(name)
        if section is None:
            return b""
        with damage_is_a_problem():
            return self._data(section)

    @property
    def has_symtab(self) -> bool:
        section = self._sections.get(".symtab")
        return section is not None and section["sh_type"] == "SHT_SYMTAB" and section["sh_size"] > 0

    @property
    def has_lines(self) -> bool:
        return ".debug_line" in self._sections or ".zdebug_line" in self._sections

    def dwarf(self) -> Any:
        """pyelftools' DWARFInfo. Raises ElfProblem."""
        for name, section in self._sections.items():
            if section["sh_type"] != "SHT_NOBITS" and section["sh_offset"] + section["sh_size"] > self._size:
                raise ElfProblem(f"section {name} ends after the file")
        with damage_is_a_problem():
            return self._elf.get_dwarf_info(relocate_dwarf_sections=False)

    @property
    def build_id(self) -> bytes:
        """From .note.gnu.build-id; empty if there is none."""
        data = self._named_data(".note.gnu.build-id")
        if len(data) < 16:
            return b""
        name_size, size, kind = struct.unpack_from("<III", data)
        start = 12 + (name_size + 3 & ~3)
        return data[start : start + size] if kind == _NT_GNU_BUILD_ID else b""

    @property
    def debug_link(self) -> str:
        """The file name in .gnu_debuglink, or nothing."""
        return os.path.basename(self._named_data(".gnu_debuglink").split(b"\0", 1)[0].decode("utf-8", "replace"))

    def offset_of(self, address: int) -> int | None:
        """Address in the file's own numbering -> offset in the file."""
        for segment in self.segments:
            if segment.address <= address < segment.address + segment.memory_size:
                return address - segment.address + segment.offset
        return None

    def address_of(self, offset: int) -> int | None:
        """The way back, where the offset is in a segment."""
        for segment in self.segments:
            if segment.offset <= offset < segment.offset + segment.file_size:
                return offset - segment.offset + segment.address
        return None

    def symbol_table(self, runtime: ElfFile | None = None) -> SymbolTable:
        """Symbols from .symtab, or else .dynsym, and the PLT's.

        `runtime` is the file that was mapped, when this one is its debug file: it has the segments and the PLT.
        """
        mapped = runtime or self
        section = self._sections.get(".symtab") if self.has_symtab else self._sections.get(".dynsym")
        with damage_is_a_problem():
            symbols = [] if section is None else list(self._symbols(section, mapped))
            table = without_aliases(with_ends(symbols))
            if table:
                table += mapped.plt_symbols()
        return SymbolTable(table)

    def functions(self, runtime: ElfFile | None = None) -> list[Symbol]:
        """Functions by each of their names, from .symtab and .dynsym. `runtime` as for `symbol_table`."""
        found: dict[tuple[int, str], Symbol] = {}
        for name in (".symtab", ".dynsym"):
            section = self._sections.get(name)
            if section is None:
                continue
            with damage_is_a_problem():
                for symbol in self._symbols(section, runtime or self):
                    if not symbol.is_data:
                        found.setdefault((symbol.start, symbol.name), symbol)
        return list(found.values())

    def _string_table(self, section: Any) -> bytes:
        index = section["sh_link"]
        return self._data(self._elf.get_section(index)) if index < self._elf.num_sections() else b""

    def _symbols(self, section: Any, mapped: ElfFile) -> Iterator[Symbol]:
        data = self._data(section)
        strings = self._string_table(section)
        names = self._section_names
        text_or_data = [("text" in name or "data" in name) for name in names]
        is_arm = self.machine in ("EM_AARCH64", "EM_ARM")
        segments = mapped.segments
        end_of_string = strings.find
        for name_at, info, other, shndx, value, size in _SYMBOL.iter_unpack(data[: len(data) // 24 * 24]):
            if not name_at or shndx == _SHN_UNDEF or (shndx >= _SHN_LORESERVE and shndx != _SHN_XINDEX):
                continue
            kind = info & 15
            if kind == _STT_NOTYPE:
                if other & 3 in (_STV_HIDDEN, _STV_INTERNAL) or shndx >= len(names) or not text_or_data[shndx]:
                    continue
            elif kind not in (_STT_FUNC, _STT_OBJECT, _STT_GNU_IFUNC):
                continue
            name = strings[name_at : end_of_string(b"\0", name_at)].decode("utf-8", "replace")
            if is_arm and name[:1] == "$" and name[1:2] in _MAPPING_SYMBOLS and name[2:3] in ("", "."):
                continue
            for segment in segments:
                if segment.address <= value < segment.address + segment.file_size:  # not .bss: it has no offsets
                    start = value - segment.address + segment.offset
                    indirect = kind == _STT_GNU_IFUNC
                    yield Symbol(start, start + size, name, info >> 4, kind == _STT_OBJECT, indirect)
                    break

    def plt_symbols(self) -> list[Symbol]:
        """`name@plt` for each entry of .plt (.plt.sec where the linker made one), by the order of .rela.plt."""
        relocations, plt, dynamic = (self._sections.get(name) for name in (".rela.plt", ".plt", ".dynsym"))
        if relocations is None or plt is None or dynamic is None:
            return []
        if relocations["sh_link"] != self._section_names.index(".dynsym"):
            return []  # a static program's IRELATIVE relocations
        header, entry = self._plt_layout(plt)
        second = self._sections.get(".plt.sec")
        if second is not None:
            plt, header, entry = second, 0, second["sh_entsize"] or entry
        strings, symbols = self._string_table(dynamic), self._data(dynamic)
        data = self._data(relocations)
        offset = plt["sh_offset"] + header
        made = []
        for _, info, _ in _RELA.iter_unpack(data[: len(data) // _RELA.size * _RELA.size]):
            at = (info >> 32) * _SYMBOL.size
            name = b""
            if info >> 32 and at + _SYMBOL.size <= len(symbols):
                name_at = _SYMBOL.unpack_from(symbols, at)[0]
                name = strings[name_at : strings.find(b"\0", name_at)]
            made.append(Symbol(offset, offset + entry, name.decode("utf-8", "replace") + "@plt", STB_GLOBAL))
            offset += entry
        return made

    def _plt_layout(self, plt: Any) -> _Plt:
        layout = _PLT_OF_MACHINE.get(self.machine, _PLT_DEFAULT)
        size = plt["sh_entsize"] or 16
        return layout if layout.entry else _Plt(size, size)
