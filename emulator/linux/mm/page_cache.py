"""PageCache: the pages of mapped files, in frames that all mappings of a file share. One per machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol
from weakref import WeakSet

from emulator._native import PhysicalMemory
from emulator.linux.mm.mapping import PAGE_SIZE, FileContent, MappedFile, page_up

PUNCH_BYTES = 1 << 20  # zeroes written at once
FLUSHED_PAGES = 256  # neighbours that go to their file at once
READAHEAD_PAGES = 32  # read at once, aligned: 128 KiB, Linux' default read_ahead_kb


class Maps(Protocol):
    """An address space (a ``MemoryMap``), as files see it."""

    def cut(self, file: MappedFile, offset: int) -> None:
        """The file ends before `offset` now: no page from there on is present, private copies neither."""


class CachedFile:
    """The pages of one file that are in memory, by page number."""

    __slots__ = ("content", "dirty", "frames", "maps", "sharers")

    def __init__(self, content: FileContent) -> None:
        self.content = content
        self.frames: dict[int, int] = {}
        self.dirty: set[int] = set()
        self.sharers = 0  # processes that have shared mappings of it
        self.maps: WeakSet[Maps] = WeakSet()  # whoever has ever mapped it


class PageCache:
    """File pages. A page comes from the host's file when it is first touched, and stays as long as there is memory.

    The cache starts empty, as after boot: the first touch of a page that no read-ahead brought in is a major fault.
    """

    def __init__(self, memory: PhysicalMemory) -> None:
        self._memory = memory
        self._files: dict[MappedFile, CachedFile] = {}
        self._last_inode = 0

    def new_inode(self) -> int:
        """For shared memory, which lives here and nowhere else."""
        self._last_inode += 1
        return self._last_inode

    def file(self, content: FileContent) -> CachedFile:
        cached = self._files.get(content.identity)
        if cached is None:
            cached = self._files[content.identity] = CachedFile(content)
        return cached

    def page(self, cached: CachedFile, page: int) -> tuple[int, bool]:
        """(frame, whether it had to be read). The page must lie inside the file's size, rounded up."""
        frame = cached.frames.get(page)
        if frame is not None:
            return frame, False
        self._read_ahead(cached, page)
        return cached.frames[page], True

    def _read_ahead(self, cached: CachedFile, page: int) -> None:
        first = page - page % READAHEAD_PAGES
        pages_in_file = max(-(-cached.content.size() // PAGE_SIZE), page + 1)
        last = min(first + READAHEAD_PAGES, pages_in_file)
        missing = [number for number in range(first, last) if number not in cached.frames]
        # the page that is wanted comes last, so that none of the others can push it out again
        for start, count in sorted(_runs(missing), key=lambda run: run[0] <= page < sum(run)):
            data = cached.content.read_at(start * PAGE_SIZE, count * PAGE_SIZE)
            for index, frame in enumerate(self._frames(count)):
                cached.frames[start + index] = frame
                piece = data[index * PAGE_SIZE : (index + 1) * PAGE_SIZE]
                self._memory.view(frame)[: len(piece)] = piece

    def _frames(self, count: int) -> Iterable[int]:
        """Frames for `count` pages: neighbours, as long as the machine has memory that nobody has had yet."""
        try:
            first = self._memory.allocate(count)
        except MemoryError:
            return [self.allocate() for _ in range(count)]
        return range(first, first + count)

    def allocate(self) -> int:
        """A zeroed frame. When there is none, file pages make room that nobody maps and that can be read again."""
        try:
            return self._memory.allocate()
        except MemoryError:
            if not self._reclaim():
                raise
            return self._memory.allocate()

    def reserve(self, count: int) -> bool:
        """Bytes of the machine's memory that files in memory take (negative: give back), or False: there is no room."""
        return self._memory.reserve(count) or (self._reclaim() and self._memory.reserve(count))

    def _reclaim(self) -> bool:
        """Free what can be freed; whether that was anything."""
        freed = False
        for cached in self._files.values():
            clean = (page for page in cached.frames if page not in cached.dirty)
            for page in [page for page in clean if self._memory.references(cached.frames[page]) == 1]:
                self._memory.release(cached.frames.pop(page))
                freed = True
        return freed

    def read(self, content: FileContent, offset: int, size: int) -> bytes:
        """Bytes of a file as mappings show it: for the loader, which reads headers as Linux does, through the cache."""
        size = max(0, min(size, content.size() - offset))
        if size == 0:
            return b""
        cached = self.file(content)
        first, last = offset // PAGE_SIZE, (offset + size - 1) // PAGE_SIZE
        data = b"".join(bytes(self._memory.view(self.page(cached, page)[0])) for page in range(first, last + 1))
        start = offset - first * PAGE_SIZE
        return data[start : start + size]

    def peek(self, content: FileContent, offset: int, size: int) -> bytes | None:
        """`size` bytes of one page as a mapping would show them, without bringing it in; None behind the file's end."""
        if offset // PAGE_SIZE * PAGE_SIZE >= content.size():
            return None
        cached = self._files.get(content.identity)
        page, start = divmod(offset, PAGE_SIZE)
        frame = None if cached is None else cached.frames.get(page)
        if frame is not None:
            return bytes(self._memory.view(frame)[start : start + size])
        return content.read_at(offset, size).ljust(size, b"\0")

    def written(self, identity: MappedFile, offset: int, data: bytes) -> None:
        """A file was written by write(2): mappings of it must show that. Pages not in memory need nothing."""
        cached = self._files.get(identity)
        if cached is None:
            return
        position = 0
        while position < len(data):
            page, start = divmod(offset + position, PAGE_SIZE)
            count = min(PAGE_SIZE - start, len(data) - position)
            frame = cached.frames.get(page)
            if frame is not None:
                self._memory.write(frame, start, data[position : position + count])
            position += count

    def truncated(self, identity: MappedFile, size: int) -> None:
        """A file was cut to `size` bytes: what mappings show behind is zero, also if it grows again."""
        cached = self._files.get(identity)
        if cached is None:
            return
        for page, frame in cached.frames.items():
            kept = max(0, size - page * PAGE_SIZE)
            if kept < PAGE_SIZE:
                self._memory.write(frame, kept, bytes(PAGE_SIZE - kept))
        for maps in cached.maps:
            maps.cut(identity, page_up(size))

    def punch(self, content: FileContent, offset: int, length: int) -> None:
        """A hole in a file that is mapped: zeroes, in its pages and on the disk, no further than its size."""
        end = min(offset + length, content.size())
        for start in range(offset, end, PUNCH_BYTES):
            zeroes = bytes(min(PUNCH_BYTES, end - start))
            content.write_at(start, zeroes)
            self.written(content.identity, start, zeroes)

    def flushing(self, cached: CachedFile, first: int = 0, count: int = 1 << 52) -> Iterator[int]:
        """Write dirty pages to the file, cut at its size, in parts: after each, how many pages it had.

        Whoever asks may look between them for what is due. Who unmaps the last of them clears `dirty`.
        """
        for start, length in _runs(sorted(page for page in cached.dirty if first <= page < first + count)):
            for page in range(start, start + length, FLUSHED_PAGES):
                if page not in cached.dirty:  # whoever has unmapped the last of them meanwhile has written it
                    return
                number = min(FLUSHED_PAGES, start + length - page)
                self._write_back(cached, page, number)
                yield number

    def _write_back(self, cached: CachedFile, first: int, count: int) -> None:
        pages = [bytes(self._memory.view(cached.frames[page])) for page in range(first, first + count)]
        offset = first * PAGE_SIZE
        data = b"".join(pages)[: max(0, cached.content.size() - offset)]
        while data:
            written = cached.content.write_at(offset, data)
            offset, data = offset + written, data[written:]

    def forget(self, content: FileContent) -> None:
        """Free the pages of a file that nobody can reach any more (shared anonymous memory)."""
        cached = self._files.pop(content.identity, None)
        if cached is not None:
            for frame in cached.frames.values():
                self._memory.release(frame)


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """(start, count) of the stretches of consecutive numbers."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and sum(runs[-1]) == number:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((number, 1))
    return runs
