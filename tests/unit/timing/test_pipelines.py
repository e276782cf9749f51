"""What holds for every pipeline: slots add up, cuts do not matter, what is wrong is named."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from emulator import _native
from emulator.probes import Probe
from tests.unit.timing.loops import VECTOR, Config, Op, alu, branch, compare, load, machine, op, run, store

MODELS = ("ideal", "in_order", "out_of_order")
WIDTH = {"in_order": 2, "out_of_order": 4}


def full_machine(model: str) -> Config:
    """Small enough that everything that can be full is full now and then."""
    pipeline: dict[str, Any] = {
        "fetch_bytes": 16,
        "taken_branch_bubble": 1,
        "store_buffer": 6,
        "split_load_cycles": 3,
        "fuses": ["arithmetic_branch", "aes"],
        "write_back_ports": ["P5", "P6"],
        "store_data_ports": ["P6"],
    }
    if model == "out_of_order":
        pipeline |= {
            "dispatch_width": 4,
            "rob_entries": 24,
            "load_queue": 6,
            "schedulers": {
                "first": {"entries": 4, "ports": ["P0", "P1"]},
                "second": {"entries": 4, "ports": ["P2", "P3"]},
                "memory": {"entries": 4, "ports": ["P4", "P5", "P6", "P7"]},
            },
            "eliminates": ["move", "zero", "add_constant"],
            "fuses": ["arithmetic_branch", "aes", "move_computation"],
            "loop_stream": True,
            "far_branch_bubble": 2,
            "predicted_forward_cycles": 0,
            "predicted_forwards": "unindexed",
            "eliminated_moves_per_cycle": 1,
            "store_forward_blocked_cycles": 8,
            "alias_4k_cycles": 5,
        }
    ports = ["P0", "P1", "P2", "P3"]
    return machine(
        model,
        {
            "l1i": {"size": 256, "ways": 2, "latency": 1},
            "l1d": {"size": 1024, "ways": 2, "latency": 4, "mshrs": 4, "write_back_cycles": 3},
            "memory": {"latency": 60},
            "branch": {
                "direction": "bimodal",
                "btb_entries": 4,
                "btb_ways": 2,
                "first_btb_entries": 2,
                "first_btb_ways": 1,
            },
            "ops": {
                "ALU": {"latency": 1, "ports": ports},
                "FP_ADD": {
                    "latency": 3,
                    "chain_latency": 2,
                    "ports": ["P2", "P3"],
                    "dual_issue": "first" if model == "in_order" else "both",
                },
            },
        },
        load_ports=["P4", "P5"],
        store_address_ports=["P4", "P7"],
        **pipeline,
    )


def random_loop(random: Random, length: int) -> tuple[list[Op], list[list[int]]]:
    """Instructions of all kinds, and addresses of their accesses that often meet."""
    ops: list[Op] = []
    accesses = 0
    while len(ops) < length:
        first, second, third = (random.randrange(12) for _ in range(3))
        kind = random.randrange(12)
        if kind < 3:
            ops.append(alu(first, second, third))
        elif kind < 5:
            ops.append(load(first, second, width_bytes=random.choice([1, 2, 4, 8, 16])))
        elif kind < 7:
            ops.append(store(first, second, width_bytes=random.choice([4, 8])))
        elif kind == 7:
            ops.append(op(random.choice(["MUL64", "DIV64", "FP_ADD"]), [first], [second, third]))
        elif kind == 8:
            ops.append(op("MOVE", [first], [second], "eliminable_move"))
            ops.append(op("ALU", [first], [first, third], *random.choice([[], ["fuses_with_move"], ["adds_little"]])))
        elif kind == 9:
            ops += [compare(first), branch()]
        elif kind == 10:
            state = VECTOR + first
            ops.append(op("AES", [state], [state, VECTOR], "aes_round"))
            ops.append(op("AES_MIX", [state], [state], "fuses_with_aes_round"))
        else:
            ops.append(load(first, second, write_back=second))
    ops = [*ops, compare(1), branch()]
    accesses = sum(flag in ("loads", "stores") for row in ops for flag in row["flags"])
    pages = (0x10000, 0x20000, 0x21000)
    addresses = [[random.choice(pages) + random.randrange(256) for _ in range(7)] for _ in range(accesses)]
    return ops, addresses


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", range(8))
def test_time_does_not_depend_on_cuts(model: str, seed: int) -> None:
    random = Random(seed)
    ops, addresses = random_loop(random, 40)
    taken = [random.random() < 0.8 for _ in range(11)]
    whole = run(full_machine(model), ops, 50, addresses=addresses, taken=taken)
    for _ in range(3):
        pieces = [random.randrange(1, 9) for _ in range(31)]
        assert run(full_machine(model), ops, 50, addresses=addresses, taken=taken, pieces=pieces) == whole
    assert run(full_machine(model), ops, 50, addresses=addresses, taken=taken, pieces=[1]) == whole


STALLS = {
    Probe.STALL_FRONTEND: Probe.STALL_FRONTEND_BEGINS,
    Probe.STALL_BACKEND: Probe.STALL_BACKEND_BEGINS,
    Probe.STALL_BACKEND_MEMORY: Probe.STALL_BACKEND_MEMORY_BEGINS,
}


@pytest.mark.parametrize("model", ["in_order", "out_of_order"])
@pytest.mark.parametrize("seed", range(8))
def test_every_slot_is_used_or_lost(model: str, seed: int) -> None:
    random = Random(100 + seed)
    ops, addresses = random_loop(random, 40)
    result = run(full_machine(model), ops, 50, addresses=addresses, taken=[random.random() < 0.8 for _ in range(11)])
    width = WIDTH[model]
    assert result[Probe.UOPS_RETIRED] + result.lost == width * result.cycles
    assert result[Probe.UOPS_RETIRED] == result[Probe.UOPS_DISPATCHED]
    assert 0 < result[Probe.SLOTS_BACKEND_MEMORY] <= result[Probe.SLOTS_BACKEND]
    assert 0 < result[Probe.SLOTS_FRONTEND_LATENCY] <= result[Probe.SLOTS_FRONTEND]
    assert result[Probe.STALL_BACKEND_MEMORY] <= result[Probe.STALL_BACKEND] < result.cycles
    assert result[Probe.STALL_FRONTEND] + result[Probe.STALL_BACKEND] < result.cycles
    for cycles, begins in STALLS.items():
        assert 0 < result[begins] <= result[cycles]
    # each that is of both begins once; and dispatch goes on between any two
    both = result[Probe.STALL_FRONTEND_BEGINS] + result[Probe.STALL_BACKEND_BEGINS]
    assert 0 < result[Probe.STALL_BEGINS] <= both
    assert result[Probe.STALL_BEGINS] <= result.cycles - result[Probe.STALL_FRONTEND] - result[Probe.STALL_BACKEND] + 1
    assert result[Probe.CYCLES_RETIRING] <= result.cycles


def test_ideal_takes_one_cycle_for_each_instruction_and_feeds_the_caches() -> None:
    ops = [load(1), alu(2, 1), store(2), op("DIV64", [3], [2]), branch()]
    result = run(machine("ideal", {"l1i": {"size": 4096, "ways": 4, "latency": 1}}), ops, 100)
    assert result.cycles == 500
    assert (result[Probe.L1D_ACCESS_LOAD], result[Probe.L1D_ACCESS_STORE]) == (100, 100)
    assert result[Probe.L1I_REFILL] == 1
    assert result[Probe.UOPS_RETIRED] == result[Probe.CYCLES_RETIRING] == 500


def test_the_models_are_known_by_name() -> None:
    assert _native.pipeline_names() == sorted(MODELS)


def test_code_of_both_kinds_can_be_simulated() -> None:
    # add x0, x0, x1; subs x2, x2, #1; b.ne
    code = bytes.fromhex("0000018b 420400f1 c1ffff54")
    config = machine("out_of_order")
    answer = _native.simulate("aarch64", config, code, 100)
    assert answer["cycles"] == 99 + 3  # one taken branch a cycle; the last: dispatch, subs, b.ne


def damaged(model: str, path: str, value: object) -> Config:
    config = machine(model, {"l1d": {"size": 32768, "ways": 8, "latency": 4}})
    table = config
    *tables, key = path.split(".")
    for name in tables:
        table = table[name]
    if value is None:
        del table[key]
    else:
        table[key] = value
    return config


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("pipeline.model", "quantum", r'pipeline.model: "quantum" is no pipeline model: there are ideal, in_order, '),
        ("pipeline.ports", ["P0", "P0"], r"pipeline.ports: 'P0' is there twice"),
        ("pipeline.ports", ["P0"], r"there is no port 'P1' in pipeline.ports: P0"),
        ("pipeline.load_ports", ["P9"], r"pipeline.load_ports: there is no port 'P9' in pipeline.ports: P"),
        ("pipeline.load_ports", None, r"pipeline.load_ports: missing"),
        ("pipeline.rob_entries", 0, r"pipeline.rob_entries: 0, must be at least 8"),
        ("pipeline.dispatch_width", None, r"pipeline.dispatch_width: missing"),
        ("pipeline.fuses", ["branches"], r"pipeline.fuses: there is no 'branches', but compare_branch"),
        ("pipeline.eliminates", ["all"], r"pipeline.eliminates: there is no 'all', but move"),
        ("pipeline.fetch_bytes", "many", r"pipeline.fetch_bytes: is not an integer"),
        ("pipeline.schedulers", {"one": {"entries": 4, "ports": []}}, r"pipeline.schedulers.one.ports: missing"),
        (
            "pipeline.schedulers",
            {"one": {"entries": 4, "ports": ["P0"]}, "two": {"entries": 4, "ports": ["P0"]}},
            r"pipeline.schedulers.two.ports: one of them has a scheduler already",
        ),
        ("ops.ALU.latency", 0, r"ops.ALU.latency: 0, must be at least 1"),
        ("ops.ALU.ports", ["P9"], r"ops.ALU.ports: there is no port 'P9'"),
        ("ops.ALU.ports", None, r"ops.ALU.ports: missing; \[\] for none"),
        ("ops.ALU.also", ["P1*x"], r"ops.ALU.also: 'P1\*x', must be like"),
        ("ops.MUL_ADD64.accumulate_latency", 9, r"accumulate_latency: 9, must be at most the latency, 4"),
        ("ops.ADD", {"latency": 1, "ports": []}, r"ops.ADD: there is no such class"),
        ("ops.ALU", None, r"ops.ALU: missing, but the program has such an instruction"),
        ("ops.ALU.width", {"3": {"latency": 1}}, r"ops.ALU.width.3"),
    ],
)
def test_wrong_configuration_is_named(path: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(damaged("out_of_order", path, value), [alu(0)])


def test_wrong_pairing_rules_are_named() -> None:
    with pytest.raises(ValueError, match=r"pipeline.load_dual_issue: 'third', must be both, first, second or none"):
        run(damaged("in_order", "pipeline.load_dual_issue", "third"), [alu(0)])
    with pytest.raises(ValueError, match=r"pipeline.issue_width: 0, must be at least 1"):
        run(damaged("in_order", "pipeline.issue_width", 0), [alu(0)])
