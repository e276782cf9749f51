"""What one expects of branch predictors, with numbers that can be counted by hand."""

from __future__ import annotations

from random import Random

import pytest

from emulator._native import BranchUnit, direction_predictors, indirect_predictors
from emulator.probes import Probe
from tests.unit.predictor.branches import (
    CALL,
    DIRECT,
    INDIRECT,
    INDIRECT_CALL,
    LATE,
    RETURN,
    RIGHT,
    WRONG,
    Branch,
    conditional,
    loop,
    mispredicted,
    resolve,
)

WITH_HISTORY = ("gshare", "tage")
LEARNING = ("bimodal", *WITH_HISTORY)


def test_the_predictors_are_known_by_name() -> None:
    assert {"always_taken", "bimodal", "gshare", "perfect", "tage"} <= set(direction_predictors())
    assert {"ittage", "last_target", "perfect"} <= set(indirect_predictors())


def test_without_a_table_every_branch_is_right() -> None:
    unit = BranchUnit({})
    random = Random(1)
    kinds = range(7)
    branches = [Branch(4 * random.randrange(99), random.choice(kinds), 4 * random.randrange(99)) for _ in range(500)]
    assert resolve(unit, branches) == [RIGHT] * 500
    assert all(unit.total(probe) == 0 for probe in Probe)


@pytest.mark.parametrize("direction", LEARNING)
@pytest.mark.parametrize("taken", [False, True])
def test_a_branch_that_never_changes_is_learned(direction: str, taken: bool) -> None:
    branches = [conditional(0x4000, taken)] * 100
    assert mispredicted({"direction": direction}, branches, branches) == 0


def test_cold_branches_are_predicted_not_taken() -> None:
    branches = [conditional(0x4000 + 4 * site, True) for site in range(50)]
    assert mispredicted({"direction": "bimodal"}, [], branches) == 50
    assert mispredicted({"direction": "always_taken"}, [], branches) == 0
    assert mispredicted({"direction": "perfect"}, [], branches) == 0


@pytest.mark.parametrize("direction", WITH_HISTORY)
def test_an_alternating_branch_is_learned_by_its_history(direction: str) -> None:
    branches = [conditional(0x4000, number % 2 == 0) for number in range(200)]
    assert mispredicted({"direction": direction}, branches, branches) == 0


def test_an_alternating_branch_defeats_a_counter() -> None:
    # From weakly not taken: T makes it 2, N 1, T 2 ...: each prediction is what the last outcome was.
    branches = [conditional(0x4000, number % 2 == 0) for number in range(200)]
    assert mispredicted({"direction": "bimodal"}, [], branches) == 200


def test_a_counter_misses_the_end_of_each_loop() -> None:
    assert mispredicted({"direction": "bimodal"}, loop(0x4000, 10, 2), loop(0x4000, 10, 50)) == 50


@pytest.mark.parametrize(("direction", "turns"), [("gshare", 8), ("tage", 8), ("tage", 30), ("tage", 100)])
def test_a_loop_within_the_history_ends_as_foreseen(direction: str, turns: int) -> None:
    table: dict[str, object] = {"direction": direction, "tage": {"loop_entries": 0}}
    assert mispredicted(table, loop(0x4000, turns, 100), loop(0x4000, turns, 50)) == 0


def test_a_loop_beyond_the_history_needs_the_loop_predictor() -> None:
    # 3000 turns, of which the history remembers 256. Known after four loops: the first tells the number, three agree.
    judged = loop(0x4000, 3000, 5)
    assert mispredicted({"direction": "tage", "tage": {"loop_entries": 64}}, loop(0x4000, 3000, 5), judged) == 0
    assert mispredicted({"direction": "tage", "tage": {"loop_entries": 0}}, loop(0x4000, 3000, 5), judged) == 5


@pytest.mark.parametrize("direction", WITH_HISTORY)
def test_correlated_branches_tell_each_other(direction: str) -> None:
    # The third branch is the exclusive or of two coins: only history can know.
    random = Random(6)
    branches = []
    for _ in range(4000):
        one, other = random.random() < 0.5, random.random() < 0.5
        branches += [conditional(0x4000, one), conditional(0x4010, other), conditional(0x4020, one != other)]
    unit = BranchUnit({"branch": {"direction": direction}})
    resolve(unit, branches[:6000])
    wrong = resolve(unit, branches[6000:])[2::3].count(WRONG)
    # 2000 were judged. gshare shares counters with the coins' own branches; tage has tags.
    assert wrong < 400 if direction == "gshare" else wrong < 40


@pytest.mark.parametrize("direction", LEARNING)
def test_sorted_data_are_predicted_and_random_data_are_not(direction: str) -> None:
    # if (value >= 128) in a loop over 1000 bytes; 20 such arrays. Sorted: wrong about where it changes and where an
    # array starts, some times in 2 x 20 changes. As they came: each is a coin, 10 000 wrong of 20 000, give or take.
    random = Random(7)
    values = [random.randrange(256) for _ in range(20_000)]

    def walk(data: list[int]) -> list[Branch]:
        return [branch for value in data for branch in (conditional(0x4000, value >= 128), conditional(0x4010, True))]

    by_chunks = [value for start in range(0, 20_000, 1000) for value in sorted(values[start : start + 1000])]
    assert mispredicted({"direction": direction}, [], walk(by_chunks)) < 600
    assert 9000 < mispredicted({"direction": direction}, [], walk(values)) < 11_000


