"""A kernel's memory as it sees it: by its own page tables in RAM. Only read; what cannot be read is Unreadable."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

_WORD = struct.Struct("<Q").unpack_from
_ENTRY_BYTES_SHIFT = 3
_VALID = 1  # bit of a descriptor
_MOST_LEVELS = 5


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


class Descriptors(NamedTuple):
    """What an architecture's look like, besides bit 0: that something is there."""

    output: int  # bits of an address
    block_mask: int  # those bits of one before the last level ...
    block: int  # ... are these where it is no table, but as much memory as a table is of


class Regime(NamedTuple):
    """Of one range of addresses: bits of a page's offset, and of an address."""

    page_shift: int
    bits: int
    descriptors: Descriptors


@dataclass(frozen=True, slots=True)
class PageTables:
    """Of a size of page each, and as many levels as addresses need."""

    ram: Ram
    root: int  # physical address
    regime: Regime

    def physical(self, address: int) -> int:
        """Raises Unreadable."""
        page_shift, bits, (output_bits, block_mask, block) = self.regime
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
            output = descriptor & output_bits
            if not descriptor & _VALID:
                raise Unreadable("a page that is not there")
            if shift == page_shift:
                return output >> shift << shift | address
            if descriptor & block_mask == block:
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
