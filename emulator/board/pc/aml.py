"""AML: the little of ACPI's machine language that our tables need. ACPI Specification 6.4, chapter 20."""

from __future__ import annotations

import struct

_ZERO, _ONE, _BYTE, _WORD, _DWORD, _STRING = 0x00, 0x01, 0x0A, 0x0B, 0x0C, 0x0D
_NAME, _SCOPE, _BUFFER, _PACKAGE, _DEVICE = b"\x08", b"\x10", b"\x11", b"\x12", b"\x5b\x82"
_MOST_SHORT_LENGTH = 0x3F
_CONSUMER, _SHARED = 1 << 0, 1 << 3  # of an extended interrupt: level-triggered and active high without further bits


def integer(value: int) -> bytes:
    if value in (0, 1):
        return bytes((_ONE if value else _ZERO,))
    for prefix, layout in ((_BYTE, "<B"), (_WORD, "<H"), (_DWORD, "<I")):
        if value < 1 << 8 * struct.calcsize(layout):
            return bytes((prefix,)) + struct.pack(layout, value)
    raise ValueError(f"{value:#x} has more than 32 bits")


def string(text: str) -> bytes:
    return bytes((_STRING,)) + text.encode("ascii") + b"\0"


def name(segment: str, value: bytes) -> bytes:
    return _NAME + segment.encode("ascii") + value


def package(*elements: bytes) -> bytes:
    return _PACKAGE + _with_length(bytes((len(elements),)) + b"".join(elements))


def buffer(data: bytes) -> bytes:
    return _BUFFER + _with_length(integer(len(data)) + data)


def scope(path: str, *terms: bytes) -> bytes:
    return _SCOPE + _with_length(path.encode("ascii") + b"".join(terms))


def device(segment: str, *terms: bytes) -> bytes:
    return _DEVICE + _with_length(segment.encode("ascii") + b"".join(terms))


def resources(*descriptors: bytes) -> bytes:
    """A resource template; chapter 6.4."""
    return buffer(b"".join(descriptors) + b"\x79\0")


def memory(start: int, size: int) -> bytes:
    """A 32-bit fixed memory range, to read and write."""
    return struct.pack("<BHBII", 0x86, 9, 1, start, size)


def interrupt(number: int) -> bytes:
    """Level-triggered, active high, shared."""
    return struct.pack("<BHBBI", 0x89, 6, _CONSUMER | _SHARED, 1, number)


def _with_length(content: bytes) -> bytes:
    """PkgLength, which counts its own bytes, too."""
    if len(content) + 1 <= _MOST_SHORT_LENGTH:
        return bytes((len(content) + 1,)) + content
    for more in (1, 2, 3):
        length = len(content) + 1 + more
        if length < 1 << 4 + 8 * more:
            return bytes((more << 6 | length & 0xF,)) + (length >> 4).to_bytes(more, "little") + content
    raise ValueError(f"{len(content)} bytes are too many for a package")
