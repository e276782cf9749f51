"""The core stops before each execution of an instruction with a breakpoint, once, and nothing else is different."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.cpu import ExitReason
from emulator.probes import Probe
from tests.unit.native.bare import CODE, DATA, DATA_PAGES, READ, WRITE, Bare, assemble, reference_trace

ISAS = ("aarch64", "x86_64")
# A loop of one block with a call in each round: 2 + 10 * 5 + 1 instructions.
CALLS = {
    "aarch64": "mov x0, #10\n nop\n 1: bl f\n subs x0, x0, #1\n b.ne 1b\n svc #0\n f: nop\n ret",
    "x86_64": "mov $10, %ecx\n nop\n 1: call f\n dec %ecx\n jne 1b\n syscall\n f: nop\n ret",
}
REPEATS = """
    mov $0x700000, %edi
    mov $100, %ecx
    nop
    rep stosb
    pushf
    popf
    mov $3, %ecx
    rep stosb
    syscall"""
# A store that may fault, behind an instruction and before one.
STORE = {
    "aarch64": "nop\n str x1, [x9]\n nop\n svc #0",
    "x86_64": "nop\n mov %rax, (%rdi)\n nop\n syscall",
}
BASE = {"aarch64": 9, "x86_64": 5}  # x9, rdi


def stops(bare: Bare) -> list[tuple[int, int]]:
    """(pc, instructions retired) of all, up to the program's syscall."""
    found = []
    while (reason := bare.run()) is ExitReason.BREAKPOINT:
        found.append((bare.core.pc, bare.core.cycles))
    assert reason is ExitReason.SYSCALL
    return found


def load(isa: str, source: str, folder: Path, *offsets: int) -> Bare:
    bare = Bare.load(isa, assemble(isa, source, folder))
    for offset in offsets:
        bare.space.set_breakpoint(CODE + offset)
    return bare


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("source", ["calls", "repeats"])
def test_with_one_on_each_instruction_the_stops_are_what_retires(isa: str, source: str, tmp_path: Path) -> None:
    if source == "repeats" and isa != "x86_64":
        pytest.skip("only x86 repeats instructions")
    bare = load(isa, REPEATS if source == "repeats" else CALLS[isa], tmp_path)
    trace = reference_trace(isa, bare.code)
    once = [address for n, address in enumerate(trace) if source == "calls" or trace[n - 1] != address]
    for address in set(once):
        bare.space.set_breakpoint(address)
    assert stops(bare) == [(address, n) for n, address in enumerate(once)]
    assert bare.total(Probe.INST_RETIRED) == len(once)


@pytest.mark.parametrize("isa", ISAS)
def test_a_breakpoint_that_is_set_and_cleared_between_runs(isa: str, tmp_path: Path) -> None:
    bare = load(isa, CALLS[isa], tmp_path)
    assert bare.run(12) is ExitReason.DEADLINE  # two rounds: 2 + 5 + 5
    trace = reference_trace(isa, bare.code)
    last_of_f = trace[4]
    bare.space.set_breakpoint(last_of_f)  # in the middle of a block that has been decoded
    assert bare.run() is ExitReason.BREAKPOINT
    assert (bare.core.pc, bare.core.cycles) == (last_of_f, 14)
    bare.space.clear_breakpoint(last_of_f)
    assert bare.run() is ExitReason.SYSCALL
    assert bare.core.cycles == 53


@pytest.mark.parametrize("isa", ISAS)
def test_an_instruction_that_faults_is_passed_once(isa: str, tmp_path: Path) -> None:
    store = {"aarch64": 4, "x86_64": 1}[isa]
    bare = load(isa, STORE[isa], tmp_path, store)
    bare.core.write_register(BASE[isa], 0x10_0000)  # not mapped
    assert bare.run() is ExitReason.BREAKPOINT
    assert bare.run() is ExitReason.FAULT
    assert bare.core.pc == CODE + store
    bare.core.write_register(BASE[isa], DATA)
    assert bare.run() is ExitReason.SYSCALL


@pytest.mark.parametrize("isa", ISAS)
def test_having_passed_belongs_to_the_registers(isa: str, tmp_path: Path) -> None:
    """Another task that comes to the same instruction stops; the first one, back again, does not."""
    bare = load(isa, CALLS[isa], tmp_path, 0)
    other = bare.core.save_state()
    assert bare.run() is ExitReason.BREAKPOINT
    first = bare.core.save_state()
    bare.core.restore_state(other)
    assert bare.run() is ExitReason.BREAKPOINT
    bare.core.restore_state(first)
    assert bare.run() is ExitReason.SYSCALL


@pytest.mark.parametrize("isa", ISAS)
def test_an_exit_that_is_due_comes_first_and_the_stop_only_once(isa: str, tmp_path: Path) -> None:
    bare = load(isa, CALLS[isa], tmp_path)
    call = reference_trace(isa, bare.code)[2]
    bare.space.set_breakpoint(call)
    assert bare.run(2) is ExitReason.DEADLINE
    assert bare.run() is ExitReason.BREAKPOINT
    assert bare.core.pc == call
    assert bare.run(2) is ExitReason.DEADLINE  # nothing retires
    assert bare.run(7) is ExitReason.DEADLINE  # passed, and around once
    assert bare.run() is ExitReason.BREAKPOINT


@pytest.mark.parametrize("isa", ISAS)
def test_breakpoints_are_of_one_space(isa: str, tmp_path: Path) -> None:
    bare = load(isa, CALLS[isa], tmp_path, 0)
    child = bare.space.fork()
    child.protect(DATA, DATA_PAGES, READ | WRITE)
    bare.core.set_address_space(child)
    assert bare.run() is ExitReason.SYSCALL


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("period", [1, 3, 7])
def test_samples_are_the_same(isa: str, period: int, tmp_path: Path) -> None:
    plain = load(isa, CALLS[isa], tmp_path).sample(Probe.INST_RETIRED, period)
    bare = load(isa, CALLS[isa], tmp_path)
    for address in set(reference_trace(isa, bare.code)):
        bare.space.set_breakpoint(address)
    bank = bare.core.add_bank(1)
    bank.set_width(0, 48)
    bank.connect(0, 1 << Probe.INST_RETIRED)
    bank.arm(1)
    bank.write(0, 2**48 - period)
    samples = []
    while (reason := bare.run()) is not ExitReason.SYSCALL:
        if reason is ExitReason.OVERFLOW:
            samples.append((bare.core.pc, bare.core.cycles))
            bank.clear_overflowed(1)
            bank.write(0, 2**48 - period)
    assert samples == plain
