"""Streams of branches for the tests, and the native branch unit fed with them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from emulator._native import BranchUnit
from emulator.probes import Probe

CONDITIONAL, DIRECT, INDIRECT, CALL, INDIRECT_CALL, RETURN = range(1, 7)
RIGHT, LATE, WRONG = range(3)


@dataclass(frozen=True, slots=True)
class Branch:
    """An A64 one: four bytes long."""

    pc: int
    kind: int
    next: int

    @property
    def fallthrough(self) -> int:
        return self.pc + 4

    @property
    def taken(self) -> bool:
        return self.next != self.fallthrough


def conditional(pc: int, taken: bool) -> Branch:
    return Branch(pc, CONDITIONAL, pc + 0x100 if taken else pc + 4)


def loop(pc: int, turns: int, times: int) -> list[Branch]:
    """The branch at a loop's end: taken but for the last of its turns."""
    return [conditional(pc, turn != turns - 1) for _ in range(times) for turn in range(turns)]


def resolve(unit: BranchUnit, branches: Iterable[Branch]) -> list[int]:
    return list(
        unit.resolve_all(
            b"".join(struct.pack("<4Q", branch.pc, branch.kind, branch.next, branch.fallthrough) for branch in branches)
        )
    )


def mispredicted(branch_table: dict[str, object], warm_up: list[Branch], judged: list[Branch]) -> int:
    """How many of the judged were wrong."""
    unit = BranchUnit({"branch": branch_table})
    resolve(unit, warm_up)
    before = unit.total(Probe.BR_MISPREDICTED)
    wrong = resolve(unit, judged).count(WRONG)
    assert unit.total(Probe.BR_MISPREDICTED) - before == wrong
    return wrong


def mixed(random: Random, count: int) -> list[Branch]:
    """Conditional branches of all characters: biased, periodic, correlated, random; some far apart."""
    sites = [0x40_0000 + 4 * random.randrange(1 << 14) + (random.randrange(3) << 32) for _ in range(40)]
    periods = [random.choice([1, 2, 3, 5, 9, 40]) for _ in sites]
    seen = [0 for _ in sites]
    last = False
    branches = []
    while len(branches) < count:
        site = random.randrange(len(sites))
        for _ in range(random.randrange(1, 60)):
            seen[site] += 1
            if site % 4 == 0:
                last = random.random() < 0.8
            elif site % 4 == 1:
                last = not last
            else:
                last = seen[site] % periods[site] != 0
            branches.append(conditional(sites[site], last))
    return branches[:count]
