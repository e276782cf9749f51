"""The caches of some cores in Python, without time: who holds which line, in which state, and what that counts.

Coherence is told here by looking into every cache of every core; there is no directory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.unit.cache.policies import Sets
from tests.unit.cache.streams import FETCH, LOAD, STORE

SUFFIX = {LOAD: "LOAD", STORE: "STORE", FETCH: "FETCH"}


class Cache(Sets):
    """Lines, and which of them are dirty."""

    def __init__(self, name: str, sets: int, ways: int, inclusion: str = "non_inclusive") -> None:
        super().__init__(sets, ways)
        self.name = name
        self.inclusion = inclusion
        self.dirty: set[int] = set()

    def put(self, line: int, dirty: bool) -> tuple[int, bool] | None:
        """Returns the line that had to go, and whether it was dirty."""
        old = self.add(line)
        gone = None if old is None else (old, old in self.dirty)
        self.dirty.discard(-1 if old is None else old)
        if dirty:
            self.dirty.add(line)
        return gone

    def take(self, line: int) -> bool:
        """Returns whether the line was dirty."""
        dirty = line in self.dirty
        self.dirty.discard(line)
        if line in self:
            self.remove(line)
        return dirty


@dataclass
class Core:
    l1i: Cache
    l1d: Cache
    outer: list[Cache]
    counts: Counter[str] = field(default_factory=Counter)
    alone: set[int] = field(default_factory=set)  # lines in E or M

    def private(self) -> list[Cache]:
        return [self.l1i, self.l1d, *self.outer]

    def holds(self, line: int) -> bool:
        return any(line in cache for cache in self.private())


class Hierarchy:
    """Each core's L1I and L1D, L2 (None: none), one LLC for all, memory. Geometry: (sets, ways[, inclusion])."""

    def __init__(
        self,
        cores: int,
        l1: tuple[int, int],
        l2: tuple[int, int, str] | None,
        llc: tuple[int, int, str] | None,
        write_through: bool = False,
        write_allocate: bool = True,
    ) -> None:
        self.cores = [
            Core(Cache("L1I", *l1), Cache("L1D", *l1), [Cache("L2", *l2)] if l2 else []) for _ in range(cores)
        ]
        self.shared = [Cache("LL", *llc)] if llc else []
        self.write_through = write_through
        self.write_allocate = write_allocate

    def access(self, core: Core, kind: int, line: int) -> None:
        l1 = core.l1i if kind == FETCH else core.l1d
        suffix = "" if kind == FETCH else "_" + SUFFIX[kind]
        core.counts[f"{l1.name}_ACCESS{suffix}"] += 1
        if line in l1:
            l1.use(line)
            if kind == STORE and line not in core.alone:
                self.take_from_others(core, line)
        elif kind == STORE and not self.write_allocate:
            levels = self.levels(core)
            if levels:
                self.fetch(core, 0, line, kind)
            else:
                self.take_from_others(core, line)
            self.write_back(core, 0, line)
            self.forget(core, line)
            return
        else:
            core.counts[f"{l1.name}_REFILL{suffix}"] += 1
            dirty = self.fetch(core, 0, line, kind)
            gone = l1.put(line, dirty)
            if gone:
                core.counts["L1D_WRITE_BACK"] += gone[1] and l1 is core.l1d
                self.left(core, 0, *gone)
            if kind == STORE and self.write_through:
                self.write_back(core, 0, line)
                return
        if kind == STORE and self.write_through:
            if self.levels(core):
                core.counts[f"{self.levels(core)[0].name}_ACCESS_STORE"] += 1
            self.write_back(core, 0, line)
        elif kind == STORE:
            l1.dirty.add(line)

    def levels(self, core: Core) -> list[Cache]:
        return core.outer + self.shared

    def fetch(self, core: Core, depth: int, line: int, kind: int) -> bool:
        """Brings a line towards L1; returns whether it comes dirty."""
        levels = self.levels(core)
        if depth == len(core.outer) and len(self.cores) > 1:
            others = [other for other in self.cores if other is not core and other.holds(line)]
            owner = [other for other in others if line in other.alone]
            in_shared = depth < len(levels) and line in levels[depth]
            modified = False
            if kind == STORE:
                modified = self.take_from_others(core, line)
            elif owner:
                modified = self.demote(owner[0], line)
                in_shared = depth < len(levels) and line in levels[depth]
            elif others and not in_shared:
                others[0].counts["SNOOP"] += 1
                others[0].counts["SNOOP_HIT"] += 1
            if not others:
                core.alone.add(line)
            if owner or (others and not in_shared):
                core.counts["FETCHED_HITM" if modified else "FETCHED_HIT"] += 1
                if self.shared:
                    core.counts[f"LL_ACCESS_{SUFFIX[kind]}"] += 1
                if in_shared:
                    levels[depth].use(line)
                return modified and kind == STORE
            return self.fetch_from(core, depth, line, kind, keep=bool(others))
        return self.fetch_from(core, depth, line, kind, keep=False)

    def fetch_from(self, core: Core, depth: int, line: int, kind: int, keep: bool) -> bool:
        levels = self.levels(core)
        if depth == len(levels):
            core.counts["DRAM_READ"] += 1
            return False
        cache = levels[depth]
        core.counts[f"{cache.name}_ACCESS_{SUFFIX[kind]}"] += 1
        if line in cache:
            if kind == STORE and depth < len(core.outer) and line not in core.alone:
                self.take_from_others(core, line)
            if cache.inclusion == "exclusive" and not keep:
                return cache.take(line)
            cache.use(line)
            return False
        core.counts[f"{cache.name}_REFILL_{SUFFIX[kind]}"] += 1
        dirty = self.fetch(core, depth + 1, line, kind)
        if cache.inclusion == "exclusive":
            return dirty
        self.put(core, depth, line, dirty)
        return False

    def put(self, core: Core, depth: int, line: int, dirty: bool) -> None:
        cache = self.levels(core)[depth]
        if line in cache:
            cache.use(line)
            if dirty:
                cache.dirty.add(line)
            return
        gone = cache.put(line, dirty)
        if not gone:
            return
        old, old_dirty = gone
        if cache.inclusion == "inclusive":
            for holder in self.cores if depth >= len(core.outer) else [core]:
                for inner in holder.private()[: 2 + depth]:
                    inner_dirty = inner.take(old)
                    holder.counts[f"{inner.name}_WRITE_BACK"] += inner_dirty and inner is not holder.l1i
                    old_dirty |= inner_dirty
                self.forget(holder, old)
        core.counts[f"{cache.name}_WRITE_BACK"] += old_dirty
        self.left(core, depth + 1, old, old_dirty)

    def left(self, core: Core, depth: int, line: int, dirty: bool) -> None:
        """A line has left the cache before `depth`."""
        levels = self.levels(core)
        if dirty:
            self.write_back(core, depth, line)
        elif depth < len(levels) and levels[depth].inclusion == "exclusive":
            self.put(core, depth, line, False)
        self.forget(core, line)

    def write_back(self, core: Core, depth: int, line: int) -> None:
        levels = self.levels(core)
        if depth == len(levels):
            core.counts["DRAM_WRITE"] += 1
        else:
            self.put(core, depth, line, True)

    def forget(self, core: Core, line: int) -> None:
        if not core.holds(line):
            core.alone.discard(line)

    def take_from_others(self, core: Core, line: int) -> bool:
        """Whether one of them had written it."""
        modified = False
        for other in self.cores:
            if other is core or not other.holds(line):
                continue
            dirty = sum(cache.take(line) for cache in other.private()) > 0
            other.alone.discard(line)
            other.counts["SNOOP"] += 1
            other.counts["SNOOP_HITM" if dirty else "SNOOP_HIT"] += 1
            other.counts["INVALIDATED"] += 1
            modified |= dirty
        core.alone.add(line)
        return modified

    def demote(self, owner: Core, line: int) -> bool:
        """Another core reads the line. Returns whether the owner had written it."""
        dirty = [cache for cache in owner.private() if line in cache.dirty]
        owner.alone.discard(line)
        for cache in dirty:
            cache.dirty.discard(line)
            owner.counts[f"{cache.name}_WRITE_BACK"] += cache is not owner.l1i
        if dirty:
            self.write_back(owner, len(owner.outer), line)
        owner.counts["SNOOP"] += 1
        owner.counts["SNOOP_HITM" if dirty else "SNOOP_HIT"] += 1
        return bool(dirty)
