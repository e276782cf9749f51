"""Branch predictors as one would explain them: plain, slow and independent of the native ones. Shared: what the tables
are indexed by, which is our choice and nobody else's fact."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from math import lcm

MASK_32 = (1 << 32) - 1


def spread(pc: int) -> int:
    """An address as tables are indexed by it."""
    return pc ^ pc >> 2


def target_hash(target: int) -> int:
    """32 bits; Knuth's multiplicative hash of both halves."""
    return ((target ^ target >> 32) & MASK_32) * 0x9E3779B1 & MASK_32


def trained(counter: int, taken: bool, least: int = 0, most: int = 3) -> int:
    return min(counter + 1, most) if taken else max(counter - 1, least)


class Bimodal:
    def __init__(self, entries: int) -> None:
        self.counters = [1] * entries

    def learn(self, pc: int, taken: bool) -> bool:
        place = spread(pc) % len(self.counters)
        predicted = self.counters[place] >= 2
        self.counters[place] = trained(self.counters[place], taken)
        return predicted


class Gshare:
    def __init__(self, entries: int, history_bits: int) -> None:
        self.counters = [1] * entries
        self.bits = history_bits
        self.history: list[bool] = []  # the newest first

    def learn(self, pc: int, taken: bool) -> bool:
        history = sum(bit << age for age, bit in enumerate(self.history[: self.bits]))
        place = (spread(pc) ^ history) % len(self.counters)
        predicted = self.counters[place] >= 2
        self.counters[place] = trained(self.counters[place], taken)
        self.history.insert(0, taken)
        return predicted


