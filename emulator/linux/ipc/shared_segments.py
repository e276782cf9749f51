"""Shared segments: memory that processes attach by an id (shmget(2)). A segment stays until it is removed and nobody
has it attached any more. Its pages live in the page cache, as those of all shared memory, and count toward --memory.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Protocol

from emulator.linux.ipc.ipc_objects import Objects, Permissions
from emulator.linux.mm.mapping import PAGE_SHIFT, MappedFile, page_up
from emulator.linux.mm.page_cache import PageCache
from emulator.linux.mm.shared_memory import SharedMemory

MOST_SEGMENTS = 4096  # SHMMNI
MOST_BYTES = (1 << 64) - 1 - (1 << 24)  # SHMMAX, SHMALL: no limit but the machine's memory
SHM_DEST, SHM_LOCKED = 0o1000, 0o2000  # in a segment's mode: to be removed, locked
STATUS = struct.Struct("<Q3q2IQ16x")  # struct shmid64_ds behind its permissions
INFO = struct.Struct("<i4x5Q")  # struct shm_info


@dataclass(slots=True, eq=False)
class Segment:
    """One piece of shared memory."""

    permissions: Permissions
    size: int  # bytes, as asked for
    creator_pid: int
    changed_s: int  # seconds since 1970, as all times of IPC objects
    id: int = -1
    memory: SharedMemory | None = None  # made when it is first attached: its name has the id
    attached_s: int = 0
    detached_s: int = 0
    last_pid: int = 0


class Attachments(Protocol):
    """Who has mapped what (a ``Kernel``)."""

    def mappings_of(self, file: MappedFile) -> int:
        """How many mappings of all processes show it."""


class SharedSegments(Objects[Segment]):
    """The segments of one machine."""

    heading = (
        "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid"
        "      atime      dtime      ctime                   rss                  swap\n"
    )

    def __init__(self, pages: PageCache, attachments: Attachments) -> None:
        super().__init__("segment", MOST_SEGMENTS)
        self._pages = pages
        self._attachments = attachments

    def memory(self, segment: Segment) -> SharedMemory:
        if segment.memory is None:
            name = f"/SYSV{segment.permissions.key & 0xFFFF_FFFF:08x} (deleted)"
            segment.memory = SharedMemory(MappedFile(name, 0, 1, segment.id), page_up(segment.size), is_kept=True)
        return segment.memory

    def by_memory(self, memory: object) -> Segment | None:
        return next((segment for segment in self if segment.memory is memory), None)

    def attached(self, segment: Segment) -> int:
        return self._attachments.mappings_of(segment.memory.identity) if segment.memory is not None else 0

    def destroy(self, segment: Segment) -> None:
        """IPC_RMID: it goes when nobody has it attached."""
        segment.permissions.mode |= SHM_DEST
        self.forget_key(segment)
        self.drop_unused()
        if segment.memory is not None:
            segment.memory.is_kept = False

    def drop_unused(self) -> None:
        """What is to be removed, and has been detached by the last one."""
        for segment in self:
            if segment.permissions.mode & SHM_DEST and not self.attached(segment):
                self.remove(segment)
                if segment.memory is not None:
                    self._pages.forget(segment.memory)

    def resident_pages(self, segment: Segment) -> int:
        return len(self._pages.file(segment.memory).frames) if segment.memory is not None else 0

    def status(self, segment: Segment) -> bytes:
        """struct shmid64_ds"""
        times = segment.attached_s, segment.detached_s, segment.changed_s
        return segment.permissions.pack() + STATUS.pack(
            segment.size, *times, segment.creator_pid, segment.last_pid, self.attached(segment)
        )

    def info(self) -> bytes:
        """struct shm_info"""
        total = sum(page_up(segment.size) >> PAGE_SHIFT for segment in self)
        return INFO.pack(len(self), total, sum(map(self.resident_pages, self)), 0, 0, 0)

    def text(self) -> str:
        self.drop_unused()
        return super().text()

    def _columns(self, thing: Segment) -> tuple[str, str]:
        resident = self.resident_pages(thing) << PAGE_SHIFT
        own = f"{thing.size:21} {thing.creator_pid:5} {thing.last_pid:5}  {self.attached(thing):5}"
        return own, f"{thing.attached_s:10} {thing.detached_s:10} {thing.changed_s:10} {resident:21} {0:21}"
