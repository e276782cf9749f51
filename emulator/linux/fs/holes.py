"""Holes: where a file has nothing but zeroes, for SEEK_DATA, SEEK_HOLE and whoever copies.

A hole is an aligned block of zeroes, whether or not the host keeps room for it: what its file system does (sizes of
extents, holes that were lost when a file was copied) is not the guest's to see. Hosts only say where looking is vain.
"""

from __future__ import annotations

from typing import Protocol

from emulator.linux.fs.attributes import BLOCK_BYTES

LOOK_BYTES = 1 << 20  # at once
_HOLE = bytes(BLOCK_BYTES)


class Sparse(Protocol):
    """A file's bytes."""

    def size(self) -> int: ...
    def read_at(self, offset: int, size: int) -> bytes: ...
    def skip_hole(self, offset: int) -> int:
        """At or behind `offset`; all bytes from there to the answer are zero. The file's size if no others follow."""


def is_zero(data: bytes) -> bool:
    return not data[:1].strip(b"\0") and not data.strip(b"\0")


def next_data(file: Sparse, offset: int) -> int | None:
    """Where the first block begins that is no hole, or `offset` inside one; None if there is only a hole."""
    size = file.size()
    here = _block(offset)
    while (here := _block(file.skip_hole(here))) < size:
        data = file.read_at(here, LOOK_BYTES - here % LOOK_BYTES)
        zeroes = len(data) - len(data.lstrip(b"\0"))
        if zeroes < len(data):
            return max(offset, _block(here + zeroes))
        if here + len(data) >= size:
            return None
        here += len(data)
    return None


def next_hole(file: Sparse, offset: int) -> int:
    """Where the first hole begins, or `offset` inside one. Behind its end every file has one."""
    size = file.size()
    here, whole = _block(offset), _block(size)  # a last block that is not whole is data
    while here < whole:
        if file.skip_hole(here) >= here + BLOCK_BYTES:
            return max(offset, here)
        data = file.read_at(here, min(LOOK_BYTES, whole - here))
        if not data:
            return size
        at = _first_zero_block(data)
        if at is not None:
            return max(offset, here + at)
        here += len(data)
    return size


def _block(offset: int) -> int:
    return offset // BLOCK_BYTES * BLOCK_BYTES


def _first_zero_block(data: bytes) -> int | None:
    at = 0
    while (at := data.find(_HOLE, at)) >= 0:
        block = -(-at // BLOCK_BYTES) * BLOCK_BYTES
        if data.startswith(_HOLE, block):
            return block
        at = block
    return None
