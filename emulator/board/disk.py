"""Disk: a file of the host as a board's disk. What the guest writes stays in memory, unless the user said otherwise."""

from __future__ import annotations

import errno
import os
import stat

from emulator.board.virtio.block import SECTOR_BYTES

CLUSTER_BYTES = 4096  # that are kept once one of their bytes was written
MOST_WRITTEN_BYTES = 1 << 30  # kept in memory


class NoDisk(Exception):
    """The file cannot be one: says why."""


class Disk:
    """The file is opened once: whatever has its name later is another. Its size stays."""

    writable = True

    def __init__(self, path: str, *, keeps: bool, most_written_bytes: int = MOST_WRITTEN_BYTES) -> None:
        """`keeps`: what is written goes to the file. Raises NoDisk."""
        self._descriptor = -1
        self._keeps = keeps
        self._clusters: dict[int, bytearray] = {}
        self._most_clusters = most_written_bytes // CLUSTER_BYTES
        flags = os.O_RDWR if keeps else os.O_RDONLY
        try:
            self._descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
            status = os.fstat(self._descriptor)
        except OSError as problem:
            raise NoDisk(os.strerror(problem.errno or 0)) from None
        if not stat.S_ISREG(status.st_mode):
            raise NoDisk("is no regular file, which a disk would have to be")
        if not status.st_size or status.st_size % SECTOR_BYTES:
            raise NoDisk(f"has {status.st_size} bytes; a disk has sectors of {SECTOR_BYTES}")
        self.size = status.st_size

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def read(self, offset: int, size: int) -> bytes:
        data = bytearray(self._of_file(offset, size))
        if self._clusters:
            for number in range(offset // CLUSTER_BYTES, -(-(offset + size) // CLUSTER_BYTES)):
                cluster = self._clusters.get(number)
                if cluster is not None:
                    start = number * CLUSTER_BYTES
                    first, last = max(start, offset), min(start + CLUSTER_BYTES, offset + size)
                    data[first - offset : last - offset] = cluster[first - start : last - start]
        return bytes(data)

    def _of_file(self, offset: int, size: int) -> bytes:
        """What has been cut off meanwhile is zero."""
        parts = []
        while size and (part := os.pread(self._descriptor, size, offset)):
            parts.append(part)
            offset, size = offset + len(part), size - len(part)
        return b"".join(parts) + bytes(size)

    def write(self, offset: int, data: bytes) -> None:
        """OSError: no more is kept in memory, or the host's file system refuses."""
        if self._keeps:
            while data:
                written = os.pwrite(self._descriptor, data, offset)
                offset, data = offset + written, data[written:]
            return
        while data:
            number, within = divmod(offset, CLUSTER_BYTES)
            piece = data[: CLUSTER_BYTES - within]
            self._cluster(number)[within : within + len(piece)] = piece
            offset, data = offset + len(piece), data[len(piece) :]

    def _cluster(self, number: int) -> bytearray:
        cluster = self._clusters.get(number)
        if cluster is None:
            if len(self._clusters) >= self._most_clusters:
                raise OSError(errno.ENOSPC, "no more of what is written to a disk is kept in memory")
            cluster = self._clusters[number] = bytearray(self._of_file(number * CLUSTER_BYTES, CLUSTER_BYTES))
        return cluster
