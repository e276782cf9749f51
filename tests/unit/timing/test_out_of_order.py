"""The out-of-order pipeline: counts of cycles that can be derived by hand.

The first instruction is dispatched in cycle 0. A micro-op issues in the cycle after its dispatch at the earliest, and
its result can be used `latency` cycles after that; the run ends when the last instruction has retired.
"""

from __future__ import annotations

import pytest

from emulator.probes import Probe
from tests.unit.timing.loops import (
    FLAGS,
    PORTS,
    VECTOR,
    alu,
    branch,
    compare,
    load,
    machine,
    op,
    run,
    store,
)

MODEL = "out_of_order"
# 100 cycles for every line that is accessed for the first time.
MISSES = {"l1d": {"size": 65536, "ways": 16, "latency": 4}, "memory": {"latency": 100}}
NEW_LINES = (0x100000, 64, 0)  # an address pattern: each iteration another line


def test_a_chain_takes_its_latencies() -> None:
    # Issue in cycle 1, then one after the other.
    assert run(machine(MODEL), [alu(0, 0)], 100).cycles == 1 + 100
    assert run(machine(MODEL), [op("MUL64", [0], [0])], 100).cycles == 1 + 300


def test_independent_instructions_are_limited_by_their_ports() -> None:
    # Two ports: cycles 1 to 50; the last result in 51.
    config = machine(MODEL, {"ops": {"ALU": {"latency": 1, "ports": ["P0", "P1"]}}})
    assert run(config, [alu(0)], 100).cycles == 51


def test_independent_instructions_are_limited_by_dispatch() -> None:
    # Four a cycle: the last four in cycle 24, issued in 25, done in 26.
    assert run(machine(MODEL, dispatch_width=4), [alu(0)], 100).cycles == 26


def test_a_flexible_instruction_leaves_the_port_that_others_need() -> None:
    # Each cycle one multiplication, which only P0 can, and three ALU operations, which four ports can: one cycle.
    ports = ["P0", "P1", "P2", "P3"]
    config = machine(MODEL, {"ops": {"ALU": {"latency": 1, "ports": ports}}}, dispatch_width=4)
    # The last: dispatched in cycle 99, issued in 100, done in 103.
    assert run(config, [op("MUL64", [1], []), alu(2), alu(3), alu(4)], 100).cycles == 103


def test_a_waiting_instruction_does_not_block_its_port_for_younger_ones() -> None:
    # The load's user multiplies in cycle 101; the 50 others in cycles 1 to 50.
    ops = [load(1), op("MUL64", [2], [1]), *[op("MUL64", [3], [4])] * 50]
    assert run(machine(MODEL, MISSES), ops).cycles == 1 + 100 + 3


def test_a_divider_is_busy() -> None:
    # Independent divisions, each of which keeps the only port for its 10 cycles.
    result = run(machine(MODEL), [op("DIV64", [1], [2])], 20)
    assert result.cycles == 1 + 200
    assert result[Probe.DIVIDER_ACTIVE] == 200


def test_a_port_of_its_own_for_the_divider() -> None:
    # The divider is busy for 6 of the 10 cycles, P0 for one: an ALU operation on P0 goes in between.
    ops = {
        "DIV64": {"latency": 10, "ports": ["P0"], "also": ["P7@6"], "micro_ops": 1},
        "ALU": {"latency": 1, "ports": ["P0"]},
    }
    result = run(machine(MODEL, {"ops": ops}), [op("DIV64", [1], [2]), alu(3)], 20)
    assert result.cycles == 1 + 19 * 6 + 10
    assert result[Probe.UOPS_RETIRED] == 40


def test_micro_ops_take_slots_and_ports() -> None:
    # Three micro-ops, two of them on P1: one instruction every two cycles. The 50th issues in cycles 99 and 100.
    config = machine(MODEL, {"ops": {"ALU": {"latency": 1, "ports": ["P0"], "also": ["P1*2"]}}})
    result = run(config, [alu(0)], 50)
    assert result.cycles == 101
    assert result[Probe.UOPS_RETIRED] == 150


