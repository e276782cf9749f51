"""The build id of an ELF file, as a PERF_RECORD_MMAP2 with attr.build_id has it. As lib/buildid.c.

It is looked for in the file's first page, where linkers put it.
"""

from __future__ import annotations

import struct

from emulator.linux.mm.mapping import PAGE_SIZE, FileContent

MOST_BYTES = 20  # BUILD_ID_SIZE_MAX
_HEADER = struct.Struct("<16sHHIQQQIHHH")  # Elf64_Ehdr up to e_phnum
_SEGMENT = struct.Struct("<IIQQQQ")  # Elf64_Phdr up to p_filesz
_NOTE = struct.Struct("<III")  # Elf64_Nhdr
_ELF64 = b"\x7fELF\x02"
_EXECUTABLE, _SHARED = 2, 3  # ET_*
_PT_NOTE, _NT_GNU_BUILD_ID = 4, 3


def build_id_of(content: FileContent | None) -> bytes:
    """Empty where there is none."""
    page = b"" if content is None else content.read_at(0, PAGE_SIZE)
    if len(page) < _HEADER.size:
        return b""
    ident, kind, _, _, _, table, _, _, _, entry_size, entries = _HEADER.unpack_from(page)
    if not ident.startswith(_ELF64) or kind not in (_EXECUTABLE, _SHARED) or entry_size < _SEGMENT.size:
        return b""
    for number in range(entries):
        at = table + number * entry_size
        if at + _SEGMENT.size > len(page):
            break
        segment, _, offset, _, _, size = _SEGMENT.unpack_from(page, at)
        found = _in_notes(page[offset : offset + size]) if segment == _PT_NOTE else b""
        if found:
            return found
    return b""


def _in_notes(notes: bytes) -> bytes:
    at = 0
    while at + _NOTE.size <= len(notes):
        name_size, size, kind = _NOTE.unpack_from(notes, at)
        name = at + _NOTE.size
        data = name + (name_size + 3 & -4)
        if kind == _NT_GNU_BUILD_ID and notes[name : name + name_size] == b"GNU\0" and 0 < size <= MOST_BYTES:
            return notes[data : data + size] if data + size <= len(notes) else b""
        at = data + (size + 3 & -4)
    return b""
