"""Programs and maps that would keep the host busy: they are refused, or come to an end."""

from __future__ import annotations

import pytest

from emulator.linux.errors import E2BIG, EINVAL, ENOMEM, LinuxError
from perfcore.abi.bpf import MapFlag, MapType
from perfcore.bpf.instructions import (
    ADD,
    ALU64,
    CALL_OPCODE,
    EXIT_OPCODE,
    JA,
    JEQ,
    JLT,
    JMP,
    JSET,
    LDX,
    LOAD_IMM64,
    MEM,
    MOV,
    OR,
    PSEUDO_FUNC,
    Instruction,
)
from perfcore.bpf.refusal import Refusal
from perfcore.bpf.run import BUDGET
from perfcore.bpf.verifier import verifier
from unit.bpf.programs import Workbench, insn

EXIT = insn(EXIT_OPCODE)
LOAD = LDX | MEM | 0x18
LOOP = 181  # bpf_loop


def mov(register: int, value: int) -> Instruction:
    return insn(ALU64 | MOV, register, imm=value)


def test_a_loop_of_too_many_turns_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "MOST_PROCESSED", 2000)
    program = [mov(0, 0), insn(ALU64 | ADD, 0, imm=1), insn(JMP | JLT, 0, offset=-2, imm=2000), EXIT]
    with pytest.raises(Refusal, match="too large") as refused:
        Workbench().load(program)
    assert refused.value.code == E2BIG


def test_a_loop_that_ends_is_followed_to_its_end() -> None:
    bench = Workbench()
    program = [mov(0, 0), insn(ALU64 | ADD, 0, imm=3), insn(JMP | JLT, 0, offset=-2, imm=300), EXIT]
    assert bench.run(bench.load(program)) == 300


def test_ways_that_meet_are_followed_once() -> None:
    """Forty jumps that change nothing: 2**40 ways, and few states."""
    program = [insn(LOAD, 2, 1), mov(0, 0)]
    for bit in range(31):
        program += [insn(JMP | JSET, 2, offset=1, imm=1 << bit), mov(3, 0)]
    bench = Workbench()
    assert bench.run(bench.load([*program, EXIT])) == 0


def test_ways_that_do_not_meet_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "MOST_PROCESSED", 3000)
    program = [insn(LOAD, 2, 1), mov(0, 0)]
    for bit in range(30):
        program += [insn(JMP | JSET, 2, offset=1, imm=1 << bit), insn(ALU64 | OR, 0, imm=1 << bit)]
    with pytest.raises(Refusal) as refused:
        Workbench().load([*program, EXIT])
    assert refused.value.code == E2BIG


def test_a_state_that_comes_again_is_an_endless_loop() -> None:
    with pytest.raises(Refusal, match="infinite loop") as refused:
        Workbench().load([mov(0, 0), insn(LOAD, 2, 1), insn(JMP | JEQ, 2, offset=-2), EXIT])
    assert refused.value.code == EINVAL
    with pytest.raises(Refusal, match="unreachable"):
        Workbench().load([mov(0, 0), insn(JMP | JA, offset=-1), EXIT])


def nested_loops(turns: int) -> list[Instruction]:
    """bpf_loop of bpf_loop of a function that does nothing."""

    def call(function: int) -> list[Instruction]:
        wide = [insn(LOAD_IMM64, 2, PSEUDO_FUNC, imm=function), insn(0)]
        return [mov(1, turns), *wide, mov(3, 0), mov(4, 0), insn(CALL_OPCODE, imm=LOOP)]

    return [*call(5), EXIT, *call(6), mov(0, 0), EXIT, mov(0, 0), EXIT]


def test_a_run_is_ended_when_its_budget_is_spent() -> None:
    bench = Workbench()
    program = bench.load(nested_loops(1 << 23))
    assert bench.run(program) == 0
    assert bench.said == [f"BPF program 0 (it): a run was ended after {BUDGET:,} instructions"]
    assert bench.run(bench.load(nested_loops(10))) == 10  # the next one has its own


def test_maps_live_in_the_machines_memory() -> None:
    bench = Workbench()  # of 64 MiB
    before = bench.bpf.kernel.memory.used_bytes
    with pytest.raises(LinuxError) as refused:
        bench.map(MapType.ARRAY, 4, 1 << 20, 100)
    assert refused.value.code == ENOMEM
    kept = bench.map(MapType.ARRAY, 4, 4096, 1000)
    assert bench.bpf.kernel.memory.used_bytes - before == 1000 * 4096
    kept.retain()
    kept.release()
    assert bench.bpf.kernel.memory.used_bytes == before


def test_elements_of_a_hash_table_count_with_what_they_need() -> None:
    bench = Workbench()
    made = bench.map(MapType.HASH, 4, 4, 1000)
    assert made.memory_bytes >= 1000 * 160


def test_the_least_recently_used_element_goes() -> None:
    bench = Workbench()
    made = bench.map(MapType.LRU_HASH, 4, 4, 2)
    for key in (b"1111", b"2222"):
        made.update(key, key, 0)
    assert made.lookup(b"1111")
    made.update(b"3333", b"3333", 0)
    assert (bool(made.lookup(b"1111")), bool(made.lookup(b"2222")), bool(made.lookup(b"3333"))) == (True, False, True)


def test_keys_are_followed_while_elements_go() -> None:
    bench = Workbench()
    made = bench.map(MapType.HASH, 1, 1, 8)
    for key in b"abcdef":
        made.update(bytes([key]), b"x", 0)
    made.delete(b"a")
    made.delete(b"d")
    made.update(b"g", b"y", 0)
    seen, key = b"", None
    while True:
        try:
            key = made.next_key(key)
        except LinuxError:
            break
        seen += key
    assert seen == b"bcefg"
    assert made.next_key(b"a") == b"b"  # one that has gone: from the beginning


def test_a_map_of_pages_can_be_mapped_and_one_of_others_not() -> None:
    bench = Workbench()
    made = bench.map(MapType.ARRAY, 4, 8, 600, MapFlag.MMAPABLE)  # 4800 bytes: two pages
    task = None
    first = made.map_frames(task, 8192, 0, 1)  # type: ignore[arg-type]
    assert made.map_frames(task, 4096, 4096, 1) == first + 1  # type: ignore[arg-type]
    with pytest.raises(LinuxError):
        made.map_frames(task, 8192, 4096, 1)  # type: ignore[arg-type]
