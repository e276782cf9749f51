"""The in-order pipeline: counts of cycles that can be derived by hand.

The first instruction issues in cycle 0; a result can be used `latency` cycles after its issue; the run ends when the
last result is there.
"""

from __future__ import annotations

import pytest

from emulator.probes import Probe
from tests.unit.timing.loops import VECTOR, alu, branch, compare, load, machine, op, run, store

MODEL = "in_order"
MISSES = {"l1d": {"size": 65536, "ways": 16, "latency": 4}, "memory": {"latency": 100}}


def test_two_instructions_issue_in_a_cycle() -> None:
    assert run(machine(MODEL), [alu(0)], 100).cycles == 50
    assert run(machine(MODEL, issue_width=1), [alu(0)], 100).cycles == 100


def test_a_chain_takes_its_latencies() -> None:
    assert run(machine(MODEL), [alu(0, 0)], 100).cycles == 100
    assert run(machine(MODEL), [op("MUL64", [0], [0])], 100).cycles == 300


def test_what_waits_holds_up_the_others() -> None:
    # The second waits until cycle 3 for the first; the third issues with it, though it waits for nothing.
    assert run(machine(MODEL), [op("MUL64", [0], []), alu(1, 0), alu(2)]).cycles == 4
    # A multiplication at the end: its result is 3 later.
    assert run(machine(MODEL), [op("MUL64", [0], []), alu(1, 0), op("MUL64", [2], [])]).cycles == 3 + 3


def test_pairs_share_no_port() -> None:
    config = machine(MODEL, load_ports=["P0"], store_address_ports=["P1"])
    # Two loads: two cycles. The last result comes 4 cycles after its issue in cycle 99.
    assert run(config, [load(1)], 100).cycles == 99 + 4
    # A load and a store pair.
    assert run(config, [load(1), store(2)], 100).cycles == 99 + 4


@pytest.mark.parametrize(
    ("rule", "cycles"),
    # Six instructions, of which the second, fourth and sixth have a rule. Either: three pairs. First: it begins a new
    # cycle, with the next one after it: 1, 2, 2, 1. Second: three pairs. None: each alone.
    [("both", 3), ("first", 4), ("second", 3), ("none", 6)],
)
def test_pairing_rules(rule: str, cycles: int) -> None:
    config = machine(MODEL, {"ops": {"FP_ADD": {"latency": 1, "ports": ["P0", "P1"], "dual_issue": rule}}})
    assert run(config, [alu(0), op("FP_ADD", [VECTOR], [])], 3).cycles == cycles


def test_loads_may_have_a_pairing_rule() -> None:
    # Each second cycle a load, the last one in 18.
    assert run(machine(MODEL, load_dual_issue="none"), [load(1), alu(2)], 10).cycles == 18 + 4
    assert run(machine(MODEL), [load(1), alu(2)], 10).cycles == 9 + 4


def test_a_divider_is_busy() -> None:
    assert run(machine(MODEL), [op("DIV64", [1], [2])], 20).cycles == 200


def test_load_to_use() -> None:
    # A user waits for the load's 4 cycles; as an address the result is needed one cycle earlier.
    assert run(machine(MODEL), [load(0, 0)], 100).cycles == 400
    assert run(machine(MODEL, address_extra_cycles=1), [load(0, 0)], 100).cycles == 99 * 5 + 4
    assert run(machine(MODEL, address_extra_cycles=1), [load(0), alu(1, 0)]).cycles == 5


def test_store_data_may_come_late() -> None:
    # The store issues with or 2 cycles before the multiplication's result, and is through a cycle later.
    ops = [op("MUL64", [0], []), store(0)]
    config = machine(MODEL, store_data_late_cycles=2)
    assert run(machine(MODEL), ops).cycles == 3 + 1
    assert run(config, ops).cycles == 3  # the multiplication's own result


def test_the_addend_may_come_late() -> None:
    assert run(machine(MODEL), [op("MUL_ADD64", [0], [1, 2, 0], accumulator=0)], 100).cycles == 99 + 4


def test_misses_block_or_do_not() -> None:
    ops = [load(1), load(2)]
    addresses = [(0x1000, 0, 0), (0x2000, 0, 0)]
    assert run(machine(MODEL, MISSES), ops, addresses=addresses).cycles == 100
    blocked = run(machine(MODEL, MISSES, blocking_misses=True), ops, addresses=addresses)
    assert blocked.cycles == 200
    assert blocked[Probe.SLOTS_BACKEND_MEMORY] > 0
    few = {"l1d": {"size": 65536, "ways": 16, "latency": 4, "mshrs": 1}, "memory": {"latency": 100}}
    assert run(machine(MODEL, few), ops, addresses=addresses).cycles == 200


def test_waiting_for_a_load_is_waiting_for_memory() -> None:
    result = run(machine(MODEL, MISSES), [load(1), alu(2, 1)])
    # Cycle 0 issues the load, 1 to 99 nothing.
    assert result.cycles == 101
    assert result[Probe.STALL_BACKEND] == result[Probe.STALL_BACKEND_MEMORY] == 99
    assert result[Probe.STALL_BACKEND_BEGINS] == result[Probe.STALL_BACKEND_MEMORY_BEGINS] == 1


def test_a_stall_that_goes_on_begins_once() -> None:
    """It waits from cycle 1 to 99 for the load, and, without a cycle between, four more for the microcode; for the
    second load, issued in 104 with the ALU's instruction, another time."""
    ops = [load(1), alu(2, 1) | {"flags": ["microcoded"]}]
    result = run(machine(MODEL, MISSES, microcode_cycles=4), ops, 2, addresses=[(0x1000, 64, 0)])
    assert result[Probe.STALL_BACKEND_BEGINS] == 2
    assert result[Probe.STALL_BEGINS] == 2
    assert result[Probe.STALL_BACKEND_MEMORY] == 2 * 99
    assert result[Probe.STALL_BACKEND] == 2 * (99 + 4)


def test_stores_wait_for_room() -> None:
    # Two entries, each for 4 cycles and the one before its write.
    result = run(machine(MODEL, store_buffer=2), [store(0)], 100)
    assert result[Probe.STALL_STORE_BUFFER] > 0
    assert run(machine(MODEL), [store(0)], 20).cycles == 10


def test_a_misprediction_costs_the_refill() -> None:
    # Compare in cycle t, branch in t + 1, its result in t + 2; 10 more.
    config = machine(MODEL, {"branch": {"direction": "always_taken"}})
    result = run(config, [compare(1), branch()], 20, taken=[False])
    assert result.cycles == 19 * 12 + 2
    # The slot beside the compare is lost to the branch's wait for it.
    assert result[Probe.SLOTS_BAD_SPECULATION] == 19 * (11 * 2 - 1)


def test_taken_branches_have_bubbles() -> None:
    ops = [alu(0), branch()]
    assert run(machine(MODEL), ops, 100).cycles == 100
    assert run(machine(MODEL, taken_branch_bubble=1), ops, 100).cycles == 199


def test_pairs_that_fuse_issue_as_one() -> None:
    result = run(machine(MODEL, issue_width=1, fuses=["compare_branch"]), [compare(1), branch()], 100)
    assert (result.cycles, result[Probe.FUSED]) == (100, 100)


def test_nothing_passes_what_serializes() -> None:
    # After the division, in cycle 10; done in 11, when the next issues.
    assert run(machine(MODEL), [op("DIV64", [0], [1]), op("SERIALIZE", [], [], "serializes"), alu(2)]).cycles == 12
