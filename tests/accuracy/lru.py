"""Caches as simply as they can be written: LRU, lines of 64 bytes, two levels. The oracle for others."""

from __future__ import annotations

from collections.abc import Iterable

LINE_BYTES = 64
Shape = tuple[int, int]  # bytes, ways


class Cache:
    """Sets of lines, each in the order of use."""

    def __init__(self, shape: Shape) -> None:
        size, ways = shape
        self.ways = ways
        self.sets: list[list[int]] = [[] for _ in range(size // ways // LINE_BYTES)]

    def misses(self, line: int) -> bool:
        """Use the line; whether it had to be brought in."""
        lines = self.sets[line % len(self.sets)]
        if line in lines:
            lines.remove(line)
            lines.append(line)
            return False
        lines.append(line)
        if len(lines) > self.ways:
            del lines[0]
        return True


NAMES = {"I": ("Ir", "I1mr", "ILmr"), "L": ("Dr", "D1mr", "DLmr"), "S": ("Dw", "D1mw", "DLmw")}
Reference = tuple[str, int, int]  # I, L, S or M (loads, then stores: one reference), address, size in bytes


def count(trace: Iterable[Reference], i1: Shape, d1: Shape, ll: Shape, by_line: bool) -> dict[str, int]:
    """Cachegrind's totals of a trace.

    Its definition (cachegrind/cg_sim.c): a reference that crosses lines misses once, whether one of them is missing or
    both are, and then uses both in LL. `by_line`: each line counts by itself, as the events of real PMUs do.
    """
    first_levels = {"I": Cache(i1), "L": (data := Cache(d1)), "S": data}
    last_level = Cache(ll)
    counts = dict.fromkeys((name for names in NAMES.values() for name in names), 0)
    for kind, address, size in trace:
        kind = "L" if kind == "M" else kind
        first_level, (references, misses, last_misses) = first_levels[kind], NAMES[kind]
        lines = range(address // LINE_BYTES, (address + size - 1) // LINE_BYTES + 1)
        counts[references] += 1
        if by_line:
            for line in lines:
                if first_level.misses(line):
                    counts[misses] += 1
                    counts[last_misses] += last_level.misses(line)
        elif sum(first_level.misses(line) for line in lines):
            counts[misses] += 1
            counts[last_misses] += sum(last_level.misses(line) for line in lines) > 0
    return counts
