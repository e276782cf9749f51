"""struct iovec: the pieces of a process's memory that a call moves, and in which portions."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from emulator.linux.errors import EINVAL, LinuxError
from emulator.linux.fs.destination import Piece, check_range
from emulator.linux.process.task import Task

MAX_BYTES = 0x7FFF_F000  # linux/fs.h MAX_RW_COUNT: what one call moves at most
MAX_VECTORS = 1024  # uapi/linux/uio.h UIO_MAXIOV
PORTION_BYTES = 4 << 20  # more than any pipe holds: a read of one is never two


def any_vectors(task: Task, address: int, count: int) -> list[Piece]:
    """struct iovec[count]: (address, length), cut where their sum reaches what one call moves."""
    if not 0 <= count <= MAX_VECTORS:
        raise LinuxError(EINVAL, f"{count} vectors; at most {MAX_VECTORS}")
    left = MAX_BYTES
    found = []
    for base, length in struct.iter_unpack("<QQ", task.mm.read(address, 16 * count)) if count else ():
        if length >> 63:
            raise LinuxError(EINVAL, f"a vector of {length} bytes")
        found.append((base, min(length, left)))
        left -= found[-1][1]
    return found


def vectors(task: Task, address: int, count: int) -> list[Piece]:
    """... of the caller's own memory. None where there are no bytes: then, unlike by read(2), no file is asked."""
    found = any_vectors(task, address, count)
    for base, length in found:
        check_range(task.mm, base, length)
    return found if any(length for _, length in found) else []


def portions(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """The same memory in parts of PORTION_BYTES, the last one shorter."""
    portion: list[Piece] = []
    room = PORTION_BYTES
    for base, length in pieces:
        while length > room:
            yield [*portion, (base, room)]
            base, length = base + room, length - room
            portion, room = [], PORTION_BYTES
        portion.append((base, length))
        room -= length
    if portion:
        yield portion
