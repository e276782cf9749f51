"""MappingList against an oracle that keeps one entry per page."""

from __future__ import annotations

import random

import pytest

from emulator.linux.mm.mapping import MAP_ANONYMOUS, MAP_GROWSDOWN, MAP_PRIVATE, PAGE_SIZE, MappedFile, Mapping
from emulator.linux.mm.mapping_list import STACK_GUARD_GAP, MappingList

ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS
BOTTOM, TOP = 0x10000, 0x10000 + 64 * PAGE_SIZE


def mapping(start: int, end: int, protection: int = 3, flags: int = ANONYMOUS, name: str = "") -> Mapping:
    return Mapping(BOTTOM + start * PAGE_SIZE, BOTTOM + end * PAGE_SIZE, protection, flags, name=name)


def ranges(mappings: MappingList) -> list[tuple[int, int]]:
    return [((m.start - BOTTOM) // PAGE_SIZE, (m.end - BOTTOM) // PAGE_SIZE) for m in mappings]


def test_equal_neighbours_become_one_mapping() -> None:
    mappings = MappingList(BOTTOM, TOP, TOP)
    mappings.insert(mapping(0, 2))
    mappings.insert(mapping(4, 6))
    assert ranges(mappings) == [(0, 2), (4, 6)]
    joined = mappings.insert(mapping(2, 4))
    assert ranges(mappings) == [(0, 6)]
    assert joined.length == 6 * PAGE_SIZE


def test_neighbours_that_differ_stay_apart() -> None:
    mappings = MappingList(BOTTOM, TOP, TOP)
    mappings.insert(mapping(0, 2))
    mappings.insert(mapping(2, 4, protection=1))
    mappings.insert(mapping(4, 6, protection=1, name="[heap]"))
    assert ranges(mappings) == [(0, 2), (2, 4), (4, 6)]


def test_pieces_of_a_file_join_only_where_the_file_goes_on() -> None:
    file = MappedFile("/lib/x", 8, 1, 42)
    mappings = MappingList(BOTTOM, TOP, TOP)
    first = Mapping(BOTTOM, BOTTOM + PAGE_SIZE, 1, MAP_PRIVATE, 0, file)
    mappings.insert(first)
    mappings.insert(Mapping(BOTTOM + PAGE_SIZE, BOTTOM + 2 * PAGE_SIZE, 1, MAP_PRIVATE, PAGE_SIZE, file))
    mappings.insert(Mapping(BOTTOM + 2 * PAGE_SIZE, BOTTOM + 3 * PAGE_SIZE, 1, MAP_PRIVATE, 5 * PAGE_SIZE, file))
    assert ranges(mappings) == [(0, 2), (2, 3)]


def test_carving_the_middle_keeps_the_ends_with_their_offsets() -> None:
    file = MappedFile("/lib/x", 8, 1, 42)
    mappings = MappingList(BOTTOM, TOP, TOP)
    mappings.insert(Mapping(BOTTOM, BOTTOM + 8 * PAGE_SIZE, 1, MAP_PRIVATE, 0x10000, file))
    (carved,) = mappings.carve(BOTTOM + 2 * PAGE_SIZE, BOTTOM + 5 * PAGE_SIZE)
    assert carved.offset == 0x10000 + 2 * PAGE_SIZE
    assert [m.offset for m in mappings] == [0x10000, 0x10000 + 5 * PAGE_SIZE]


def test_the_highest_gap_is_found() -> None:
    mappings = MappingList(BOTTOM, TOP, TOP)
    assert mappings.find_gap(PAGE_SIZE) == TOP - PAGE_SIZE
    mappings.insert(mapping(60, 64))
    mappings.insert(mapping(50, 58))
    assert mappings.find_gap(2 * PAGE_SIZE) == BOTTOM + 58 * PAGE_SIZE  # the hole of two pages
    assert mappings.find_gap(3 * PAGE_SIZE) == BOTTOM + 47 * PAGE_SIZE  # below both
    assert mappings.find_gap(51 * PAGE_SIZE) is None


def test_a_hole_that_opens_above_is_found_again() -> None:
    mappings = MappingList(BOTTOM, TOP, TOP)
    mappings.insert(mapping(20, 64))
    assert mappings.find_gap(4 * PAGE_SIZE) == BOTTOM + 16 * PAGE_SIZE  # the search has passed the high end
    mappings.carve(BOTTOM + 40 * PAGE_SIZE, BOTTOM + 44 * PAGE_SIZE)
    assert mappings.find_gap(4 * PAGE_SIZE) == BOTTOM + 40 * PAGE_SIZE


def test_a_gap_is_kept_below_what_grows_down() -> None:
    pages = STACK_GUARD_GAP // PAGE_SIZE
    top = BOTTOM + 2 * STACK_GUARD_GAP
    mappings = MappingList(BOTTOM, top, top)
    stack = Mapping(top - PAGE_SIZE, top, 3, ANONYMOUS | MAP_GROWSDOWN)
    mappings.insert(stack)
    assert mappings.find_gap(PAGE_SIZE) == stack.start - (pages + 1) * PAGE_SIZE
    assert not mappings.is_free(stack.start - PAGE_SIZE, stack.start)


@pytest.mark.parametrize("seed", range(5))
def test_random_operations_agree_with_one_entry_per_page(seed: int) -> None:
    generator = random.Random(seed)
    mappings = MappingList(BOTTOM, TOP, TOP)
    pages: dict[int, int] = {}
    for _ in range(400):
        start = generator.randrange(64)
        end = generator.randrange(start + 1, 65)
        if generator.random() < 0.5:
            mappings.carve(BOTTOM + start * PAGE_SIZE, BOTTOM + end * PAGE_SIZE)
            for page in range(start, end):
                pages.pop(page, None)
        else:
            protection = generator.randrange(4)
            length = generator.randrange(1, 6)
            gap = mappings.find_gap(length * PAGE_SIZE)
            free = [p for p in range(64 - length, -1, -1) if not any(q in pages for q in range(p, p + length))]
            assert gap == (BOTTOM + free[0] * PAGE_SIZE if free else None)
            if gap is not None:
                first = (gap - BOTTOM) // PAGE_SIZE
                mappings.insert(mapping(first, first + length, protection))
                pages.update(dict.fromkeys(range(first, first + length), protection))
        for page in range(64):
            found = mappings.find(BOTTOM + page * PAGE_SIZE + 5)
            assert (found.protection if found else None) == pages.get(page)
        starts = [m.start for m in mappings]
        assert starts == sorted(starts)


def test_a_thousand_mappings_are_made_and_unmade_in_time_that_does_not_grow() -> None:
    """Counted, not timed: every search must begin where the last ended, so the mappings it looks at stay few."""
    top = BOTTOM + 8192 * PAGE_SIZE
    mappings = MappingList(BOTTOM, top, top)
    looked_at = 0
    original = mappings._mappings

    class Counting(list[Mapping]):
        def __getitem__(self, index: object) -> object:  # type: ignore[override]
            nonlocal looked_at
            looked_at += 1
            return super().__getitem__(index)  # type: ignore[index]

    mappings._mappings = Counting(original)
    for number in range(1000):
        gap = mappings.find_gap(2 * PAGE_SIZE)
        assert gap is not None
        mappings.insert(Mapping(gap, gap + 2 * PAGE_SIZE, number % 2, ANONYMOUS))
    assert looked_at < 10 * 1000