def test_the_addend_of_a_multiply_add_may_come_late() -> None:
    # From addend to result one cycle; the first takes all four.
    op_row = op("MUL_ADD64", [0], [1, 2, 0], accumulator=0)
    assert run(machine(MODEL), [op_row], 100).cycles == 1 + 4 + 99


def test_the_same_unit_may_have_a_result_sooner() -> None:
    # From addition to addition two cycles, from and to others three; a load's data are as late as ever.
    ops = {"FP_ADD": {"latency": 3, "chain_latency": 2, "ports": ["P0"]}, "FP_MUL": {"latency": 3, "ports": ["P1"]}}
    config = machine(MODEL, {"ops": ops})
    add, multiply = (op(name, [VECTOR], [VECTOR]) for name in ("FP_ADD", "FP_MUL"))
    assert run(config, [add], 100).cycles == 1 + 99 * 2 + 3
    assert run(config, [add, multiply], 100).cycles == 1 + 600
    assert run(config, [add, add, multiply], 100).cycles == 1 + 800
    assert run(config, [add, op("ALU", [VECTOR], [VECTOR])], 100).cycles == 1 + 400
    # Another result at the same moment in the register is not the unit's.
    assert run(config, [add, op("FP_MUL", [VECTOR], [5]), add]).cycles == 1 + 3 + 3


def test_a_renamer_adds_small_constants() -> None:
    add = op("ALU", [0], [0], "adds_little", "compares")
    assert run(machine(MODEL), [add], 80).cycles == 1 + 80
    config = machine(MODEL, eliminates=["add_constant"])
    assert run(config, [add], 80).cycles == 80 // 8  # eight slots a cycle, and nothing else
    # Where a branch is fused with it, it is executed.
    config["pipeline"]["fuses"] = ["arithmetic_branch"]
    assert run(config, [add, branch()], 80, taken=[False]).cycles == 1 + 80


