"""CheckpointFile: a saved board as a file: a description that is read at once, and RAM, which is mapped.

    MAGIC, how long the description is and its SHA-256
    the description: a line of JSON, then the native parts, one behind the other
    RAM, from the next page on: the stretches that are not zeroes

There are numbers and bytes in it, and nothing that is executed here. RAM is not part of the digest: it would have to be
read. A file appears whole, by a rename, and stays as it is, so that its length tells whether all is there.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from emulator._native import PAGE_SIZE, PhysicalMemory
from emulator.board.saved_board import SavedBoard

MAGIC = b"perfemu checkpoint 1\n"
HEAD = struct.Struct("<Q32s")
MOST_DESCRIPTION_BYTES = 1 << 30

Told = Sequence[tuple[str, str]]  # what the board has said until then: (kind, text), see perfemu.told


class Broken(Exception):
    """It is no checkpoint, or not a whole one, or another one's: says what is wrong."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What has been read. RAM is not: `map_ram`."""

    board: SavedBoard
    told: Told
    _stretches: Sequence[tuple[int, int]]  # (first frame, how many)
    _ram_at: int
    _descriptor: int

    def map_ram(self, memory: PhysicalMemory) -> None:
        """Into memory that is all zeroes. The file may be removed then. Raises Broken, or OSError."""
        at = self._ram_at
        for first, count in self._stretches:
            if first + count > memory.size_bytes // PAGE_SIZE:
                raise Broken("its RAM is nowhere")
            memory.map_file(self._descriptor, at, first, count)
            at += count * PAGE_SIZE


def write_checkpoint(descriptor: int, key: str, board: SavedBoard, told: Told, memory: PhysicalMemory) -> None:
    """Raises OSError."""
    native = [board.memory, *board.cores]
    stretches = _stretches(memory)
    says = {
        "key": key,
        "parts": board.parts,
        "told": told,
        "native": [len(each) for each in native],
        "stretches": stretches,
    }
    description = json.dumps(says, separators=(",", ":")).encode() + b"\n" + b"".join(native)
    head = MAGIC + HEAD.pack(len(description), hashlib.sha256(description).digest())
    _write(descriptor, head + description, 0)
    at = _behind(len(head) + len(description))
    for first, count in stretches:
        _write(descriptor, memory.view(first, count), at)
        at += count * PAGE_SIZE


def read_checkpoint(descriptor: int, key: str) -> Checkpoint:
    """As long as the descriptor is open its RAM can be mapped. Raises Broken, or OSError."""
    head = os.pread(descriptor, len(MAGIC) + HEAD.size, 0)
    if len(head) < len(MAGIC) + HEAD.size or not head.startswith(MAGIC):
        raise Broken("this is no checkpoint of this version")
    size, digest = HEAD.unpack(head[len(MAGIC) :])
    description = os.pread(descriptor, min(size, MOST_DESCRIPTION_BYTES), len(head))
    if len(description) != size or hashlib.sha256(description).digest() != digest:
        raise Broken("its description is not whole")
    try:
        found = _described(description, key, _behind(len(head) + size), descriptor)
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError):  # of JSON, whatever it says
        raise Broken("its description is none") from None
    frames = sum(count for _, count in found._stretches)
    if any(first < 0 or count < 1 for first, count in found._stretches):
        raise Broken("its RAM is nowhere")
    if os.fstat(descriptor).st_size != found._ram_at + frames * PAGE_SIZE:
        raise Broken("its RAM is not whole")
    return found


def _described(description: bytes, key: str, ram_at: int, descriptor: int) -> Checkpoint:
    line, _, native = description.partition(b"\n")
    says = json.loads(line)
    if says["key"] != key:
        raise Broken("it is of another machine")
    parts: list[bytes] = []
    for length in says["native"]:
        parts.append(native[:length])
        native = native[length:]
    board = SavedBoard(says["parts"], parts[0], tuple(parts[1:]))
    told = [(str(kind), str(text)) for kind, text in says["told"]]
    return Checkpoint(board, told, [(int(first), int(count)) for first, count in says["stretches"]], ram_at, descriptor)


def _stretches(memory: PhysicalMemory) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    first, count = memory.next_used(0)
    while count:
        found.append((first, count))
        first, count = memory.next_used(first + count)
    return found


def _behind(size: int) -> int:
    return -(-size // PAGE_SIZE) * PAGE_SIZE


def _write(descriptor: int, data: bytes | memoryview, at: int) -> None:
    rest = memoryview(data)
    while rest:
        done = os.pwrite(descriptor, rest, at)
        rest, at = rest[done:], at + done
