"""Pages: the pages of one address space that are present, and the frames behind them: zero, own, shared, of a file."""

from __future__ import annotations

from collections.abc import Callable

from emulator._native import AddressSpace, PhysicalMemory
from emulator.linux.mm.mapping import PAGE_SHIFT, PAGE_SIZE, WRITE, FileContent, Mapping
from emulator.linux.mm.page_cache import PageCache

FAULT_AROUND_PAGES = 16  # a read fault maps what the page cache holds of this aligned block (fault_around_bytes)


class Pages:
    """Brings in pages on demand. Knows frames; which mapping an address belongs to, others have found."""

    def __init__(self, space: AddressSpace, memory: PhysicalMemory, page_cache: PageCache, zero_frame: int) -> None:
        self._space = space
        self._memory = memory
        self._page_cache = page_cache
        self._zero_frame = zero_frame  # what every page shows that has been read and never written
        self.on_written: Callable[[int], None] | None = None  # a page that has just been cleared or copied

    def bring_in(self, mapping: Mapping, page: int, access: int) -> bool | None:
        """Make an access possible that `mapping` permits. Whether a file had to be read; None where nothing can be."""
        protection = mapping.page_protection
        entry = self._space.lookup(page)
        if entry is not None:
            self._upgrade(mapping, page, entry[0], access, protection)
        elif mapping.content is not None:
            index = (mapping.offset + page - mapping.start) >> PAGE_SHIFT
            if index << PAGE_SHIFT >= mapping.content.size():
                return None
            return self._map_file_page(mapping, mapping.content, page, index, access, protection)
        elif mapping.holder is not None:
            return None
        elif access == WRITE:
            self._map_new(page, protection)
        else:
            self._space.map(page, self._zero_frame, 1, protection & ~WRITE)
        return False

    def protect(self, mapping: Mapping) -> None:
        """Present pages get the new protection; a page that others share stays read-only until it is written."""
        count = mapping.length >> PAGE_SHIFT
        protection = mapping.page_protection
        if not protection & WRITE or mapping.holder is not None:
            self._space.protect(mapping.start, count, protection)
            return
        space, references = self._space, self._memory.references
        for page in space.present(mapping.start, count):
            entry = space.lookup(page)
            assert entry is not None
            exclusive = mapping.content is None or not mapping.shared
            writable = exclusive and references(entry[0]) == 1
            space.protect(page, 1, protection if writable else protection & ~WRITE)

    def _map_new(self, page: int, protection: int) -> None:
        """Map a fresh zeroed frame."""
        frame = self._page_cache.allocate()
        self._space.map(page, frame, 1, protection)
        self._memory.release(frame)  # the page table's reference stays
        if self.on_written is not None:
            self.on_written(page)

    def _upgrade(self, mapping: Mapping, page: int, frame: int, access: int, protection: int) -> None:
        """The page gives less access than the mapping: copy on write, or the first write to a shared page."""
        memory = self._memory
        if mapping.holder is not None:
            self._space.protect(page, 1, protection)
        elif mapping.shared and mapping.content is not None:
            if access == WRITE:
                self._mark_dirty(mapping, mapping.content, page)
            self._space.protect(page, 1, protection if access == WRITE else protection & ~WRITE)
        elif access != WRITE:
            exclusive = memory.references(frame) == 1
            self._space.protect(page, 1, protection if exclusive else protection & ~WRITE)
        elif memory.references(frame) == 1:
            self._space.protect(page, 1, protection)
        elif frame == self._zero_frame:
            self._map_new(page, protection)
        else:
            self._map_copy(page, frame, protection)

    def _map_copy(self, page: int, frame: int, protection: int) -> None:
        memory = self._memory
        memory.retain(frame)  # it may be a file's that nobody maps
        copy = self._page_cache.allocate()
        memory.view(copy)[:] = memory.view(frame)
        memory.release(frame)
        self._space.map(page, copy, 1, protection)
        memory.release(copy)
        if self.on_written is not None:
            self.on_written(page)

    def _mark_dirty(self, mapping: Mapping, content: FileContent, page: int) -> None:
        self._page_cache.file(content).dirty.add((mapping.offset + page - mapping.start) >> PAGE_SHIFT)

    def _map_file_page(
        self, mapping: Mapping, content: FileContent, page: int, index: int, access: int, protection: int
    ) -> bool:
        """Map page `index` of a file at `page`; whether it had to be read (a major fault)."""
        cached = self._page_cache.file(content)
        frame, major = self._page_cache.page(cached, index)
        if access != WRITE:
            self._map_around(mapping, cached.frames, page, index, protection & ~WRITE)
        elif mapping.shared:
            cached.dirty.add(index)
            self._space.map(page, frame, 1, protection)
        else:
            self._map_copy(page, frame, protection)
        return major

    def _map_around(self, mapping: Mapping, frames: dict[int, int], page: int, index: int, protection: int) -> None:
        """Map the page and its cached neighbours that are not yet mapped, in runs of consecutive frames."""
        block = FAULT_AROUND_PAGES << PAGE_SHIFT
        low = max(page & -block, mapping.start)
        high = min((page & -block) + block, mapping.end)
        space = self._space
        present = set(space.present(low, (high - low) >> PAGE_SHIFT))
        start = first = count = 0
        number = index - ((page - low) >> PAGE_SHIFT)
        for address in range(low, high, PAGE_SIZE):
            frame = None if address in present else frames.get(number)
            number += 1
            if frame is not None and count and frame == first + count:
                count += 1
                continue
            if count:
                space.map(start, first, count, protection)
                count = 0
            if frame is not None:
                start, first, count = address, frame, 1
        if count:
            space.map(start, first, count, protection)
