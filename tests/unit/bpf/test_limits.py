"""Programs and maps that would keep the host busy: they are refused, or come to an end."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from emulator.linux.errors import E2BIG, EINVAL, ENOMEM, LinuxError
from perfcore.abi.bpf import MapFlag, MapType, ProgType
from perfcore.bpf import allowance, subsystem
from perfcore.bpf.instructions import (
    ADD,
    ALU64,
    CALL_OPCODE,
    EXIT_OPCODE,
    JA,
    JEQ,
    JLT,
    JMP,
    JNE,
    JSET,
    LDX,
    LOAD_IMM64,
    MEM,
    MOV,
    OR,
    PSEUDO_FUNC,
    PSEUDO_MAP_FD,
    ST,
    STX,
    Instruction,
)
from perfcore.bpf.log import Log
from perfcore.bpf.maps.ringbuf import DISCARD, RingbufMap
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


def test_all_runs_together_are_paid_by_what_the_guest_executes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "FREE", 1000)
    bench = Workbench()
    endless, short = bench.load(nested_loops(1 << 23)), bench.load(nested_loops(10))
    assert (bench.run(endless), bench.run(short)) == (0, 0)
    assert {*bench.said} == {"BPF program 0 (it) was ended: 100 instructions of programs for each of the guest's"}
    bench.executed = 1
    assert bench.run(short) == 0  # 100 more: ten turns of ten turns are 100 calls
    bench.executed = 100_000
    assert bench.run(short) == 10


def test_what_a_helper_moves_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeroes of 1 MiB count as 4096 instructions, so that 20,000 do not suffice for ten times."""
    monkeypatch.setattr(subsystem, "BUDGET", 20_000)
    bench = Workbench()
    array = bench.map(MapType.ARRAY, 4, 1 << 20, 1)
    wide = [insn(LOAD_IMM64, 1, PSEUDO_MAP_FD, imm=0), insn(0)]
    look_up = [insn(ST | MEM, 10, offset=-4), *wide, insn(ALU64 | MOV | 8, 2, 10), insn(ALU64 | ADD, 2, imm=-4)]
    move = [mov(2, 1 << 20), mov(3, 0), insn(CALL_OPCODE, imm=4), mov(0, 0), EXIT]
    inner = [*look_up, insn(CALL_OPCODE, imm=1), insn(JMP | JNE, 0, offset=1), EXIT, insn(ALU64 | MOV | 8, 1, 0), *move]
    wide = [insn(LOAD_IMM64, 2, PSEUDO_FUNC, imm=6), insn(0)]
    outer = [mov(1, 10), *wide, mov(3, 0), mov(4, 0), insn(CALL_OPCODE, imm=LOOP), mov(0, 1), EXIT]
    program = bench.load([*outer, *inner], [array], ProgType.KPROBE)
    assert bench.run(program) == 0
    assert bench.said == ["BPF program 0 (it): a run was ended after 20,000 instructions"]


def test_a_key_stays_where_a_callback_has_seen_it() -> None:
    """Until the run ends: the callback keeps its address on the caller's stack, who loads through it afterwards."""
    bench = Workbench()
    table = bench.map(MapType.HASH, 4, 8, 4)
    table.update(b"\x07\0\0\0", bytes(8), 0)
    address = [insn(ALU64 | MOV | 8, 1, 10), insn(ALU64 | ADD, 1, imm=-16), insn(ST | MEM | 0x18, 10, offset=-16)]
    begin = [*address, insn(STX | MEM | 0x18, 10, 1, -8), insn(ALU64 | MOV | 8, 3, 10), insn(ALU64 | ADD, 3, imm=-8)]
    wide = [insn(LOAD_IMM64, 1, PSEUDO_MAP_FD, imm=0), insn(0), insn(LOAD_IMM64, 2, PSEUDO_FUNC), insn(0)]
    after = [mov(4, 0), insn(CALL_OPCODE, imm=164), insn(LDX | MEM | 0x18, 1, 10, -8), insn(LDX | MEM, 0, 1), EXIT]
    program = [*begin, *wide, *after]
    at = len(begin) + 2
    program[at] = program[at]._replace(imm=len(program) - at - 1)
    callback = [insn(STX | MEM | 0x18, 4, 2), mov(0, 0), EXIT]
    assert bench.run(bench.load([*program, *callback], [table])) == 7


def test_what_a_frozen_map_holds_is_known_of_its_only_element() -> None:
    """The first of two says 0, the second 1 << 20: what is looked up may be either."""
    bench = Workbench()
    array = bench.map(MapType.ARRAY, 4, 8, 2, MapFlag.RDONLY_PROG)
    array.update(b"\1\0\0\0", (1 << 20).to_bytes(8, "little"), 0)
    array.frozen = True
    look_up = [insn(ST | MEM, 10, offset=-4, imm=1), insn(LOAD_IMM64, 1, PSEUDO_MAP_FD, imm=0), insn(0)]
    key = [insn(ALU64 | MOV | 8, 2, 10), insn(ALU64 | ADD, 2, imm=-4), insn(CALL_OPCODE, imm=1)]
    use = [insn(JMP | JNE, 0, offset=2), mov(0, 0), EXIT, insn(ALU64 | MOV | 8, 1, 0), insn(LDX | MEM | 0x18, 2, 1)]
    beyond = [insn(ALU64 | ADD | 8, 1, 2), insn(LDX | MEM | 0x18, 0, 1), EXIT]
    with pytest.raises(Refusal, match="unbounded"):
        bench.load([*look_up, *key, *use, *beyond], [array])


