"""A kernel's memory as it sees it: by its own page tables in RAM. Only read; what cannot be read is Unreadable."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

_WORD = struct.Struct("<Q").unpack_from
_ENTRY_BYTES_SHIFT = 3
_VALID, _TABLE = 1, 2  # bits of a descriptor; at the last level a page has both
_OUTPUT = (1 << 48) - 1  # bits of an address in a descriptor
_MOST_LEVELS = 4


class Unreadable(Exception):
    """Memory that is not there, or makes no sense."""


class Ram:
    """By physical addresses."""

    def __init__(self, view: memoryview, base: int) -> None:
        self.view = view
        self.base = base

    def word(self, physical: int) -> int:
        at = physical - self.base
        if at < 0 or at + 8 > len(self.view):
            raise Unreadable(f"there is no RAM at {physical:#x}")
        return int(_WORD(self.view, at)[0])

    def read(self, physical: int, size: int) -> bytes:
        at = physical - self.base
        if at < 0 or at + size > len(self.view):
            raise Unreadable(f"there is no RAM at {physical:#x}")
        return bytes(self.view[at : at + size])


class Regime(NamedTuple):
    """What TCR_EL1 says of one half of the addresses: bits of a page's offset, and of an address."""

    page_shift: int
    bits: int

    @classmethod
    def of_kernel(cls, tcr: int) -> Regime:
        return cls({1: 14, 2: 12, 3: 16}.get(tcr >> 30 & 3, 12), 64 - (tcr >> 16 & 0x3F))

    @classmethod
    def of_user(cls, tcr: int) -> Regime:
        return cls({0: 12, 1: 16, 2: 14}.get(tcr >> 14 & 3, 12), 64 - (tcr & 0x3F))


@dataclass(frozen=True, slots=True)
class PageTables:
    """Arm ARM DDI 0487, "The VMSAv8-64 translation table format descriptors"."""

    ram: Ram
    root: int  # physical address
    regime: Regime

    def physical(self, address: int) -> int:
        """Raises Unreadable."""
        page_shift, bits = self.regime
        step = page_shift - _ENTRY_BYTES_SHIFT
        address &= (1 << bits) - 1
        levels = -(-(bits - page_shift) // step)
        if not 1 <= levels <= _MOST_LEVELS:
            raise Unreadable(f"tables for {bits} bits are not understood")
        table = self.root
        shift = page_shift + step * (levels - 1)
        word = self.ram.word
        while True:
            descriptor = word(table + (address >> shift << _ENTRY_BYTES_SHIFT))
            address &= (1 << shift) - 1
            output = descriptor & _OUTPUT
            if not descriptor & _VALID:
                raise Unreadable("a page that is not there")
            if shift == page_shift:
                return output >> shift << shift | address
            if not descriptor & _TABLE:
                return output >> shift << shift | address
            table = output >> page_shift << page_shift
            shift -= step

    def read(self, address: int, size: int) -> bytes:
        page = 1 << self.regime.page_shift
        data = b""
        while len(data) < size:
            here = address + len(data)
            data += self.ram.read(self.physical(here), min(size - len(data), page - here % page))
        return data

    def string(self, address: int, limit: int) -> bytes:
        """What comes before the first NUL; at most so many bytes."""
        page = 1 << self.regime.page_shift
        data = b""
        while len(data) < limit:
            here = address + len(data)
            piece = self.ram.read(self.physical(here), min(limit - len(data), page - here % page))
            end = piece.find(b"\0")
            if end >= 0:
                return data + piece[:end]
            data += piece
        return data
