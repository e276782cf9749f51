"""Each predictor against a plain Python one, branch by branch."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

import pytest

from emulator._native import BranchUnit
from emulator.probes import Probe
from tests.unit.predictor.branches import (
    CALL,
    CONDITIONAL,
    DIRECT,
    INDIRECT,
    LATE,
    RETURN,
    RIGHT,
    WRONG,
    Branch,
    mixed,
    resolve,
)
from tests.unit.predictor.oracles import Bimodal, Gshare, LastTarget, ReturnStack, Tage, TargetBuffer


class Direction(Protocol):
    def learn(self, pc: int, taken: bool) -> bool: ...


def tage(**parameters: int) -> tuple[dict[str, object], Callable[[], Direction]]:
    return {"direction": "tage", "tage": parameters}, lambda: Tage(**parameters)


SMALL = {"tables": 4, "entries": 64, "tag_bits": 7, "base_entries": 128, "shortest_history": 3, "longest_history": 40}
LARGE = {"tables": 8, "entries": 512, "tag_bits": 9, "base_entries": 512, "shortest_history": 4, "longest_history": 130}
MOST = {"tables": 16, "entries": 64, "tag_bits": 12, "base_entries": 64, "shortest_history": 2, "longest_history": 90}

DIRECTIONS: dict[str, tuple[dict[str, object], Callable[[], Direction]]] = {
    "bimodal": ({"direction": "bimodal", "bimodal": {"entries": 64}}, lambda: Bimodal(64)),
    "gshare": ({"direction": "gshare", "gshare": {"entries": 256, "history_bits": 6}}, lambda: Gshare(256, 6)),
    "gshare without history": (
        {"direction": "gshare", "gshare": {"entries": 64, "history_bits": 0}},
        lambda: Bimodal(64),
    ),
    "tage, small": tage(**SMALL, useful_period=1000, loop_entries=0),
    "tage, small, loops": tage(**SMALL, useful_period=1000, loop_entries=16),
    "tage, large, loops": tage(**LARGE, useful_period=4000, loop_entries=64),
    "tage, as many tables as there can be": tage(**MOST, useful_period=500, loop_entries=4),
    "tage, tags as wide as indexes": tage(**SMALL | {"tag_bits": 6}, useful_period=1000, loop_entries=0),
}


@pytest.mark.parametrize("name", DIRECTIONS)
def test_directions_are_the_oracles(name: str) -> None:
    table, make = DIRECTIONS[name]
    oracle = make()
    branches = mixed(Random(name), 6000)
    expected = [RIGHT if oracle.learn(branch.pc, branch.taken) == branch.taken else WRONG for branch in branches]
    assert resolve(BranchUnit({"branch": table}), branches) == expected
    assert expected.count(WRONG) > 100  # else nothing was asked


def test_a_long_history_survives_its_own_storage() -> None:
    # The native history moves through 4096 places, and then what is still needed moves back.
    parameters = LARGE | {"longest_history": 400, "tables": 3, "useful_period": 100_000, "loop_entries": 0}
    oracle = Tage(**parameters)
    branches = mixed(Random(4), 6000)
    expected = [RIGHT if oracle.learn(branch.pc, branch.taken) == branch.taken else WRONG for branch in branches]
    assert resolve(BranchUnit({"branch": {"direction": "tage", "tage": parameters}}), branches) == expected


def test_taken_branches_are_looked_for_in_the_target_buffer() -> None:
    random = Random(1)
    oracle = TargetBuffer(64, 4)
    unit = BranchUnit({"branch": {"btb_entries": 64, "btb_ways": 4}})
    sites = [4 * random.randrange(1 << 16) for _ in range(90)]
    branches = []
    for _ in range(5000):
        pc = random.choice(sites[: random.choice([20, 90])])
        kind = random.choice([CONDITIONAL, DIRECT, CALL])
        untaken = kind == CONDITIONAL and random.random() < 0.3
        branches.append(Branch(pc, kind, pc + 4 if untaken else pc + 0x40 * random.choice([1, 1, 1, 2])))
    expected = [RIGHT if not branch.taken or oracle.learn(branch.pc, branch.next) else LATE for branch in branches]
    assert resolve(unit, branches) == expected
    assert unit.total(Probe.BTB_MISS) == expected.count(LATE) > 500
    assert unit.total(Probe.BR_MISPREDICTED) == 0


def test_returns_come_from_the_stack() -> None:
    random = Random(2)
    oracle = ReturnStack(8)
    unit = BranchUnit({"branch": {"return_stack": 8}})
    branches, expected = [], []
    open_calls: list[int] = []
    for _ in range(5000):
        if not open_calls or (random.random() < 0.52 and len(open_calls) < 20):
            call = Branch(4 * random.randrange(1 << 20), CALL, 0x1000)
            oracle.push(call.fallthrough)
            open_calls.append(call.fallthrough)
            branches.append(call)
            expected.append(RIGHT)
        else:
            target = open_calls.pop()
            branches.append(Branch(0x1000, RETURN, target))
            expected.append(RIGHT if oracle.pop(target) else WRONG)
    assert resolve(unit, branches) == expected
    assert unit.total(Probe.BR_RETURN_MISPREDICTED) == expected.count(WRONG) > 100


def test_last_target_is_the_oracle() -> None:
    random = Random(3)
    oracle = LastTarget(16)
    unit = BranchUnit({"branch": {"indirect": "last_target", "last_target": {"entries": 16}}})
    sites = [4 * random.randrange(1 << 16) for _ in range(20)]
    branches = [Branch(random.choice(sites), INDIRECT, 0x1000 * random.randrange(1, 3)) for _ in range(3000)]
    expected = [RIGHT if oracle.learn(branch.pc, branch.next) else WRONG for branch in branches]
    assert resolve(unit, branches) == expected
    assert unit.total(Probe.BR_INDIRECT_MISPREDICTED) == expected.count(WRONG) > 500


def test_paths_through_registers_are_part_of_the_history() -> None:
    # A branch that does what the indirect branch before it tells: only the history of targets knows.
    random = Random(5)
    parameters = SMALL | {"useful_period": 1000, "loop_entries": 0}
    oracle = Tage(**parameters)
    unit = BranchUnit({"branch": {"direction": "tage", "tage": parameters}})
    branches, expected = [], []
    for _ in range(3000):
        target = random.choice([0x5000, 0x7010])
        branches.append(Branch(0x4000, INDIRECT, target))
        expected.append(RIGHT)
        oracle.follow(target)
        branch = Branch(0x8000, CONDITIONAL, 0x9000 if target == 0x5000 else 0x8004)
        branches.append(branch)
        expected.append(RIGHT if oracle.learn(branch.pc, branch.taken) == branch.taken else WRONG)
    assert resolve(unit, branches) == expected
    assert expected[-1000:].count(WRONG) == 0
