"""ByteQueue: bytes that wait in the order in which they came, in pieces of which each is read whole or stays.

A piece is what the kernel keeps together: a page of a pipe, a buffer of a socket (struct sk_buff). Borders are seen
only by a reader whose destination cannot take all.
"""

from __future__ import annotations

from bisect import bisect_right

from emulator.linux.fs.destination import Destination


class ByteQueue(bytearray):
    """The bytes that wait. Places are counted from the first byte that ever was in it."""

    __slots__ = ("_ends", "_start")

    def __init__(self) -> None:
        super().__init__()
        self._start = 0  # the place of the first byte
        self._ends: list[int] = []  # of the pieces

    def add(self, data: bytes, piece_bytes: int, joined: int = 0) -> None:
        """In pieces of `piece_bytes`, but for the first `joined` bytes, which make the last piece longer."""
        place = self._start + len(self)
        self += data
        end = place + len(data)
        if joined:
            place += joined
            self._ends[-1] = place
        if place < end:
            if place + piece_bytes < end:
                self._ends.extend(range(place + piece_bytes, end, piece_bytes))
            self._ends.append(end)

    def move(self, destination: Destination, *, peek: bool = False) -> int:
        """As many bytes as there is room for, or as arrive in whole pieces; EFAULT if not even one does."""
        wanted = min(destination.left, len(self))
        count = destination.put(bytes(self) if wanted == len(self) else bytes(memoryview(self)[:wanted]))
        if count < wanted:
            whole = bisect_right(self._ends, self._start + count)
            if not whole:
                raise destination.fault()
            count = self._ends[whole - 1] - self._start
        if not peek:
            self.drop(count)
        return count

    def drop(self, count: int) -> None:
        """The first bytes have been read."""
        self._start += count
        if count == len(self):
            self.clear()
            self._ends.clear()
        else:
            del self[:count]
            del self._ends[: bisect_right(self._ends, self._start)]

    def put_back(self, data: bytes) -> None:
        """What was read and found no place is the next to be read: a piece of its own."""
        self[:0] = data
        self._ends.insert(0, self._start)
        self._start -= len(data)
