"""Types of probes' arguments: what stands in a record, and how readers print it. As fetch_type in trace_probe.c."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from perfcore.abi.tracepoints import LOCATION, Field


class FetchType(NamedTuple):
    """One type."""

    name: str
    field: str  # the C type in `format`
    size: int  # bytes of a number; of a string, of where it is
    print_format: str
    is_string: bool = False

    @property
    def is_signed(self) -> bool:
        return self.field.startswith("s")


def _number(letter: str, bits: int) -> FetchType:
    long = "L" if bits == 64 else ""
    text = {"u": f"%{long}u", "s": f"%{long}d", "x": f"0x%{long}x"}[letter]
    return FetchType(f"{letter}{bits}", f"{'u' if letter == 'x' else letter}{bits}", bits // 8, text)


FETCH_TYPES: Mapping[str, FetchType] = {
    type.name: type
    for type in (
        *(_number(letter, bits) for letter in "usx" for bits in (8, 16, 32, 64)),
        FetchType("char", "u8", 1, "'%c'"),
        FetchType("string", LOCATION, 4, '\\"%s\\"', is_string=True),
        FetchType("ustring", LOCATION, 4, '\\"%s\\"', is_string=True),
    )
}
DEFAULT = FETCH_TYPES["x64"]  # an unsigned long


class ProbeField(Field):
    """A field of a probe's record. It says of an array how long it is, and its type does not."""

    __slots__ = ()

    @property
    def declared(self) -> str:
        if not self.length:
            return f"{self.type} {self.name}"
        return f"{self.type}[{self.length}] {self.name}" if self.type == LOCATION else f"{self.type} {self.name}[]"

    @property
    def signed(self) -> bool:
        return self.type == LOCATION or self.type.startswith("s")
