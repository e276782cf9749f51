"""SyntheticElf: a 64-bit ELF file with the symbols that a test wants, and code that is all no-operations."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ADDRESS = 0x400000  # where the file is mapped if it is not position-independent
TEXT_OFFSET = 0x1000
TEXT_SIZE = 0x1000
NT_GNU_BUILD_ID = 3
_MACHINES = {  # e_machine, NOP, R_*_JUMP_SLOT
    "x86_64": (62, b"\x90", 7),
    "aarch64": (183, struct.pack("<I", 0xD503201F), 1026),
}
_SHT = {"PROGBITS": 1, "SYMTAB": 2, "STRTAB": 3, "RELA": 4, "NOTE": 7, "DYNSYM": 11}
FUNC, OBJECT, NOTYPE = 2, 1, 0
LOCAL, GLOBAL, WEAK = 0, 1, 2


@dataclass(frozen=True)
class ElfSymbol:
    """`offset` counts from the start of .text; section 0 is undefined, 1 is .text."""

    name: str
    offset: int
    size: int
    kind: int = FUNC
    binding: int = GLOBAL
    section: int = 1
    visibility: int = 0


def _strings(names: Sequence[str]) -> tuple[bytes, list[int]]:
    table, offsets = b"\0", []
    for name in names:
        offsets.append(len(table) if name else 0)
        table += name.encode() + b"\0"
    return table, offsets


def _symbols(symbols: Sequence[ElfSymbol], text: int) -> tuple[bytes, bytes]:
    strings, offsets = _strings([symbol.name for symbol in symbols])
    table = bytes(24)
    for symbol, name in zip(symbols, offsets, strict=True):
        value = symbol.offset + text if symbol.section else 0
        info = symbol.binding << 4 | symbol.kind
        table += struct.pack("<IBBHQQ", name, info, symbol.visibility, symbol.section, value, symbol.size)
    return table, strings


def synthetic_elf(
    path: Path,
    symbols: Sequence[ElfSymbol] = (),
    architecture: str = "x86_64",
    dynamic_symbols: Sequence[ElfSymbol] = (),
    plt: Sequence[int] = (),
    plt_offset: int = 0x800,
    build_id: bytes = b"",
    pie: bool = False,
) -> Path:
    """Write it. `plt` are numbers of dynamic symbols, in the order of .rela.plt; .plt lies at `plt_offset` in .text."""
    machine, nop, jump_slot = _MACHINES[architecture]
    base = 0 if pie else ADDRESS
    text = base + TEXT_OFFSET
    sections: list[tuple[str, int, bytes, int, int]] = []  # name, type, data, link, entry size
    sections.append((".text", _SHT["PROGBITS"], nop * (TEXT_SIZE // len(nop)), 0, 0))
    if symbols:
        table, strings = _symbols(symbols, text)
        sections.append((".symtab", _SHT["SYMTAB"], table, len(sections) + 2, 24))
        sections.append((".strtab", _SHT["STRTAB"], strings, 0, 0))
    if dynamic_symbols:
        table, strings = _symbols(dynamic_symbols, text)
        dynsym = len(sections) + 1
        sections.append((".dynsym", _SHT["DYNSYM"], table, dynsym + 1, 24))
        sections.append((".dynstr", _SHT["STRTAB"], strings, 0, 0))
        relocations = b"".join(struct.pack("<QQq", 0, number << 32 | jump_slot, 0) for number in plt)
        if plt:
            sections.append((".rela.plt", _SHT["RELA"], relocations, dynsym, 24))
            sections.append((".plt", _SHT["PROGBITS"], b"", 0, 16))
    if build_id:
        note = struct.pack("<III", 4, len(build_id), NT_GNU_BUILD_ID) + b"GNU\0" + build_id
        sections.append((".note.gnu.build-id", _SHT["NOTE"], note, 0, 0))
    names, name_offsets = _strings([section[0] for section in sections] + [".shstrtab"])
    sections.append((".shstrtab", _SHT["STRTAB"], names, 0, 0))

    body, headers = b"", bytes(64)
    for (name, kind, data, link, entry), name_at in zip(sections, name_offsets, strict=True):
        offset = TEXT_OFFSET + len(body)
        address, flags, size = 0, 0, len(data)
        if name == ".text":
            address, flags = text, 6
        elif name == ".plt":
            offset, address, flags, size = TEXT_OFFSET + plt_offset, text + plt_offset, 6, 16 * (len(plt) + 2)
        headers += struct.pack("<IIQQQQIIQQ", name_at, kind, flags, address, offset, size, link, 0, 1, entry)
        body += data + bytes(-len(data) % 8)
    segment = struct.pack("<IIQQQQQQ", 1, 5, TEXT_OFFSET, text, text, TEXT_SIZE, TEXT_SIZE, 0x1000)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    elf_type = 3 if pie else 2
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH",
        elf_type,
        machine,
        1,
        text,
        64,
        TEXT_OFFSET + len(body),
        0,
        64,
        56,
        1,
        64,
        len(sections) + 1,
        len(sections),
    )
    path.write_bytes((header + segment).ljust(TEXT_OFFSET, b"\0") + body + headers)
    return path
