"""Blocks that run often on a core with models get an entry of their own, which their translation calls.

Nobody can tell, but by the time that it takes.
"""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from emulator._native import PAGE_SIZE, AddressSpace, Core, PhysicalMemory
from emulator.core_file.core_file import load_core
from emulator.cpu import ExitReason
from emulator.probes import Probe
from tests.unit.native.bare import CODE, DATA, EXECUTE, PC, READ, WRITE, assemble

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the host's own code is made on x86-64 alone")

ISAS = ("aarch64", "x86_64")
CORES = {"aarch64": ("cortex-a55", "neoverse-n1"), "x86_64": ("skylake", "zen5")}
EACH_CORE = [(isa, core) for isa in ISAS for core in CORES[isa]]
TIMES = 50_000
# An outer loop of TIMES, which loads in each block; every other time the branch in it is taken. Then a system call.
LOOP = {
    "aarch64": """
        mov x2, {times}
    1:  ldr x1, [x9, {displacement}]
        tbz x2, 0, 2f
        ldr x3, [x9, 8]
    2:  subs x2, x2, 1
        b.ne 1b
        svc 0""",
    "x86_64": """
        mov ${times}, %rdx
    1:  mov {displacement}(%rdi), %rbx
        test $1, %rdx
        jz 2f
        mov 8(%rdi), %rcx
    2:  dec %rdx
        jnz 1b
        syscall""",
}
# TIMES calls of a function, from the second block of the loop on.
CALLS = {
    "aarch64": """
        mov x2, {times}
    1:  bl 2f
        subs x2, x2, 1
        b.ne 1b
        svc 0
    2:  ldr x1, [x9, {displacement}]
        ret""",
    "x86_64": """
        mov ${times}, %rdx
    1:  call 2f
        dec %rdx
        jnz 1b
        syscall
    2:  mov {displacement}(%rdi), %rbx
        ret""",
}
BEHIND_CALL, FUNCTION = {"aarch64": 8, "x86_64": 12}, {"aarch64": 20, "x86_64": 19}  # in bytes from its begin
STACK = {"aarch64": 31, "x86_64": 7}
POINTER, COUNTER = {"aarch64": 9, "x86_64": 5}, {"aarch64": 2, "x86_64": 3}
LOADS = TIMES + TIMES // 2
TAKEN = TIMES // 2 + TIMES - 1
DIRECTION_PROBES = {Probe.BR_COND_TAKEN, Probe.BR_TAKEN}  # known only where branches are followed


class Looping:
    """A core over the loop's page and one page of data."""

    def __init__(self, isa: str, name: str, folder: Path, program: dict[str, str] = LOOP) -> None:
        self.isa, self.folder, self.program = isa, folder, program[isa]
        self.memory = PhysicalMemory(64 << 20)
        self.core = Core(isa, self.memory, model=load_core(name).model)
        self.space = self.new_space()

    def new_space(self, displacement: int = 0) -> AddressSpace:
        space = AddressSpace(self.memory)
        frame = self.memory.allocate()
        code = assemble(self.isa, self.program.format(times=TIMES, displacement=displacement), self.folder)
        self.memory.view(frame)[: len(code)] = code
        space.map(CODE, frame, 1, READ | EXECUTE)
        space.map(DATA, self.memory.allocate(), 1, READ | WRITE)
        return space

    def start(self, space: AddressSpace | None = None) -> None:
        self.core.set_address_space(space or self.space)
        self.core.write_register(POINTER[self.isa], DATA)
        self.core.write_register(STACK[self.isa], DATA + PAGE_SIZE)
        self.core.write_register(PC[self.isa], CODE)

    def run(self, cycles: int = 1 << 40) -> ExitReason:
        return ExitReason(self.core.run(self.core.cycles + cycles))

    def totals(self) -> dict[str, int]:
        return {probe.name: self.core.total(probe) for probe in Probe if probe not in DIRECTION_PROBES}


@pytest.mark.parametrize(("isa", "name"), EACH_CORE)
def test_following_branches_by_the_hook_alone_gives_the_same(isa: str, name: str, tmp_path: Path) -> None:
    known, followed = Looping(isa, name, tmp_path), Looping(isa, name, tmp_path)
    followed.core.follow_branches()
    for each in (known, followed):
        each.start()
        assert each.run() is ExitReason.SYSCALL
    assert known.core.known_calls >= 3
    assert followed.core.known_calls == 0
    assert known.totals() == followed.totals()
    assert known.core.cycles == followed.core.cycles
    assert known.core.total(Probe.LOAD) == LOADS
    assert followed.core.total(Probe.BR_COND_TAKEN) == TAKEN


