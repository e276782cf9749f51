"""trace_formats: the TRACING_DATA blob read back: what each tracepoint's raw data hold, and how to print them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfcore.perfdata.errors import Malformed

_START = b"\x17\x08\x44tracing"
_HEADERS = (b"header_page\0", b"header_event\0")
_FIELD = re.compile(
    r"\s*field(?: special)?:(?P<declared>[^;]+);\s*offset:(?P<offset>\d+);\s*size:(?P<size>\d+);"
    r"(?:\s*signed:(?P<signed>\d+);)?"
)
_DECLARED = re.compile(r"(?P<type>.+?)\s*\b(?P<name>\w+)\s*(?P<array>\[[^\]]*\])?$")
_LOCATIONS = ("__data_loc", "__rel_loc")


@dataclass(frozen=True, slots=True)
class TraceField:
    """One field of a tracepoint's raw data."""

    type: str  # as declared, without a location's word and brackets
    name: str
    offset: int  # bytes
    size: int
    signed: bool
    is_array: bool
    location: str = ""  # __data_loc or __rel_loc: the field says where the data are

    @property
    def element_size(self) -> int:
        """Of an array of C's basic types: from its name; else as of bytes."""
        return next((size for word, size in _ELEMENT_SIZES if word in self.type), 1 if self.is_array else self.size)


_ELEMENT_SIZES = (("long", 8), ("64", 8), ("32", 4), ("16", 2), ("short", 2), ("char", 1), ("8", 1), ("int", 4))


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """A tracepoint as tracefs describes it."""

    id: int
    name: str
    fields: dict[str, TraceField]  # in order, the common ones first
    print_format: str


class _Blob:
    """Reads from its start, never past its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise Malformed(f"{size} bytes wanted at {self._at:#x}, {len(self._data) - self._at} there")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def string(self) -> str:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise Malformed(f"the string at {self._at:#x} does not end")
        return self.take(end + 1 - self._at)[:-1].decode("utf-8", "replace")

    def sized(self) -> str:
        return self.take(self.number(8)).decode("utf-8", "replace")


def trace_formats(blob: bytes) -> dict[int, TraceFormat]:
    """The tracepoints of a TRACING_DATA blob by id (attr.config). Raises Malformed."""
    data = _Blob(blob)
    if data.take(len(_START)) != _START:
        raise Malformed("TRACING_DATA does not start with its magic")
    data.string()  # the version
    data.take(6)  # byte order, bytes of a long and of a page
    for word in _HEADERS:
        if data.take(len(word)) != word:
            raise Malformed(f"TRACING_DATA has no {word[:-1].decode()}")
        data.sized()
    texts = [data.sized() for _ in range(data.number(4))]  # ftrace's own
    for _ in range(data.number(4)):
        data.string()  # the system, which event names have, too
        texts += [data.sized() for _ in range(data.number(4))]
    return {made.id: made for made in map(_format, texts)}


def _format(text: str) -> TraceFormat:
    text, _, prints = text.partition("\nprint fmt: ")
    name, number = "", 0
    fields: dict[str, TraceField] = {}
    for line in text.split("\n"):
        key, _, value = line.partition(": ")
        if key == "name":
            name = value
        elif key == "ID" and value.isdecimal():
            number = int(value)
        elif found := _FIELD.match(line):
            field = _field(found)
            if field is not None:
                fields[field.name] = field
    return TraceFormat(number, name, fields, prints.strip())


def _field(found: re.Match[str]) -> TraceField | None:
    declared = found["declared"].strip()
    location = next((word for word in _LOCATIONS if declared.startswith(word)), "")
    declared = declared.removeprefix(location).strip()
    if location:
        declared = declared.replace("[]", " ")
    parts = _DECLARED.match(declared.strip())
    if parts is None:
        return None
    offset, size, signed = int(found["offset"]), int(found["size"]), found["signed"] == "1"
    is_array = bool(parts["array"] or location)
    return TraceField(parts["type"].strip(), parts["name"], offset, size, signed, is_array, location)
