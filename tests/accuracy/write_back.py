"""Two levels of caches that write back, as simply as they can be written: the oracle for our own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from emulator.probes import Probe

LINE_BYTES = 64
Shape = tuple[int, int]  # bytes, ways
Access = tuple[int, int, bool]  # address, size in bytes, is store


class Cache:
    """Sets of lines in the order of use, each with whether it is dirty."""

    def __init__(self, shape: Shape) -> None:
        size, self.ways = shape
        self.sets: list[dict[int, bool]] = [{} for _ in range(size // self.ways // LINE_BYTES)]

    def use(self, line: int, dirty: bool) -> bool:
        """Whether the line is here."""
        lines = self.sets[line % len(self.sets)]
        if line not in lines:
            return False
        lines[line] = lines.pop(line) or dirty
        return True

    def bring(self, line: int, dirty: bool) -> tuple[int, bool] | None:
        """Make room for the line; what had to go."""
        lines = self.sets[line % len(self.sets)]
        victim = None
        if len(lines) == self.ways:
            oldest = next(iter(lines))
            victim = oldest, lines.pop(oldest)
        lines[line] = dirty
        return victim


class Hierarchy:
    """L1I, L1D and L2, non-inclusive, as docs/cores.md says: a dirty line that leaves L1D is written to L2."""

    def __init__(self, l1i: Shape, l1d: Shape, l2: Shape) -> None:
        self.l1i, self.l1d, self.l2 = Cache(l1i), Cache(l1d), Cache(l2)
        self.counts: Counter[Probe] = Counter()

    def fetch(self, line: int) -> None:
        self.counts[Probe.L1I_ACCESS] += 1
        if not self.l1i.use(line, False):
            self.counts[Probe.L1I_REFILL] += 1
            self._obtain(line, Probe.L2_ACCESS_FETCH, Probe.L2_REFILL_FETCH)
            self.l1i.bring(line, False)

    def access(self, line: int, store: bool) -> None:
        self.counts[Probe.L1D_ACCESS_STORE if store else Probe.L1D_ACCESS_LOAD] += 1
        if self.l1d.use(line, store):
            return
        if store:
            self.counts[Probe.L1D_REFILL_STORE] += 1
            self._obtain(line, Probe.L2_ACCESS_STORE, Probe.L2_REFILL_STORE)
        else:
            self.counts[Probe.L1D_REFILL_LOAD] += 1
            self._obtain(line, Probe.L2_ACCESS_LOAD, Probe.L2_REFILL_LOAD)
        victim = self.l1d.bring(line, store)
        if victim and victim[1]:
            self.counts[Probe.L1D_WRITE_BACK] += 1
            if not self.l2.use(victim[0], True):
                self._bring_to_l2(victim[0], True)

    def _obtain(self, line: int, access: Probe, refill: Probe) -> None:
        self.counts[access] += 1
        if not self.l2.use(line, False):
            self.counts[refill] += 1
            self._bring_to_l2(line, False)

    def _bring_to_l2(self, line: int, dirty: bool) -> None:
        victim = self.l2.bring(line, dirty)
        if victim and victim[1]:
            self.counts[Probe.L2_WRITE_BACK] += 1


def count(instructions: Iterable[tuple[int, int, list[Access]]], l1i: Shape, l1d: Shape, l2: Shape) -> Counter[Probe]:
    """What fires for instructions (address, length, accesses), each of which accesses a line once."""
    caches = Hierarchy(l1i, l1d, l2)
    before = fetched = None  # the instruction, and the line of its last byte: L1I is asked when another one follows
    for address, length, accesses in instructions:
        for line in _lines(address, length) if address != before else ():  # a REP is fetched once
            if line != fetched:
                fetched = line
                caches.fetch(line)
        before = address
        for at, size, store in accesses:
            for line in _lines(at, size):
                caches.access(line, store)
    return caches.counts


def _lines(address: int, size: int) -> range:
    return range(address // LINE_BYTES, (address + size - 1) // LINE_BYTES + 1)
