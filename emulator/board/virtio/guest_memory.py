"""GuestMemory: a guest's RAM as its devices reach it, by physical addresses. Nothing else can be reached."""

from __future__ import annotations

from emulator._native import PhysicalMemory

FRAME_SHIFT = 12
FRAME_BYTES = 1 << FRAME_SHIFT


class OutsideRam(Exception):
    """Says what does not lie there."""


class GuestMemory:
    """All frames of a board's RAM, the first at `base`."""

    def __init__(self, memory: PhysicalMemory, base: int) -> None:
        self._memory = memory
        self._base = base
        self._size = memory.size_bytes
        self._bytes = memory.view(0, self._size >> FRAME_SHIFT)
        self.moved_bytes = 0  # in all

    def check(self, address: int, size: int) -> int:
        """Where it lies, counted from RAM's beginning. Raises OutsideRam."""
        start = address - self._base
        if start < 0 or start + size > self._size:
            raise OutsideRam(f"{size} bytes at {address:#x} are not within RAM")
        return start

    def read(self, address: int, size: int) -> bytes:
        start = self.check(address, size)
        self.moved_bytes += size
        return bytes(self._bytes[start : start + size])

    def write(self, address: int, data: bytes | memoryview) -> None:
        """Frame by frame, so that every core hears of code that changes so."""
        start = self.check(address, len(data))
        self.moved_bytes += len(data)
        done = 0
        while done < len(data):
            frame, offset = divmod(start + done, FRAME_BYTES)
            piece = data[done : done + FRAME_BYTES - offset]
            self._memory.write(frame, offset, bytes(piece))
            done += len(piece)