class TargetBuffer:
    """Sets of `ways` in the order of their last use."""

    def __init__(self, entries: int, ways: int) -> None:
        self.ways = ways
        self.sets: list[OrderedDict[int, int]] = [OrderedDict() for _ in range(entries // ways)]

    def learn(self, pc: int, target: int) -> bool:
        chosen = self.sets[spread(pc) % len(self.sets)]
        known = pc in chosen
        chosen[pc] = target
        chosen.move_to_end(pc)
        if len(chosen) > self.ways:
            chosen.popitem(last=False)
        return known


class ReturnStack:
    """Keeps the newest `depth` addresses, in a ring: what stood where a deeper call was written is gone."""

    def __init__(self, depth: int) -> None:
        self.ring = [0] * depth
        self.calls = 0

    def push(self, address: int) -> None:
        self.calls += 1
        self.ring[self.calls % len(self.ring)] = address

    def pop(self, target: int) -> bool:
        right = self.ring[self.calls % len(self.ring)] == target
        self.calls -= 1
        return right


class LastTarget:
    def __init__(self, entries: int) -> None:
        self.targets = [0] * entries

    def learn(self, pc: int, target: int) -> bool:
        place = spread(pc) % len(self.targets)
        right = self.targets[place] == target
        self.targets[place] = target
        return right


@dataclass
class Loop:
    pc: int
    direction: bool
    age: int = 31
    confidence: int = 0
    last_turns: int = 0
    turns: int = 0


class Loops:
    """L-TAGE's loop predictor: three times the same number of turns, and the end is foreseen."""

    def __init__(self, entries: int) -> None:
        self.entries: list[Loop | None] = [None] * entries

    def learn(self, pc: int, taken: bool, otherwise: bool) -> bool:
        if not self.entries:
            return otherwise
        place = spread(pc) % len(self.entries)
        loop = self.entries[place]
        if loop is None or loop.pc != pc:
            if otherwise != taken:
                if loop is not None and loop.age:
                    loop.age -= 1
                else:
                    self.entries[place] = Loop(pc, direction=not taken)
            return otherwise
        predicted = otherwise
        if loop.confidence == 3:
            predicted = loop.direction if loop.turns != loop.last_turns else not loop.direction
            if predicted != taken:
                loop.confidence = loop.age = 0
            elif otherwise != taken:
                loop.age = min(loop.age + 1, 255)
        if taken == loop.direction:
            loop.turns += 1
        elif loop.turns == 0:
            loop.direction, loop.turns, loop.last_turns, loop.confidence = taken, 1, 0, 0
        else:
            loop.confidence = min(loop.confidence + 1, 3) if loop.turns == loop.last_turns else 0
            loop.last_turns, loop.turns = loop.turns, 0
        return predicted


@dataclass
class Tagged:
    tag: int
    counter: int  # -4..3
    useful: int = 0

    @property
    def taken(self) -> bool:
        return self.counter >= 0

    @property
    def is_new(self) -> bool:
        return self.useful == 0 and self.counter in (-1, 0)


def folded(history: list[bool], length: int, width: int) -> int:
    """The newest `length` outcomes, cut into pieces of `width` bits which are added by exclusive or."""
    result = 0
    for age, bit in enumerate(history[:length]):
        result ^= bit << age % width
    return result


class Tage:
    """Seznec and Michaud's TAGE; every history is folded anew for every branch."""

    def __init__(
        self,
        *,
        tables: int,
        entries: int,
        tag_bits: int,
        base_entries: int,
        shortest_history: int,
        longest_history: int,
        useful_period: int,
        loop_entries: int,
    ) -> None:
        self.base = [1] * base_entries
        self.tables: list[dict[int, Tagged]] = [{} for _ in range(tables)]
        self.index_bits = entries.bit_length() - 1
        self.tag_bits = tag_bits
        self.useful_period = useful_period
        self.loops = Loops(loop_entries)
        self.lengths: list[int] = []
        for number in range(tables):
            part = number / (tables - 1) if tables > 1 else 0.0
            length = int(shortest_history * (longest_history / shortest_history) ** part + 0.5)
            self.lengths.append(max([length, *(longer + 1 for longer in self.lengths[-1:])]))
        widths = [(one, other) for one in range(tag_bits, 1, -1) for other in range(one - 1, 0, -1)]
        self.tag_folds = max(widths, key=lambda pair: lcm(self.index_bits, *pair))  # the first of equals
        self.history: list[bool] = []
        self.trust_alternate = 0
        self.random = 1
        self.branches = 0

    def places(self, pc: int) -> list[tuple[int, int]]:
        """Index and tag in each table."""
        address = spread(pc)
        wide, narrow = self.tag_folds
        places = []
        for length in self.lengths:
            index = address ^ address >> self.index_bits ^ folded(self.history, length, self.index_bits)
            tag = target_hash(address) >> 16 ^ folded(self.history, length, wide)
            tag ^= folded(self.history, length, narrow) << 1
            places.append((index % (1 << self.index_bits), tag % (1 << self.tag_bits)))
        return places

    def learn(self, pc: int, taken: bool) -> bool:
        places = self.places(pc)
        entries = [table.get(index) for table, (index, _) in zip(self.tables, places, strict=True)]
        hits = [
            (number, entry)
            for number, entry in enumerate(entries)
            if entry is not None and entry.tag == places[number][1]
        ]
        base = spread(pc) % len(self.base)
        provider = hits[-1][1] if hits else None
        alternate = hits[-2][1] if len(hits) > 1 else None
        alternate_taken = alternate.taken if alternate else self.base[base] >= 2
        provider_taken = provider.taken if provider else alternate_taken
        tagged = alternate_taken if provider and provider.is_new and self.trust_alternate >= 0 else provider_taken
        predicted = self.loops.learn(pc, taken, tagged)

        if tagged != taken and (provider is None or provider_taken != taken):
            self.allocate(places, hits[-1][0] + 1 if hits else 0, taken)
        if provider is None or (provider.is_new and alternate is None):
            self.base[base] = trained(self.base[base], taken)
        if provider is not None:
            if provider.is_new:
                if provider_taken != alternate_taken:
                    self.trust_alternate = trained(self.trust_alternate, alternate_taken == taken, -8, 7)
                if alternate is not None:
                    alternate.counter = trained(alternate.counter, taken, -4, 3)
            provider.counter = trained(provider.counter, taken, -4, 3)
            if provider_taken != alternate_taken:
                provider.useful = trained(provider.useful, provider_taken == taken)
        self.branches += 1
        if self.branches % self.useful_period == 0:
            for table in self.tables:
                for entry in table.values():
                    entry.useful //= 2
        self.history.insert(0, taken)
        return predicted

    def allocate(self, places: list[tuple[int, int]], first: int, taken: bool) -> None:
        if first == len(self.tables):
            return
        for shift in (13, -17, 5):  # Marsaglia's xorshift
            self.random ^= self.random << shift & MASK_32 if shift > 0 else self.random >> -shift
        if first < len(self.tables) - 1:
            first += self.random & 1
        longer = [(self.tables[number], *places[number]) for number in range(first, len(self.tables))]
        for table, index, tag in longer:
            if index not in table or table[index].useful == 0:
                table[index] = Tagged(tag, 0 if taken else -1)
                return
        for table, index, _ in longer:
            table[index].useful -= 1

    def follow(self, target: int) -> None:
        for bit in (31, 30):
            self.history.insert(0, bool(target_hash(target) >> bit & 1))
