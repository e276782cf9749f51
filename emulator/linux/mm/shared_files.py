"""SharedFiles: the files that one process maps, as the page cache must know of them."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.linux.mm.mapping import PAGE_SHIFT, FileContent, MappedFile, Mapping
from emulator.linux.mm.page_cache import Maps, PageCache
from emulator.linux.mm.shared_memory import SharedMemory


class SharedFiles:
    """Who may write a file's pages, and when they are written back."""

    def __init__(self, page_cache: PageCache) -> None:
        self._page_cache = page_cache
        self._contents: dict[MappedFile, FileContent] = {}  # that this process has shared mappings of

    def share(self, mapping: Mapping, maps: Maps) -> None:
        """`mapping` has come. The page cache counts who may write a file's pages, and knows who shows them."""
        if mapping.content is not None:
            self._page_cache.file(mapping.content).maps.add(maps)
        if mapping.shared and mapping.content is not None and mapping.file not in self._contents:
            assert mapping.file is not None, "what has content has a name"
            self._contents[mapping.file] = mapping.content
            self._page_cache.file(mapping.content).sharers += 1

    def unshare(self, file: MappedFile) -> None:
        """The last mapping of `file` in this process has gone."""
        content = self._contents.pop(file, None)
        if content is None:
            return
        cached = self._page_cache.file(content)
        cached.sharers -= 1
        if cached.sharers:
            return
        if isinstance(content, SharedMemory):
            if not content.is_kept:
                self._page_cache.forget(content)
        else:
            cached.dirty.clear()

    def flushing(self, piece: Mapping) -> Iterator[int]:
        """Bytes written through a shared mapping go to the file. Its pages may be written again, so they stay dirty."""
        if piece.content is not None and piece.shared:
            cached = self._page_cache.file(piece.content)
            if cached.dirty:
                yield from self._page_cache.flushing(cached, piece.offset >> PAGE_SHIFT, piece.length >> PAGE_SHIFT)
