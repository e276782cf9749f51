"""The tally says how often each instruction retired, whatever cut its block short."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from emulator.cpu import ExitReason
from emulator.probes import Probe
from tests.unit.native.bare import CODE, DATA, Bare, assemble, reference_trace

ISAS = ("aarch64", "x86_64")
LOOP = {
    "aarch64": "mov x0, #1000\n1: subs x0, x0, #1\n b.ne 1b\n svc #0",
    "x86_64": "mov $1000, %ecx\n1: dec %ecx\n jne 1b\n syscall",
}
# An instruction, a store that may fault, another instruction, all in one block.
STORE = {
    "aarch64": "nop\n str x1, [x9]\n nop\n svc #0",
    "x86_64": "nop\n mov %rax, (%rdi)\n nop\n syscall",
}
BASE = {"aarch64": 9, "x86_64": 5}  # x9, rdi
# Zero iterations, 100 iterations, and an end after 3 of 64 because the bytes differ: each retires once.
REPEATS = """
    mov $0x700000, %edi
    xor %ecx, %ecx
    rep stosb
    mov $100, %ecx
    rep stosb
    movb $7, 0x700202
    mov $0x700200, %edi
    xor %eax, %eax
    mov $64, %ecx
    repe scasb
    syscall"""


def by_offset(bare: Bare) -> dict[int, int]:
    return {address - CODE: count for address, count in bare.core.tally().items()}


@pytest.mark.parametrize("isa", ISAS)
def test_each_instruction_of_a_loop_is_tallied(isa: str, tmp_path: Path) -> None:
    code = assemble(isa, LOOP[isa], tmp_path)
    bare = Bare.load(isa, code)
    bare.core.start_tally()
    assert bare.run() is ExitReason.SYSCALL
    tally = by_offset(bare)
    assert list(dict(sorted(tally.items())).values()) == [1, 1000, 1000, 1]
    assert sum(tally.values()) == bare.total(Probe.INST_RETIRED)


@pytest.mark.parametrize("isa", ISAS)
def test_the_tally_is_exact_at_every_stop(isa: str, tmp_path: Path) -> None:
    bare = Bare.load(isa, assemble(isa, LOOP[isa], tmp_path))
    bare.core.start_tally()
    expected = Counter[int]()
    for n, address in enumerate(reference_trace(isa, bare.code), 1):
        expected[address] += 1
        if n % 97 == 0:
            assert bare.run(n) is ExitReason.DEADLINE
            assert bare.core.tally() == expected
    bare.run()
    assert bare.core.tally() == expected


@pytest.mark.parametrize("isa", ISAS)
def test_a_fault_in_mid_block_takes_back_what_did_not_retire(isa: str, tmp_path: Path) -> None:
    bare = Bare.load(isa, assemble(isa, STORE[isa], tmp_path))
    bare.core.write_register(BASE[isa], 0x10_0000)  # not mapped
    bare.core.start_tally()
    assert bare.run() is ExitReason.FAULT
    assert by_offset(bare) == {0: 1}
    bare.core.write_register(BASE[isa], DATA)
    assert bare.run() is ExitReason.SYSCALL
    assert list(dict(sorted(by_offset(bare).items())).values()) == [1, 1, 1, 1]


def test_a_repeat_is_tallied_when_it_retires(tmp_path: Path) -> None:
    bare = Bare.load("x86_64", assemble("x86_64", REPEATS, tmp_path))
    bare.core.start_tally()
    assert bare.run() is ExitReason.SYSCALL
    assert set(by_offset(bare).values()) == {1}
    assert sum(by_offset(bare).values()) == bare.total(Probe.INST_RETIRED) == 11


@pytest.mark.parametrize("isa", ISAS)
def test_starting_again_starts_from_nothing(isa: str, tmp_path: Path) -> None:
    bare = Bare.load(isa, assemble(isa, LOOP[isa], tmp_path))
    assert bare.core.tally() == {}
    assert bare.run(1001) is ExitReason.DEADLINE
    bare.core.start_tally()
    bare.run()
    # of 2,002 instructions 1,001 have passed: 1 and 500 rounds
    assert sorted(by_offset(bare).values()) == [1, 500, 500]
