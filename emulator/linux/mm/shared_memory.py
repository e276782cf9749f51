"""SharedMemory: memory that processes share, with no file behind it."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.linux.mm.mapping import MappedFile


@dataclass(slots=True, eq=False)
class SharedMemory:
    """What stands behind MAP_SHARED | MAP_ANONYMOUS, and behind a segment of shmget.

    Its pages are zero at first and live in the page cache.
    """

    identity: MappedFile
    length: int
    is_kept: bool = False  # also when nobody has mapped it: its owner frees the pages

    def size(self) -> int:
        return self.length

    def read_at(self, offset: int, size: int) -> bytes:
        return b""  # frames start zeroed

    def write_at(self, offset: int, data: bytes) -> int:
        return len(data)
