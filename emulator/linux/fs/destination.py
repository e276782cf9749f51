"""Destinations: where a read puts what it finds. A file gives away no more than has arrived there.

linux/uio.h, struct iov_iter. What happens to the rest is the file's to know: a pipe keeps it, a datagram is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from emulator.linux.errors import EFAULT, LinuxError
from emulator.linux.mm.mm import MemoryMap

Piece = tuple[int, int]  # address and length of user memory


def check_range(mm: MemoryMap, address: int, size: int) -> None:
    """access_ok(): a call fails before it does anything where memory is given that cannot be a process's."""
    if address + size > mm.layout.task_size:
        raise LinuxError(EFAULT, f"{size} bytes at {address:#x} are not the process's")


class Destination:
    """Room for `left` bytes."""

    __slots__ = ("left",)
    left: int

    def put(self, data: bytes) -> int:
        """Behind what is there: how many bytes arrive. Fewer than were given where the reader may not write."""
        raise NotImplementedError

    def give(self, data: bytes) -> int:
        """As `put`; EFAULT where nothing arrives."""
        done = self.put(data)
        if not done and data:
            raise self.fault()
        return done

    def give_whole(self, data: bytes) -> int:
        """As `put`; EFAULT where anything is missing."""
        if self.put(data) < len(data):
            raise self.fault()
        return len(data)

    def fault(self) -> LinuxError:
        return LinuxError(EFAULT, f"{self}: the process may not write there")


class UserBuffer(Destination):
    """One piece of a process's memory."""

    __slots__ = ("_mm", "address")

    def __init__(self, mm: MemoryMap, address: int, size: int) -> None:
        self._mm = mm
        self.address = address
        self.left = size

    def put(self, data: bytes) -> int:
        if not data:
            return 0
        assert len(data) <= self.left, f"{len(data)} bytes; there is room for {self.left}"
        done = self._mm.copy_out(self.address, data)
        self.address += done
        self.left -= done
        return done

    def __str__(self) -> str:
        return f"{self.left} bytes at {self.address:#x}"


class UserVector(Destination):
    """Several pieces of a process's memory, one after the other (readv and the like)."""

    __slots__ = ("_mm", "_pieces")

    def __init__(self, mm: MemoryMap, pieces: Iterable[Piece]) -> None:
        self._mm = mm
        self._pieces = deque(UserBuffer(mm, base, length) for base, length in pieces)
        self.left = sum(piece.left for piece in self._pieces)

    def put(self, data: bytes) -> int:
        done = 0
        while done < len(data):
            piece = self._pieces[0]
            part = data[done : done + piece.left]
            count = piece.put(part)
            done += count
            if count < len(part):
                break
            if not piece.left:
                self._pieces.popleft()
        self.left -= done
        return done

    def __str__(self) -> str:
        return ", ".join(map(str, self._pieces))


class KernelBuffer(Destination):
    """The kernel's own memory: for what moves between files, and for the machine itself."""

    __slots__ = ("data",)

    def __init__(self, size: int) -> None:
        self.left = size
        self.data = b""

    def put(self, data: bytes) -> int:
        assert len(data) <= self.left, f"{len(data)} bytes; there is room for {self.left}"
        self.data = self.data + data if self.data else data
        self.left -= len(data)
        return len(data)

    def __str__(self) -> str:
        return f"{self.left} bytes of the kernel's"


def read_pieces(mm: MemoryMap, pieces: list[Piece]) -> bytes:
    """What of a process's memory comes before the first byte that cannot be read: often all of it."""
    try:
        return b"".join([mm.read(base, length) for base, length in pieces if length])
    except LinuxError:
        found = b""
        for base, length in pieces:
            part = mm.read_some(base, length)
            found += part
            if len(part) < length:
                break
        return found


def in_memory(mm: MemoryMap, pieces: list[Piece]) -> Destination:
    """Pieces of a process's memory."""
    return UserBuffer(mm, *pieces[0]) if len(pieces) == 1 else UserVector(mm, pieces)
