"""Replacement policies in Python, as their descriptions have them: one set, with its ways in a list."""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol


class Policy(Protocol):
    """Chooses the way of a full set that makes room. Fills tell whose instruction's access it is."""

    def used(self, way: int) -> None: ...
    def filled(self, way: int, pc: int) -> None: ...
    def victim(self) -> int: ...


class Lru:
    def __init__(self, ways: int) -> None:
        self.order = list(range(ways))  # the least recent first

    def used(self, way: int) -> None:
        self.order.remove(way)
        self.order.append(way)

    def filled(self, way: int, pc: int) -> None:
        self.used(way)

    def victim(self) -> int:
        return self.order[0]


class TreePlru:
    """The tree as nested halves: each inner node (first way, size of a half) has a pointer to its older half."""

    def __init__(self, ways: int) -> None:
        self.ways = ways
        self.leaves = 1 << (ways - 1).bit_length()
        self.older_is_right: dict[tuple[int, int], bool] = {}

    def used(self, way: int) -> None:
        first, size = 0, self.leaves
        while size > 1:
            size //= 2
            right = way >= first + size
            self.older_is_right[first, size] = not right
            first += size if right else 0

    def filled(self, way: int, pc: int) -> None:
        self.used(way)

    def victim(self) -> int:
        first, size = 0, self.leaves
        while size > 1:
            size //= 2
            if self.older_is_right.get((first, size), False) and first + size < self.ways:
                first += size
        return first


def xorshift64(state: int) -> Iterator[int]:
    """Marsaglia 2003, shifts 13, 7, 17."""
    while True:
        state ^= state << 13 & (1 << 64) - 1
        state ^= state >> 7
        state ^= state << 17 & (1 << 64) - 1
        yield state


class Random:
    def __init__(self, ways: int, numbers: Iterator[int]) -> None:
        self.ways = ways
        self.numbers = numbers

    def used(self, way: int) -> None: ...
    def filled(self, way: int, pc: int) -> None: ...

    def victim(self) -> int:
        return (next(self.numbers) >> 32) * self.ways >> 32


class Rrip:
    """Two bits a way. `distant` says, at each fill, whether the new line is expected in the distant future."""

    def __init__(self, ways: int, distant: Callable[[], bool] = lambda: False) -> None:
        self.interval = [3] * ways
        self.distant = distant

    def used(self, way: int) -> None:
        self.interval[way] = 0

    def filled(self, way: int, pc: int) -> None:
        self.interval[way] = 3 if self.distant() else 2

    def victim(self) -> int:
        while 3 not in self.interval:
            self.interval = [value + 1 for value in self.interval]
        return self.interval.index(3)


class Duel:
    """Set dueling: sets 0 mod 32 insert statically, sets 17 mod 32 bimodally, the rest as those that miss less do."""

    def __init__(self) -> None:
        self.selector = 511
        self.bimodal_fills = 0

    def bimodal(self) -> bool:
        self.bimodal_fills += 1
        return self.bimodal_fills % 32 != 0

    def distant(self, in_set: int) -> bool:
        leader = in_set % 32
        distant = self.bimodal() if leader == 17 or (leader != 0 and self.selector > 511) else False
        if leader == 0:
            self.selector = min(1023, self.selector + 1)
        if leader == 17:
            self.selector = max(0, self.selector - 1)
        return distant


@dataclass
class Generation:
    """A line's time in the cache: the signature of who brought it, and how often it was used again."""

    signature: int
    hits: int = 0


class Ship(Rrip):
    """Wu and others, figure 3 of the paper. `counters` is common to all sets."""

    def __init__(self, ways: int, counters: defaultdict[int, int]) -> None:
        super().__init__(ways)
        self.counters = counters
        self.generations: dict[int, Generation] = {}  # by way

    def used(self, way: int) -> None:
        super().used(way)
        generation = self.generations[way]
        generation.hits += 1
        self.counters[generation.signature] = min(7, self.counters[generation.signature] + 1)

    def filled(self, way: int, pc: int) -> None:
        before = self.generations.get(way)  # no line leaves in these tests but to make room
        if before and before.hits == 0:
            self.counters[before.signature] = max(0, self.counters[before.signature] - 1)
        signature = functools.reduce(operator.xor, (pc >> shift & 0x3FFF for shift in (0, 14, 28)))
        self.generations[way] = Generation(signature)
        self.interval[way] = 2 if self.counters[signature] else 3


def make(name: str, sets: int, ways: int) -> list[Policy]:
    """A policy for each set."""
    numbers = xorshift64(0x9E3779B97F4A7C15)
    duel = Duel()
    counters: defaultdict[int, int] = defaultdict(lambda: 1)
    makers: dict[str, Callable[[int], Policy]] = {
        "lru": lambda _: Lru(ways),
        "plru": lambda _: TreePlru(ways),
        "random": lambda _: Random(ways, numbers),
        "rrip": lambda _: Rrip(ways),
        "brrip": lambda _: Rrip(ways, duel.bimodal),
        "drrip": lambda number: Rrip(ways, lambda: duel.distant(number)),
        "ship": lambda _: Ship(ways, counters),
    }
    return [makers[name](number) for number in range(sets)]


class Sets:
    """Tags in sets of ways."""

    def __init__(self, sets: int, ways: int, policy: str = "lru") -> None:
        self.tags: list[list[int | None]] = [[None] * ways for _ in range(sets)]
        self.policies = make(policy, sets, ways)

    def __contains__(self, tag: int) -> bool:
        return tag in self.tags[tag % len(self.tags)]

    def use(self, tag: int) -> None:
        number = tag % len(self.tags)
        self.policies[number].used(self.tags[number].index(tag))

    def add(self, tag: int, pc: int = 0) -> int | None:
        """Returns the tag that went."""
        number = tag % len(self.tags)
        ways = self.tags[number]
        way = ways.index(None) if None in ways else self.policies[number].victim()
        old, ways[way] = ways[way], tag
        self.policies[number].filled(way, pc)
        return old

    def remove(self, tag: int) -> None:
        ways = self.tags[tag % len(self.tags)]
        ways[ways.index(tag)] = None

    def access(self, tag: int, pc: int = 0) -> bool:
        """Whether it was there; it is now."""
        hit = tag in self
        if hit:
            self.use(tag)
        else:
            self.add(tag, pc)
        return hit
