"""Which function of a new build is which of the old one; and that differences add up, however they are matched."""

from __future__ import annotations

from collections import Counter

import pytest

from perfemu.comparing.difference import Difference
from perfemu.comparing.matching import matched_functions, matched_modules
from perfemu.comparing.measured import UNKNOWN, EventCounts, Function, Measured


def side(
    name: str, rows: dict[tuple[str, str], int], sizes: dict[str, int] | None = None, programs: str = ""
) -> Measured:
    functions = Counter({Function(*key): count for key, count in rows.items()})
    event = EventCounts("instructions", functions.total(), True, functions)
    known = {function: (sizes or {}).get(function.name, 0) for function in functions}
    return Measured(name, {"instructions": event}, sizes=known, programs=frozenset(programs.split()))


@pytest.mark.parametrize(
    ("old", "new", "old_size", "new_size", "matched"),
    [
        ("f.constprop.0", "f", 10, 20, True),  # clones
        ("f.isra.0", "f.constprop.1", 10, 20, True),
        ("f(int)", "f(long)", 10, 20, True),  # overloads
        ("parse_number", "parse_numbers", 10, 10, True),  # of one size, with names alike
        ("parse_number", "parse_numbers", 10, 12, False),
        ("parse_number", "print", 10, 10, False),
        ("parse_number", "parse_numbers", 0, 0, False),  # nobody knows
        (UNKNOWN, "f", 10, 10, False),
    ],
)
def test_names_that_changed(old: str, new: str, old_size: int, new_size: int, matched: bool) -> None:
    before, after = side("old", {("a", old): 5}, {old: old_size}), side("new", {("a", new): 7}, {new: new_size})
    pairs = matched_functions(before, after, {})
    assert pairs == ({Function("a", new): Function("a", old)} if matched else {})


def test_what_stands_on_both_sides_is_itself() -> None:
    before = side("old", {("a", "f"): 5, ("a", "g"): 1}, {"f": 10, "g": 10})
    after = side("new", {("a", "f"): 5, ("a", "f2"): 1}, {"f": 10, "f2": 10})
    assert Function("a", "f") not in matched_functions(before, after, {}).values()


def test_one_of_two_that_could_be_is_neither() -> None:
    before = side("old", {("a", "f(int)"): 5, ("a", "f(char)"): 1})
    after = side("new", {("a", "f(long)"): 5})
    assert matched_functions(before, after, {}) == {}


def test_modules_of_other_names() -> None:
    rows = {("libz.so.1.2.11", "inflate"): 1, ("old", "main"): 2, ("libc.so.6", "exit"): 1}
    before = side("old", rows, programs="old")
    after = side("new", {("libz.so.1.3", "inflate"): 1, ("new", "main"): 2, ("libc.so.6", "exit"): 1}, programs="new")
    assert matched_modules(before, after) == {"new": "old", "libz.so.1.3": "libz.so.1.2.11"}


def test_without_knowing_programs_the_only_others_are_one_if_they_share_a_function() -> None:
    one = side("one", {("a", "main"): 1})
    assert matched_modules(one, side("two", {("b", "main"): 1})) == {"b": "a"}
    assert matched_modules(one, side("two", {("b", "other"): 1})) == {}


def test_modules_and_functions_add_up_to_the_total() -> None:
    before = side(
        "old", {("old", "main"): 10, ("old", "f.isra.0"): 20, ("libm.so.6", UNKNOWN): 3, ("x", "x"): 9}, programs="old"
    )
    after = side(
        "new", {("new", "main"): 11, ("new", "f"): 25, ("libm.so.6", UNKNOWN): 4, ("y", "y"): 1}, programs="new"
    )
    (event,) = Difference.of(before, after).events
    assert event.total.difference == 41 - 42
    for rows in (event.modules, event.functions):
        assert sum(row.old or 0 for row in rows) == 42
        assert sum(row.new or 0 for row in rows) == 41
        assert sum(row.difference for row in rows) == -1
    changes = {row.name: (row.old, row.new, row.note) for row in event.functions}
    assert changes["f"] == (20, 25, "was f.isra.0")
    assert changes["x"] == (9, None, "gone")
    assert changes["y"] == (None, 1, "new")
    assert [abs(row.difference) for row in event.functions] == [9, 5, 1, 1, 1]
