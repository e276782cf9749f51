"""protobuf: messages of Google's wire format, as far as pprof's profile has them: numbers, texts, messages.

(PyPI's protobuf would bring its C library and generated code, for less than this.)
"""

from __future__ import annotations

from collections.abc import Iterable

_VARINT, _LENGTH = 0, 2  # wire types
_MASK_64 = (1 << 64) - 1
_SINGLE_BYTES = [bytes([number]) for number in range(0x80)]


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; a negative number is an int64."""
    if 0 <= number < 0x80:
        return _SINGLE_BYTES[number]
    number &= _MASK_64
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


class Message:
    """Fields in the order in which they are added; those that are 0 or empty are left out, as proto3 does."""

    def __init__(self) -> None:
        self._encoded = bytearray()

    def number(self, field: int, value: int) -> Message:
        if value:
            self._encoded += varint(field << 3 | _VARINT) + varint(value)
        return self

    def numbers(self, field: int, values: Iterable[int]) -> Message:
        """A packed repeated field, whose zeros count."""
        if packed := b"".join(map(varint, values)):
            self._add(field, packed)
        return self

    def text(self, field: int, text: str) -> Message:
        """Also an empty one: the string table of a profile begins with it."""
        return self._add(field, text.encode("utf-8", "replace"))

    def message(self, field: int, message: Message) -> Message:
        return self._add(field, bytes(message))

    def _add(self, field: int, data: bytes) -> Message:
        self._encoded += varint(field << 3 | _LENGTH) + varint(len(data)) + data
        return self

    def __bytes__(self) -> bytes:
        return bytes(self._encoded)
