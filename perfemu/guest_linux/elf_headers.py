"""The build id of an ELF file that lies in memory, as far as it was mapped."""

from __future__ import annotations

import struct
from collections.abc import Callable

_HEADER = struct.Struct("<4s5B7xHHIQQQIHHH")  # magic, class, ..., e_phoff, ..., e_phentsize, e_phnum
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")  # type, flags, offset, vaddr, paddr, filesz, memsz, align
_NOTE = struct.Struct("<III")  # name's bytes, contents' bytes, type
_PT_NOTE, _NT_GNU_BUILD_ID = 4, 3
_MOST_HEADERS, _MOST_NOTE_BYTES, _MOST_ID_BYTES = 64, 4096, 20

Read = Callable[[int, int], bytes]
"""(offset in the file, size) -> bytes. Raises Unreadable."""


def build_id_in_memory(read: Read) -> bytes:
    """Empty if it has none. Raises Unreadable where its headers are not in memory."""
    header = _HEADER.unpack(read(0, _HEADER.size))
    if header[0] != b"\x7fELF" or header[1] != 2:
        return b""
    at, size, count = header[10], header[-2], header[-1]
    if size != _PROGRAM_HEADER.size:
        return b""
    for index in range(min(count, _MOST_HEADERS)):
        kind, _, offset, _, _, length, _, _ = _PROGRAM_HEADER.unpack(read(at + index * size, size))
        if kind == _PT_NOTE and length <= _MOST_NOTE_BYTES:
            found = _of_notes(read(offset, length))
            if found:
                return found
    return b""


def _of_notes(notes: bytes) -> bytes:
    at = 0
    while at + _NOTE.size <= len(notes):
        name_bytes, content_bytes, kind = _NOTE.unpack_from(notes, at)
        name = at + _NOTE.size
        contents = name + (name_bytes + 3 & ~3)
        if kind == _NT_GNU_BUILD_ID and notes[name : name + name_bytes] == b"GNU\0":
            return notes[contents : contents + content_bytes][:_MOST_ID_BYTES]
        at = contents + (content_bytes + 3 & ~3)
    return b""
