"""MappingList: a process's mappings in order of address. Knows ranges, not pages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from emulator.linux.errors import EEXIST, EINVAL, ENOMEM, EPERM, LinuxError
from emulator.linux.mm.mapping import (
    MAP_FIXED,
    MAP_FIXED_NOREPLACE,
    PAGE_SIZE,
    Holder,
    MappedFile,
    Mapping,
    page_up,
)

MAX_MAPPINGS = 65_530  # vm.max_map_count
STACK_GUARD_GAP = 256 << 12  # bytes kept free below a mapping that grows down (stack_guard_gap)


class MappingList:
    """Mappings that do not overlap, sorted. Lookups are O(log n)."""

    def __init__(self, bottom: int, top: int, limit: int) -> None:
        self._starts: list[int] = []
        self._mappings: list[Mapping] = []
        self._bottom = bottom  # automatic placement is in [bottom, top)
        self._top = top
        self._limit = limit  # ... and what is fixed below this
        self._uses: dict[tuple[MappedFile, Holder | None], int] = {}  # how many mappings show a file or device
        # Highest-fit search: no hole larger than _largest_hole lies in [_search_top, top).
        self._search_top = top
        self._largest_hole = 0

    def __iter__(self) -> Iterator[Mapping]:
        return iter(self._mappings)

    def __len__(self) -> int:
        return len(self._mappings)

    def find(self, address: int) -> Mapping | None:
        """The mapping that holds `address`."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        mapping = self._mappings[index]
        return mapping if address < mapping.end else None

    def above(self, address: int) -> Mapping | None:
        """The lowest mapping that ends above `address`."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0 and address < self._mappings[index].end:
            return self._mappings[index]
        return self._mappings[index + 1] if index + 1 < len(self._mappings) else None

    def below(self, address: int) -> Mapping | None:
        """The highest mapping that starts below `address`."""
        index = bisect_left(self._starts, address) - 1
        return self._mappings[index] if index >= 0 else None

    def overlapping(self, start: int, end: int) -> list[Mapping]:
        """All mappings that have a page in [start, end)."""
        first = bisect_right(self._starts, start) - 1
        if first < 0 or self._mappings[first].end <= start:
            first += 1
        return self._mappings[first : bisect_left(self._starts, end)]

    def would_split(self, start: int, end: int) -> int:
        """How many more mappings there are if [start, end) gets another fate than what surrounds it: 0, 1 or 2."""
        touched = self.overlapping(start, end)
        return (touched[0].start < start) + (touched[-1].end > end) if touched else 0

    def shows(self, file: MappedFile, holder: Holder | None) -> bool:
        """Whether any mapping is of this file, or of this opening of a device."""
        return (file, holder) in self._uses

    def count(self, file: MappedFile) -> int:
        """How many mappings show this file."""
        return self._uses.get((file, None), 0)

    def _count(self, mapping: Mapping, change: int) -> None:
        if mapping.file is None:
            return
        key = mapping.file, mapping.holder
        uses = self._uses.get(key, 0) + change
        if uses:
            self._uses[key] = uses
        else:
            del self._uses[key]

    def is_free(self, start: int, end: int) -> bool:
        following = self.above(start)
        return following is None or end <= _guarded_start(following)

    def insert(self, mapping: Mapping) -> Mapping:
        """Add `mapping`, whose range is free; joined with equal neighbours. Returns what it became part of."""
        index = bisect_left(self._starts, mapping.start)
        if index < len(self._mappings) and _joins(mapping, self._mappings[index]):
            self._count(self._mappings[index], -1)
            mapping = mapping.part(mapping.start, self._mappings[index].end)
            del self._starts[index], self._mappings[index]
        if index > 0 and _joins(self._mappings[index - 1], mapping):
            mapping = self._mappings[index - 1].part(self._mappings[index - 1].start, mapping.end)
            self._mappings[index - 1] = mapping
            return mapping
        self._count(mapping, 1)
        self._starts.insert(index, mapping.start)
        self._mappings.insert(index, mapping)
        return mapping

    def carve(self, start: int, end: int) -> list[Mapping]:
        """Take [start, end) out: what was mapped there, clipped to it. The parts outside stay. EINVAL: they cannot."""
        touched = self.overlapping(start, end)
        if not touched:
            return []
        for outer in (touched[0], touched[-1]):
            whole = start <= outer.start and outer.end <= end
            if not whole and outer.holder is not None and not outer.holder.may_be_split:
                raise LinuxError(EINVAL, f"the mapping at {outer.start:#x} cannot be split")
        first = bisect_left(self._starts, touched[0].start)
        keep: list[Mapping] = []
        if touched[0].start < start:
            keep.append(touched[0].part(touched[0].start, start))
        if touched[-1].end > end:
            keep.append(touched[-1].part(end, touched[-1].end))
        for mapping in touched:
            self._count(mapping, -1)
        for mapping in keep:
            self._count(mapping, 1)
        self._mappings[first : first + len(touched)] = keep
        self._starts[first : first + len(touched)] = [mapping.start for mapping in keep]
        self._note_hole(start)
        for index in {0, len(touched) - 1}:  # only the outer ones can reach beyond
            mapping = touched[index]
            if mapping.start < start or mapping.end > end:
                touched[index] = mapping.part(max(mapping.start, start), min(mapping.end, end))
        return touched

    def place(self, address: int, length: int, flags: int) -> int:
        """Where mmap with these flags puts `length` bytes."""
        if length == 0 or length > self._limit:
            raise LinuxError(ENOMEM, f"a mapping of {length} bytes")
        self.check_room()
        if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE):
            if address & (PAGE_SIZE - 1):
                raise LinuxError(EINVAL, f"MAP_FIXED address {address:#x} is not a multiple of {PAGE_SIZE}")
            if address > self._limit - length:
                raise LinuxError(ENOMEM, f"MAP_FIXED beyond the address space: {address:#x}")
            if address < self._bottom:
                raise LinuxError(EPERM, f"address {address:#x} is below mmap_min_addr {self._bottom:#x}")
            if flags & MAP_FIXED_NOREPLACE and self.overlapping(address, address + length):
                raise LinuxError(EEXIST, f"something is mapped in {address:#x}..{address + length:#x}")
            return address
        return self.choose(address, length)

    def check_room(self) -> None:
        """ENOMEM where there may be no more mappings."""
        if len(self) >= MAX_MAPPINGS:
            raise LinuxError(ENOMEM, f"{MAX_MAPPINGS} mappings: vm.max_map_count is reached")

    def choose(self, address: int, length: int) -> int:
        """A free range of `length` bytes: at the hint if that is free, else the highest that there is."""
        address = page_up(address)
        if address and self._bottom <= address <= self._limit - length and self.is_free(address, address + length):
            return address
        gap = self.find_gap(length)
        if gap is None:
            raise LinuxError(ENOMEM, f"no free range of {length} bytes")
        return gap

    def find_gap(self, length: int) -> int | None:
        """The highest free range of `length` bytes, as Linux' top-down search finds it; None when there is none."""
        if length <= self._largest_hole:
            self._search_top, self._largest_hole = self._top, 0
        top = self._search_top
        index = bisect_left(self._starts, top) - 1
        while top - length >= self._bottom:
            if index < 0:
                self._search_top = top
                return top - length
            mapping = self._mappings[index]
            hole = top - mapping.end
            if hole >= length:
                self._search_top = top
                return top - length
            self._largest_hole = max(self._largest_hole, hole)
            top = min(top, _guarded_start(mapping))
            index -= 1
        return None

    def _note_hole(self, address: int) -> None:
        """Space around `address` became free: the search must know the hole if it lies where it no longer looks."""
        following = self.above(address)
        hole_end = min(_guarded_start(following), self._top) if following is not None else self._top
        if hole_end <= self._search_top:
            return
        preceding = self.below(address)
        hole_start = preceding.end if preceding is not None else self._bottom
        self._largest_hole = max(self._largest_hole, hole_end - hole_start)


def _guarded_start(mapping: Mapping) -> int:
    return mapping.start - STACK_GUARD_GAP if mapping.grows_down else mapping.start


def _joins(left: Mapping, right: Mapping) -> bool:
    return (
        left.end == right.start
        and left.protection == right.protection
        and left.flags == right.flags
        and left.name == right.name
        and left.holder is None
        and right.holder is None
        and (left.may_write, left.may_execute) == (right.may_write, right.may_execute)
        and left.content is right.content
        and left.file == right.file
        and (left.file is None or left.offset + left.length == right.offset)
    )
