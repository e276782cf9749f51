"""Block: a disk. VIRTIO 1.2, "Block Device"."""

from __future__ import annotations

import struct
from typing import Protocol

from emulator.board.virtio.device import MOST_DESCRIPTORS, Answering
from emulator.board.virtio.queue import BrokenQueue, Chain

SECTOR_BYTES = 512
HEAD = struct.Struct("<I4xQ")  # of a request: type, sector
READ, WRITE, FLUSH, IDENTIFY = 0, 1, 4, 8
OK, FAILED, UNSUPPORTED = 0, 1, 2  # status
MOST_SEGMENTS, READ_ONLY, CAN_FLUSH = 1 << 2, 1 << 5, 1 << 9  # features
CONFIGURATION = struct.Struct("<QII")  # sectors, most bytes of a segment (not offered), most segments
IDENTIFIER_BYTES = 20


class Storage(Protocol):
    """What keeps a disk's bytes. Offsets and sizes are within it. OSError: it cannot."""

    size: int
    writable: bool

    def read(self, offset: int, size: int) -> bytes: ...

    def write(self, offset: int, data: bytes) -> None: ...


class Block(Answering):
    name, number = "virtio-blk", 2

    def __init__(self, storage: Storage, identifier: str) -> None:
        self._storage = storage
        self._identifier = identifier.encode()[:IDENTIFIER_BYTES].ljust(IDENTIFIER_BYTES, b"\0")
        self.features = MOST_SEGMENTS | CAN_FLUSH | (0 if storage.writable else READ_ONLY)
        self.configuration = CONFIGURATION.pack(storage.size // SECTOR_BYTES, 0, MOST_DESCRIPTORS - 2)

    def answer(self, number: int, chain: Chain) -> int:
        request, room = chain.read(), chain.room
        if len(request) < HEAD.size or not room:
            raise BrokenQueue(f"a request of {len(request)} bytes, with room for {room}")
        kind, sector = HEAD.unpack_from(request)
        try:
            status, found = self._done(kind, sector * SECTOR_BYTES, request[HEAD.size :], room - 1)
        except OSError:
            status, found = FAILED, b""
        return chain.write(found.ljust(room - 1, b"\0") + bytes((status,)))

    def _done(self, kind: int, offset: int, data: bytes, room: int) -> tuple[int, bytes]:
        storage = self._storage
        if kind == FLUSH:
            return OK, b""
        if kind == IDENTIFY:
            return OK, self._identifier[:room]
        size = room if kind == READ else len(data)
        if kind not in (READ, WRITE):
            return UNSUPPORTED, b""
        if offset + size > storage.size or size % SECTOR_BYTES or (kind == WRITE and not storage.writable):
            return FAILED, b""
        if kind == READ:
            return OK, storage.read(offset, size)
        storage.write(offset, data)
        return OK, b""