def test_a_move_and_the_computation_on_it_are_one() -> None:
    move = op("MOVE", [1], [2], "eliminable_move")
    pair = [move, op("ALU", [1], [1, 3], "fuses_with_move")]
    config = machine(MODEL, eliminates=["move"])
    apart = run(config, pair, 80)
    config["pipeline"] |= {"fuses": ["move_computation"], "decode_width": 16, "fetch_bytes": 64}
    fused = run(config, pair, 80)
    assert (apart[Probe.UOPS_RETIRED], fused[Probe.UOPS_RETIRED]) == (160, 80)
    assert (apart.cycles, fused.cycles) == (160 // 8 + 1, 80 // 8 + 1)
    # Not with what computes on another register, nor with something in between.
    for other in ([move, op("ALU", [4], [1, 3], "fuses_with_move")], [move, alu(5), pair[1]]):
        assert run(config, other, 80)[Probe.UOPS_RETIRED] == 80 * len(other)
    # The same of a load, whose store is not predicted then.
    load_pair = [load(1) | {"flags": ["loads", "loads_whole"]}, op("ALU", [1], [1], "fuses_with_load")]
    assert run(config, load_pair, 80)[Probe.UOPS_RETIRED] == 80
    config["pipeline"] |= {"predicted_forward_cycles": 0, "predicted_forwards": "unindexed"}
    assert run(config, [store(1), *load_pair], 50, addresses=[(0x1000, 0, 0)] * 2).cycles > 50 * 5


def test_operands_of_other_widths_have_rows_of_their_own() -> None:
    config = machine(MODEL, {"ops": {"MUL64": {"latency": 3, "ports": ["P0"], "width": {"4": {"latency": 2}}}}})
    assert run(config, [op("MUL64", [0], [0], width_bytes=4)], 100).cycles == 1 + 200
    assert run(config, [op("MUL64", [0], [0], width_bytes=8)], 100).cycles == 1 + 300


def test_a_pointer_chase_takes_the_load_latency() -> None:
    assert run(machine(MODEL), [load(0, 0)], 100).cycles == 1 + 400
    vectors = machine(MODEL, vector_load_extra_cycles=2)
    # To a vector register and back: 4 + 2 and, from the vector, 3.
    ops = [load(VECTOR, 0), op("MUL64", [0], [VECTOR])]
    assert run(vectors, ops, 100).cycles == 1 + 900
    scaled = machine(MODEL, complex_address_extra_cycles=1)
    assert run(scaled, [load(0, 0) | {"flags": ["loads", "complex_address"]}], 100).cycles == 1 + 500


def test_misses_overlap_as_far_as_the_rob_reaches() -> None:
    # Eight loads are dispatched together, issue a cycle later and are back after 100. Then the next eight.
    config = machine(MODEL, MISSES, rob_entries=8)
    result = run(config, [load(1)], 80, addresses=[NEW_LINES])
    assert result.cycles == 10 * 101
    # Dispatch waits from cycle 1 on, since the eight went in cycle 0: 100 cycles, nine times; the last ones drain.
    assert result[Probe.STALL_ROB] == 9 * 100
    assert result[Probe.STALL_BACKEND_MEMORY] == result[Probe.STALL_BACKEND] == 10 * 100
    assert result[Probe.STALL_BACKEND_MEMORY_BEGINS] == result[Probe.STALL_BACKEND_BEGINS] == 10


def test_misses_overlap_as_far_as_the_load_queue_reaches() -> None:
    config = machine(MODEL, MISSES, load_queue=4)
    result = run(config, [load(1)], 80, addresses=[NEW_LINES])
    assert result.cycles == 20 * 101
    assert result[Probe.STALL_LOAD_QUEUE] > 0


def test_misses_overlap_as_far_as_the_schedulers_reach() -> None:
    # Four users of the load's result fill the scheduler. They issue in cycle 101, when the fifth is dispatched.
    config = machine(MODEL, MISSES, scheduler_entries=4)
    result = run(config, [load(1), *[alu(2, 1)] * 4, alu(3)])
    # All five fit into cycle 0 but the load has its own entry until cycle 1: the last user is dispatched in 1.
    assert result.cycles == 101 + 2
    assert result[Probe.STALL_SCHEDULER] == 1 + 100


def test_schedulers_of_their_own_do_not_stand_in_each_others_way() -> None:
    schedulers = {"one": {"entries": 2, "ports": ["P0"]}, "other": {"entries": 2, "ports": PORTS[1:]}}
    ops = {"ALU": {"latency": 1, "ports": ["P1"]}}
    config = machine(MODEL, MISSES | {"ops": ops}, schedulers=schedulers, load_ports=["P7"])
    # Two multiplications wait in `one` for the load; ALU operations pass through `other`, one a cycle.
    stream = [load(1), op("MUL64", [2], [1]), op("MUL64", [2], [1]), *[alu(3)] * 50]
    result = run(config, stream)
    assert result.cycles == 101 + 1 + 3  # P0 starts them in cycles 101 and 102
    assert result[Probe.STALL_SCHEDULER] < 60


def test_stores_are_answered_before_they_are_written() -> None:
    # The data are there in cycle 1, the load's result in 1 + 5, which is the next store's data.
    result = run(machine(MODEL), [store(0), load(0)], 50, addresses=[(0x1000, 0, 0)] * 2)
    assert result.cycles == 1 + 50 * 5
    assert result[Probe.STORE_FORWARD] == 50


def test_a_load_finds_the_store_of_its_half() -> None:
    # Two stores of four bytes in one piece of eight: the load wants the older one's.
    ops = [store(0, width_bytes=4), store(5, width_bytes=4), load(0, width_bytes=4)]
    result = run(machine(MODEL), ops, 50, addresses=[(0x1000, 0, 0), (0x1004, 0, 0), (0x1000, 0, 0)])
    assert result.cycles == 1 + 50 * 5
    assert result[Probe.STORE_FORWARD] == 50


def test_stack_accesses_may_be_answered_faster() -> None:
    config = machine(MODEL, stack_forward_cycles=1)
    by_stack = run(config, [store(0, 4), load(0, 4)], 50, addresses=[(0x1000, 0, 0)] * 2)
    by_other = run(config, [store(0, 6), load(0, 6)], 50, addresses=[(0x1000, 0, 0)] * 2)
    assert by_other.cycles == 1 + 50 * 5
    assert by_stack.cycles < by_other.cycles / 2


def test_predicted_answers_take_no_time() -> None:
    # Eight times as ever, then the data of the one store are those of the next.
    config = machine(MODEL, predicted_forward_cycles=0)
    same = [(0x1000, 0, 0)] * 2
    assert run(config, [store(0), load(0)], 30, addresses=same).cycles == 1 + 8 * 5 + 1
    # Not of part of it, not of less than four bytes, and not to a computation that is not stored.
    for ops in (
        [store(0), load(0, width_bytes=4) | {"address_sources": [20]}],
        [store(0, width_bytes=2), load(0, width_bytes=2)],
        [store(VECTOR), load(VECTOR)],
        [store(0), op("ALU", [0], [], "loads", address_sources=[20])],
    ):
        places = [(0x1000, 0, 0), (0x1004 if ops[1].get("width_bytes") == 4 else 0x1000, 0, 0)]
        assert run(config, ops, 50, addresses=places).cycles > 50 * 5


def test_predicted_answers_by_a_base_register_alone() -> None:
    # Of any size, and to a computation; not with an index and not without a register.
    config = machine(MODEL, predicted_forward_cycles=0, predicted_forwards="unindexed")
    same = [(0x1000, 0, 0)] * 2
    computes = op("ALU", [0], [], "loads", address_sources=[20])
    for ops, computing in (
        ([store(0), load(0)], 0),
        ([store(0, width_bytes=2), load(0, width_bytes=2)], 0),
        ([store(0), computes], 50),
    ):
        # Eight times as ever, then the data are there at once.
        assert run(config, ops, 50, addresses=same).cycles <= 1 + 8 * 5 + computing + 2
    for ops in (
        [store(0) | {"flags": ["stores", "complex_address"]}, load(0)],
        [store(0), load(0) | {"flags": ["loads", "complex_address"]}],
        [store(0), load(0) | {"address_sources": []}],
    ):
        assert run(config, ops, 50, addresses=same).cycles > 50 * 5


def test_an_answer_from_another_distance_was_not_predicted() -> None:
    # The load finds the last store but one in every sixth round.
    config = machine(MODEL, predicted_forward_cycles=0)
    line = [0x1000] * 5 + [0x1008]
    result = run(config, [store(0), load(0)], 60, addresses=[line, (0x1000, 0, 0)])
    assert result.cycles > 30 * 5


def test_a_store_that_covers_a_load_in_part_must_be_written_first() -> None:
    # The store's micro-op issues in cycle 1, it retires in 2, is in the cache 4 later, and 10 are added.
    config = machine(MODEL, store_forward_blocked_cycles=10)
    result = run(config, [store(0, width_bytes=4), load(1, width_bytes=8)], addresses=[(0x1000, 0, 0)] * 2)
    assert result.cycles == 2 + 4 + 10
    assert result[Probe.STORE_FORWARD_BLOCKED] == 1


def test_a_load_after_a_store_in_another_page_at_the_same_offset() -> None:
    ops = [store(0), load(1)]
    addresses = [(0x1000, 0, 0), (0x5000, 0, 0)]
    without = run(machine(MODEL), ops, addresses=addresses)
    result = run(machine(MODEL, alias_4k_cycles=7), ops, addresses=addresses)
    assert (without.cycles, without[Probe.ALIAS_4K]) == (1 + 4, 0)
    assert (result.cycles, result[Probe.ALIAS_4K]) == (1 + 4 + 7, 1)
    elsewhere = run(machine(MODEL, alias_4k_cycles=7), ops, addresses=[(0x1000, 0, 0), (0x5008, 0, 0)])
    assert elsewhere.cycles == 1 + 4


def test_the_store_buffer_is_emptied_in_order() -> None:
    # One store a cycle reaches the cache, each takes 4 cycles; two entries: two stores every 5 cycles or fewer.
    result = run(machine(MODEL, store_buffer=2), [store(0)], 100)
    assert result[Probe.STALL_STORE_BUFFER] > 100
    assert result.cycles > 200
    # With room the slowest thing is one write a cycle, which nobody waits for.
    assert run(machine(MODEL, dispatch_width=1), [store(0)], 100).cycles == 100 + 1


def test_stores_to_one_line_may_be_written_together() -> None:
    # Dispatch waits for room: one store a cycle, or two of one line.
    config = machine(MODEL, store_buffer=16)
    two = [store(0), store(1)]
    same, other = [(0x1000, 0, 0), (0x1008, 0, 0)], [(0x1000, 0, 0), (0x2000, 0, 0)]
    assert run(config, two, 400, addresses=same).cycles == pytest.approx(800, abs=20)
    config["pipeline"]["line_stores_per_cycle"] = 2
    assert run(config, two, 400, addresses=same).cycles == pytest.approx(400, abs=20)
    assert run(config, two, 400, addresses=other).cycles == pytest.approx(800, abs=20)


def test_a_misprediction_costs_the_refill() -> None:
    # Dispatch d; compare issues d + 1, branch d + 2, its result d + 3; 10 more until the next dispatch.
    config = machine(MODEL, {"branch": {"direction": "always_taken"}})
    result = run(config, [compare(1), branch()], 20, taken=[False])
    assert result.cycles == 19 * 13 + 3
    assert result[Probe.BR_MISPREDICTED] == 20
    assert result[Probe.SLOTS_BAD_SPECULATION] == 19 * (13 * 8 - 2)
    right = run(config, [compare(1), branch()], 20, taken=[True])
    assert right[Probe.SLOTS_BAD_SPECULATION] == 0
    assert right.cycles == 19 + 3  # a taken branch a cycle


def test_a_taken_branch_ends_the_cycles_fetch() -> None:
    ops = [alu(1), branch()]
    # The last iteration: dispatch, issue one later, result one later.
    assert run(machine(MODEL), ops, 100).cycles == 99 + 2
    assert run(machine(MODEL, taken_branch_bubble=2), ops, 100).cycles == 99 * 3 + 2
    assert run(machine(MODEL, taken_branches_per_cycle=2), ops, 100).cycles == 49 + 2


def test_branches_may_have_bubbles_of_their_own() -> None:
    ops = [alu(1), branch()]
    indirect = op("BRANCH", [], [], branch=3)
    assert run(machine(MODEL), [indirect], 100).cycles == 99 + 2
    assert run(machine(MODEL, indirect_branch_bubble=1), [indirect], 100).cycles == 2 * 99 + 2
    assert run(machine(MODEL, indirect_branch_bubble=1), ops, 100).cycles == 99 + 2


def test_a_short_loop_may_be_fetched_once() -> None:
    # Two instructions across a piece's end: two cycles each time, and one for a taken branch at least.
    config = machine(MODEL, fetch_bytes=16, fetch_aligned=True)
    ops = [alu(0), branch()]
    assert run(config, ops, 100, address=0x1000C).cycles == pytest.approx(200, abs=3)
    config["pipeline"]["loop_stream"] = True
    # Eight slots a cycle.
    assert run(config, ops, 100, address=0x1000C).cycles == pytest.approx(200 / 8, abs=3)


def test_fetch_brings_so_many_bytes() -> None:
    # Eight slots, but 16 bytes: four instructions of four bytes.
    result = run(machine(MODEL, fetch_bytes=16), [alu(0)], 400)
    assert result.cycles == 99 + 2
    assert result[Probe.SLOTS_FRONTEND] == 99 * 4
    # In aligned pieces, a loop of two that lies across a border needs two.
    across = run(machine(MODEL, fetch_bytes=16, fetch_aligned=True), [alu(0), branch()], 100, address=0x1000C)
    assert across.cycles == 99 * 2 + 1 + 2


def test_retirement_takes_so_many_slots() -> None:
    # 40 instructions are done when the load in front of them is, in cycle 101; two of the 41 retire in each cycle.
    result = run(machine(MODEL, MISSES, retire_width=2), [load(1), *[alu(2)] * 40])
    assert result.cycles == 101 + 20


def test_fetch_waits_for_lines() -> None:
    # One line of code fits: each of the loop's two comes anew, 100 cycles later, 99 after a hit's.
    tables = {"l1i": {"size": 64, "ways": 1, "latency": 1}, "memory": {"latency": 100}}
    result = run(machine(MODEL, tables), [alu(0)] * 32, 10)
    # 16 instructions need two cycles of 32 bytes, the second of which asks for the next line: one every 100 cycles. The
    # first is there in cycle 99, the last in 1999, its second half in 2000.
    assert result.cycles == 2000 + 2
    assert result[Probe.L1I_REFILL] == 20
    assert result[Probe.SLOTS_FRONTEND_LATENCY] == result[Probe.STALL_FRONTEND] * 8 == (99 + 19 * 98) * 8


def test_decoding_so_many_instructions_a_cycle() -> None:
    assert run(machine(MODEL, decode_width=2), [alu(0)], 100).cycles == 49 + 2


def test_compare_and_branch_go_through_as_one() -> None:
    config = machine(MODEL, dispatch_width=1, decode_width=8, fuses=["compare_branch"])
    pair = [compare(1), branch()]
    result = run(config, pair, 100)
    assert (result.cycles, result[Probe.FUSED], result[Probe.UOPS_RETIRED]) == (99 + 2, 100, 100)
    # An ALU operation that also writes its result is no plain compare.
    flags_too = [op("ALU", [1, FLAGS], [1], "compares"), branch()]
    assert run(config, flags_too, 100)[Probe.FUSED] == 0
    config["pipeline"]["fuses"] = ["arithmetic_branch"]
    assert run(config, flags_too, 100)[Probe.FUSED] == 100
    # Something in between.
    assert run(config, [compare(1), alu(2), branch()], 100)[Probe.FUSED] == 0


def test_a_pair_takes_a_port_of_branches() -> None:
    config = machine(MODEL, {"ops": {"BRANCH": {"latency": 1, "ports": ["P0"]}}}, fuses=["compare_branch"])
    # They issue in cycles 1 to 100. Not fused, the comparisons go anywhere, and the branches one cycle later.
    assert run(config, [compare(1), branch()], 100, taken=[False]).cycles == 1 + 100
    config["pipeline"]["fuses"] = []
    assert run(config, [compare(1), branch()], 100, taken=[False]).cycles == 2 + 100


def test_a_pair_with_a_result_takes_a_port_of_both() -> None:
    both = {"ALU": {"latency": 1, "ports": ["P1", "P2"]}, "BRANCH": {"latency": 1, "ports": ["P0", "P1"]}}
    config = machine(MODEL, {"ops": both}, fuses=["arithmetic_branch"])
    with_result = [op("ALU", [1, FLAGS], [2], "compares"), branch()]
    assert run(config, with_result, 100, taken=[False]).cycles == 1 + 100  # P1
    assert run(config, [compare(1), branch()], 100, taken=[False]).cycles == 1 + 50  # P0 and P1


def test_aes_rounds_fuse() -> None:
    state, key = VECTOR, VECTOR + 1
    ops = [
        op("AES", [state], [state, key], "aes_round"),
        op("AES_MIX", [state], [state], "fuses_with_aes_round"),
    ]
    assert run(machine(MODEL), ops, 100).cycles == 1 + 400
    fused = run(machine(MODEL, fuses=["aes"]), ops, 100)
    assert (fused.cycles, fused[Probe.FUSED]) == (1 + 200, 100)


def test_moves_that_the_renamer_does_take_no_time() -> None:
    ops = [alu(0, 0), op("MOVE", [1], [0], "eliminable_move"), op("MOVE", [0], [1], "eliminable_move")]
    assert run(machine(MODEL), ops, 100).cycles == 1 + 300
    result = run(machine(MODEL, eliminates=["move"]), ops, 100)
    assert (result.cycles, result[Probe.MOVE_ELIMINATED]) == (1 + 100, 200)
    # Only one of the two in a cycle; with three slots both are always in one.
    limited = machine(MODEL, eliminates=["move"], eliminated_moves_per_cycle=1, dispatch_width=3)
    assert run(limited, ops, 100).cycles == 1 + 200


def test_zeroing_breaks_the_chain() -> None:
    # Independent of the register's value, whether the renamer does it or a port.
    ops = [op("DIV64", [0], [0]), op("ZERO", [0], [])]
    eliminated = run(machine(MODEL, eliminates=["zero"]), [op("MUL64", [0], [0]), op("ZERO", [0], [])], 100)
    assert eliminated.cycles == 1 + 99 + 3  # one multiplication a cycle on P0
    assert run(machine(MODEL), ops, 10).cycles == 1 + 100


def test_slots_of_memory_operands() -> None:
    read_modify_write = [op("ALU", [], [1], "loads", "stores", address_sources=[20])]
    addresses = [(0x1000, 64, 0)] * 2
    # Load, computation, address, data; fused: load with computation, address with data.
    apart = run(machine(MODEL, store_data_ports=["P7"]), read_modify_write, 10, addresses=addresses)
    fused = run(machine(MODEL, store_data_ports=["P7"], micro_fusion=True), read_modify_write, 10, addresses=addresses)
    assert (apart[Probe.UOPS_RETIRED], fused[Probe.UOPS_RETIRED]) == (40, 20)
    # 32 bytes in micro-ops of 16 each.
    pair = run(machine(MODEL), [load(VECTOR, width_bytes=16, lanes_loaded=2)], 10)
    assert pair[Probe.UOPS_RETIRED] == 20


def test_address_updates() -> None:
    # Chains through the base register: with ports of its own one cycle, without them (a stack engine) none.
    post_index = [load(1, 20, write_back=20)]
    assert run(machine(MODEL, write_back_ports=["P7"]), post_index, 100).cycles == 1 + 99 + 4
    free = run(machine(MODEL, dispatch_width=4), post_index, 100)
    assert free.cycles == 24 + 1 + 4
    assert free[Probe.UOPS_RETIRED] == 100


def test_nothing_passes_what_serializes() -> None:
    # The division is done in cycle 11; the serializing instruction is then dispatched, issues in 12, is done in 13;
    # only then the next is dispatched.
    result = run(machine(MODEL), [op("DIV64", [0], [1]), op("SERIALIZE", [], [], "serializes"), alu(2)])
    assert result.cycles == 11 + 2 + 2


def test_repeated_instructions_take_time_by_iterations() -> None:
    # A store of 8 bytes in each: one write-out a cycle is not waited for, RDI's chain is: one cycle each.
    stos = [op("STRING", [7], [0, 7], "stores", "repeated", address_sources=[7])]
    single = run(machine(MODEL), stos, 1, repeats=64)
    assert 64 <= single.cycles <= 64 + 3
    # 32 bytes at once: 16 micro-ops; the caches get all 64 accesses.
    fast = run(machine(MODEL, repeat_bytes=32), stos, 1, repeats=64)
    assert 16 <= fast.cycles <= 16 + 3
    assert single[Probe.L1D_ACCESS_STORE] == fast[Probe.L1D_ACCESS_STORE] == 64
    late = run(machine(MODEL, repeat_bytes=32, repeat_start_cycles=20), stos, 1, repeats=64)
    assert late.cycles == fast.cycles + 20