def test_a_log_keeps_its_end_or_its_beginning() -> None:
    for level, size, kept in ((1, 4, b"ne\n\0"), (9, 4, b"one\0"), (1, 1, b"\0"), (1, 100, b"one\nline\n\0")):
        log = Log(level, size, 1)
        log.line("one")
        log.line("line")
        assert (log.contents(), log.overflows) == (kept, size < 10)


def test_ways_through_a_full_stack_are_too_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each state has 512 bytes of which something is known: a thousand such are as much as a long program."""
    monkeypatch.setattr(verifier, "MOST_PROCESSED", 20_000)
    program = [insn(LDX | MEM | 0x18, 2, 1), mov(0, 0)]
    program += [insn(ST | MEM | 0x10, 10, offset=-1 - byte, imm=1) for byte in range(512)]
    program += [insn(JMP | JSET, 2, imm=1 << bit % 31) for bit in range(4000)]
    bench = Workbench()
    with pytest.raises(Refusal, match=r"too large\. Processed [0-9]{3} ") as refused:
        bench.load([*program, EXIT])
    assert refused.value.code == E2BIG


def test_a_ring_buffer_does_not_believe_its_consumer() -> None:
    """Who says that the first record has been read, before it is there, does not get another in its place."""
    bench = Workbench()
    ring = bench.map(MapType.RINGBUF, 0, 0, 4096)
    assert isinstance(ring, RingbufMap)
    ring.memory.data[0:8] = (64).to_bytes(8, "little")
    first = ring.reserve(56)  # 64 bytes with its header
    for _ in range(62):
        assert ring.reserve(56)
    assert ring.reserve(48)  # 4088 bytes are taken
    assert not ring.reserve(0)
    ring.memory.data[8192:8196] = b"\xff" * 4  # of a mapping that was writable before
    ring.commit(first, 0)
    assert ring.memory.data[8192:8196] == (56).to_bytes(4, "little")
    ring.memory.data[0:8] = (1 << 63).to_bytes(8, "little")
    assert ring.reserve(8) == 0


def test_a_record_goes_back_if_the_run_is_ended_as_it_is_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    """All eleven instructions can be paid, but with 2048 bytes (which count as eight more) not the first six."""
    monkeypatch.setattr(subsystem, "BUDGET", 13)
    bench = Workbench()
    ring = bench.map(MapType.RINGBUF, 0, 0, 4096)
    assert isinstance(ring, RingbufMap)
    wide = [insn(LOAD_IMM64, 1, PSEUDO_MAP_FD, imm=0), insn(0)]
    reserve = [*wide, mov(2, 2048), mov(3, 0), insn(CALL_OPCODE, imm=131), insn(JMP | JEQ, 0, offset=3)]
    submit = [insn(ALU64 | MOV | 8, 1, 0), mov(2, 0), insn(CALL_OPCODE, imm=132)]
    assert bench.run(bench.load([*reserve, *submit, mov(0, 7), EXIT], [ring])) == 0
    assert bench.said == ["BPF program 0 (it): a run was ended after 13 instructions"]
    assert int.from_bytes(ring.memory.data[8192:8196], "little") == 2048 | DISCARD


def test_a_callchain_is_no_longer_than_the_sysctl_says() -> None:
    bench = Workbench()
    bench.map(MapType.STACK_TRACE, 4, 8 * 127, 1)
    with pytest.raises(LinuxError) as refused:
        bench.map(MapType.STACK_TRACE, 4, 8 * 128, 1)
    assert refused.value.code == EINVAL
    bench.settings.max_stack = 128
    assert bench.map(MapType.STACK_TRACE, 4, 8 * 128, 1)
    walked: list[int] = []
    bench.cpu.core = SimpleNamespace(pc=1, frame_chain=lambda most: walked.append(most) or [2] * most)
    bench.bpf.kernel.current = lambda cpu: SimpleNamespace()  # type: ignore[method-assign,assignment,return-value]
    stack = [insn(ALU64 | MOV | 8, 2, 10), insn(ALU64 | ADD, 2, imm=-512), mov(3, 512), mov(4, 0x1FF)]  # 255 to skip
    program = bench.load([*stack, insn(CALL_OPCODE, imm=67), EXIT], [], ProgType.PERF_EVENT)
    assert bench.run(program) == 0
    bench.settings.max_stack = 256
    assert bench.run(program) == 8
    assert walked == [255]