def nest(depth: int) -> list[Branch]:
    """Calls from `depth` functions into each other, and their returns."""
    calls = [Branch(0x4000 + 0x100 * level, CALL, 0x4100 + 0x100 * level) for level in range(depth)]
    returns = [
        Branch(0x4080 + 0x100 * (level + 1), RETURN, calls[level].fallthrough) for level in reversed(range(depth))
    ]
    return calls + returns


@pytest.mark.parametrize(("depth", "wrong"), [(1, 0), (16, 0), (17, 1), (20, 4), (40, 24)])
def test_a_nest_deeper_than_the_stack_loses_its_outermost_returns(depth: int, wrong: int) -> None:
    # 16 entries: the 16 innermost returns are right, each further one finds what was overwritten.
    assert mispredicted({"return_stack": 16}, [], nest(depth)) == wrong


def test_an_indirect_call_is_returned_from_as_well() -> None:
    branches = [Branch(0x4000, INDIRECT_CALL, 0x5000), Branch(0x5008, RETURN, 0x4004)]
    assert mispredicted({"return_stack": 4}, [], branches) == 0


def test_a_jump_into_a_function_does_not_disturb_the_stack() -> None:
    tail_call = [Branch(0x4000, CALL, 0x5000), Branch(0x5004, DIRECT, 0x6000), Branch(0x6004, RETURN, 0x4004)]
    assert mispredicted({"return_stack": 4}, [], tail_call * 10) == 0


def test_each_kind_of_mispredict_has_its_probe() -> None:
    unit = BranchUnit(
        {
            "branch": {
                "direction": "bimodal",
                "btb_entries": 64,
                "btb_ways": 4,
                "return_stack": 4,
                "indirect": "last_target",
            }
        }
    )
    stream = [
        (conditional(0x4000, True), WRONG),  # cold: predicted not taken
        (conditional(0x4000, True), RIGHT),
        (Branch(0x4010, DIRECT, 0x5000), LATE),  # cold: not in the buffer
        (Branch(0x4010, DIRECT, 0x5000), RIGHT),
        (Branch(0x4020, INDIRECT, 0x6000), WRONG),
        (Branch(0x4020, INDIRECT, 0x6000), RIGHT),  # both now know it
        (Branch(0x4030, RETURN, 0x7000), WRONG),  # nobody called
        (conditional(0x4040, False), RIGHT),
    ]
    assert resolve(unit, [branch for branch, _ in stream]) == [prediction for _, prediction in stream]
    fired = {probe.name: unit.total(probe) for probe in Probe if unit.total(probe)}
    assert fired == {
        "BR_MISPREDICTED": 3,
        "BR_COND_MISPREDICTED": 1,
        "BR_INDIRECT_MISPREDICTED": 1,
        "BR_RETURN_MISPREDICTED": 1,
        "BTB_MISS": 1,
    }


def dispatches(program: list[int], times: int) -> list[Branch]:
    """An interpreter's jump through its table, for a program of opcodes that it runs again and again."""
    return [Branch(0x4000, INDIRECT, 0x10_0000 + 0x80 * opcode) for opcode in program] * times


def test_ittage_learns_an_interpreted_loop_and_last_target_does_not() -> None:
    random = Random(8)
    program = [random.randrange(12) for _ in range(40)]
    warm, judged = dispatches(program, 60), dispatches(program, 10)
    repeats = sum(op == before for op, before in zip(program, program[-1:] + program[:-1], strict=True))
    # last_target is right where an opcode follows itself.
    assert mispredicted({"indirect": "last_target"}, warm, judged) == 10 * (40 - repeats)
    assert mispredicted({"indirect": "ittage"}, warm, judged) == 0


def test_ittage_knows_a_target_by_the_conditional_branch_before_it() -> None:
    random = Random(9)
    branches = []
    for _ in range(3000):
        chosen = random.random() < 0.5
        branches += [conditional(0x4000, chosen), Branch(0x4020, INDIRECT, 0x5000 if chosen else 0x6000)]
    table: dict[str, object] = {"direction": "perfect", "indirect": "ittage"}
    # 1000 are judged; entries that longer, chance-laden paths have taken cost some.
    assert mispredicted(table, branches[:4000], branches[4000:]) < 50
    table["indirect"] = "last_target"
    assert 400 < mispredicted(table, branches[:4000], branches[4000:]) < 600


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"direction": "oracle"},
            'branch.direction: "oracle" is no direction predictor: there are always_taken, bimodal, ',
        ),
        ({"indirect": "guess"}, 'branch.indirect: "guess" is no indirect predictor: there are ittage, last_target'),
        ({"direction": "bimodal", "bimodal": {"entries": 1000}}, "branch.bimodal.entries: 1000 is no power of two"),
        (
            {"direction": "gshare", "gshare": {"entries": 256, "history_bits": 9}},
            "branch.gshare.history_bits: 9 is not within 0 to 8",
        ),
        ({"direction": "tage", "tage": {"tables": 17}}, "branch.tage.tables: 17 is not within 1 to 16"),
        (
            {"direction": "tage", "tage": {"shortest_history": 50, "longest_history": 20}},
            "branch.tage.longest_history: 20 is not within 50 to 4000",
        ),
        ({"btb_entries": 96, "btb_ways": 4}, "branch.btb_entries: 96 in 4 ways is no power of two of sets"),
        ({"btb_entries": 0}, "branch.btb_entries: 0 is not within 1"),
        ({"return_stack": 0}, "branch.return_stack: 0 is not within 1"),
        ({"direction": 3}, "branch.direction: is not a string"),
    ],
)
def test_bad_configuration_is_named(table: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        BranchUnit({"branch": table})
