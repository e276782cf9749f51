"""What 9P's messages are made of: intro(5) of Plan 9, and the kernel's include/net/9p/9p.h for the variant 9P2000.L."""

from __future__ import annotations

import os
import stat
import struct
from dataclasses import dataclass

HEAD = struct.Struct("<IBH")  # bytes of the whole message, kind, tag
STRING = struct.Struct("<H")  # bytes of what follows
QID = struct.Struct("<BIQ")
DIRECTORY, SYMLINK, FILE = 0x80, 0x02, 0x00  # kinds of qid


class BadMessage(Exception):
    """It is shorter than its kind."""


class Fields:
    """Reads a message's fields, one after the other."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self._at = at

    def numbers(self, layout: struct.Struct) -> tuple[int, ...]:
        """Raises BadMessage, as the others do."""
        try:
            found = layout.unpack_from(self._data, self._at)
        except struct.error:
            raise BadMessage(f"a message of {len(self._data)} bytes") from None
        self._at += layout.size
        return found

    def raw(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise BadMessage(f"a message of {len(self._data)} bytes")
        self._at += size
        return found

    def text(self) -> str:
        (size,) = self.numbers(STRING)
        return os.fsdecode(self.raw(size))


def text(value: str) -> bytes:
    data = os.fsencode(value)
    return STRING.pack(len(data)) + data


@dataclass(frozen=True, slots=True)
class Qid:
    """What a file is, and which: its number stays while the run lasts."""

    number: int
    mode: int

    @property
    def packed(self) -> bytes:
        kind = DIRECTORY if stat.S_ISDIR(self.mode) else SYMLINK if stat.S_ISLNK(self.mode) else FILE
        return QID.pack(kind, 0, self.number)
