"""What a pipeline recalls is what it would work out: cycles, every count, and its state after each block."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.unit.timing.loops import Config, Result, alu, branch, compare, load, machine, run, store
from tests.unit.timing.test_pipelines import full_machine, random_loop

MODELS = ("in_order", "out_of_order")
ITERATIONS = 200


def both_ways(config: Config, ops: list[Any], **options: Any) -> Result:
    """As `run`; each block that is recalled is worked out, too, and compared. All of it is worked out to begin with."""
    never, check = ({**config, "pipeline": {**config["pipeline"], "recall": mode}} for mode in ("never", "check"))
    result = run(never, ops, ITERATIONS, **options)
    assert run(config, ops, ITERATIONS, **options) == result
    assert run(check, ops, ITERATIONS, **options) == result
    return result


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", range(60))
def test_recalling_changes_nothing(model: str, seed: int) -> None:
    # Of blocks of all lengths; accesses that miss, are split, and meet lines that are on their way.
    random = Random(seed)
    ops, addresses = random_loop(random, 50)
    taken = [random.random() < 0.8 for _ in range(11)]
    pieces = [random.randrange(1, 9) for _ in range(31)]
    config = full_machine(model)
    config["pipeline"]["fetch_aligned"] = seed % 3 == 0
    config["pipeline"]["address_extra_cycles"] = seed % 2
    whole = both_ways(config, ops, addresses=addresses, taken=taken)
    assert both_ways(config, ops, addresses=addresses, taken=taken, pieces=pieces) == whole


@pytest.mark.parametrize("model", MODELS)
def test_hits_in_a_line_that_is_under_way_are_no_mere_hits(model: str) -> None:
    # Each iteration misses once, and its second load hits the line that the first has asked for.
    ops = [load(1), load(2), alu(3, 1, 2), store(3, 21), compare(3), branch()]
    lines = [64 * line for line in range(8)]
    config = machine(model, {"l1d": {"size": 256, "ways": 2, "latency": 4}, "memory": {"latency": 90}})
    result = both_ways(config, ops, addresses=[lines, [line + 8 for line in lines], [0x1000]])
    # In order, the next iteration's miss waits for this one's sum; out of order, only one store is written in a cycle.
    assert result.cycles >= (ITERATIONS * 90 if model == "in_order" else 90 + ITERATIONS)


@pytest.mark.parametrize("model", MODELS)
def test_only_tests_choose_whether_to_recall(model: str) -> None:
    with pytest.raises(ValueError, match='recall: "often" is not one of check, never'):
        run(machine(model, recall="often"), [alu(0)])