@pytest.mark.parametrize(("isa", "name"), EACH_CORE)
def test_branches_can_be_followed_from_the_middle_on(isa: str, name: str, tmp_path: Path) -> None:
    looping, from_start = Looping(isa, name, tmp_path), Looping(isa, name, tmp_path)
    from_start.core.follow_branches()
    for each in (looping, from_start):
        each.start()
        assert each.run(cycles=40_000) is ExitReason.DEADLINE
    assert looping.core.known_calls > 0
    taken_before = from_start.core.total(Probe.BR_COND_TAKEN)
    bank = looping.core.add_bank(1)
    bank.connect(0, 1 << Probe.BR_COND_TAKEN)
    for each in (looping, from_start):
        assert each.run() is ExitReason.SYSCALL
    assert bank.read(0) == from_start.core.total(Probe.BR_COND_TAKEN) - taken_before > 100


@pytest.mark.parametrize(("isa", "name"), EACH_CORE)
def test_spaces_with_other_code_at_the_same_address_take_turns(isa: str, name: str, tmp_path: Path) -> None:
    looping = Looping(isa, name, tmp_path)
    other = looping.new_space(displacement=PAGE_SIZE - 8)
    refills, before = [], 0
    for number in range(6):
        looping.start(other if number % 2 else looping.space)
        assert looping.run() is ExitReason.SYSCALL
        assert looping.core.total(Probe.LOAD) == LOADS * (number + 1)
        total = looping.core.total(Probe.L1D_REFILL_LOAD)
        refills.append(total - before)
        before = total
    # both loads are of one line of the first space, and of two of the second one's own page
    assert refills == [1, 2, 0, 0, 0, 0]


@pytest.mark.parametrize(("isa", "name"), EACH_CORE)
def test_code_that_is_replaced_is_known_no_more(isa: str, name: str, tmp_path: Path) -> None:
    looping = Looping(isa, name, tmp_path)
    looping.start()
    assert looping.run(cycles=40_000) is ExitReason.DEADLINE
    assert looping.core.known_calls > 0
    page = looping.space.lookup(CODE)
    assert page is not None
    nothing = {"aarch64": "nop", "x86_64": "nopl (%rax)"}[isa]  # as long as the load
    load = {"aarch64": "ldr x3, [x9, 8]", "x86_64": "mov 8(%rdi), %rcx"}[isa]
    source = LOOP[isa].format(times=TIMES, displacement=0)
    looping.memory.write(page[0], 0, assemble(isa, source.replace(load, nothing), tmp_path))
    before = looping.core.total(Probe.LOAD)
    left = looping.core.read_register(COUNTER[isa])
    assert looping.run() is ExitReason.SYSCALL
    assert left - 1 <= looping.core.total(Probe.LOAD) - before <= left


@pytest.mark.parametrize(("isa", "name"), EACH_CORE)
@pytest.mark.parametrize("kept", [3, 1000])
def test_blocks_can_be_forgotten_while_they_are_known(kept: int, isa: str, name: str, tmp_path: Path) -> None:
    forgetful, plain = Looping(isa, name, tmp_path), Looping(isa, name, tmp_path)
    forgetful.core.keep_blocks(kept)
    for each in (forgetful, plain):
        each.start()
        while each.run(cycles=40_000) is ExitReason.DEADLINE:
            pass
    assert forgetful.totals() == plain.totals()
    assert forgetful.core.cycles == plain.core.cycles


@pytest.mark.parametrize(("isa", "name"), EACH_CORE)
def test_blocks_that_end_with_calls_and_returns_are_known_where_calls_are_kept(
    isa: str, name: str, tmp_path: Path
) -> None:
    """They are the loop's first block and the function, in which somebody has called, wherever it stops."""
    kept, not_kept = Looping(isa, name, tmp_path, CALLS), Looping(isa, name, tmp_path, CALLS)
    kept.core.keep_calls()
    for each in (kept, not_kept):
        each.start()
    chains = {}
    for cycles in (20_000, *range(1, 40)):
        assert kept.run(cycles) is not_kept.run(cycles) is ExitReason.DEADLINE
        assert kept.core.pc == not_kept.core.pc
        chains[kept.core.pc] = kept.core.call_chain(8)
    within = {pc for pc in chains if pc >= CODE + FUNCTION[isa]}
    assert within
    assert chains == {pc: [CODE + BEHIND_CALL[isa]] if pc in within else [] for pc in chains}
    assert kept.core.known_calls == not_kept.core.known_calls
    for each in (kept, not_kept):
        assert each.run() is ExitReason.SYSCALL
    assert kept.core.known_calls == not_kept.core.known_calls >= 3
    assert kept.totals() == not_kept.totals()
    assert kept.core.cycles == not_kept.core.cycles
