"""The ledger says which instruction made which events, whatever cut its block short."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from attribution import start_attribution, taken, tally
from emulator._native import Core
from emulator.cpu import ExitReason
from emulator.probes import Probe
from pmu.event import LESS_SHIFT
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
    return {address - CODE: count for address, count in tally(bare.core).items()}


@pytest.mark.parametrize("isa", ISAS)
def test_each_instruction_of_a_loop_is_tallied(isa: str, tmp_path: Path) -> None:
    code = assemble(isa, LOOP[isa], tmp_path)
    bare = Bare.load(isa, code)
    start_attribution(bare.core)
    assert bare.run() is ExitReason.SYSCALL
    counts = by_offset(bare)
    assert list(counts.values()) == [1, 1000, 1000, 1]
    assert sum(counts.values()) == bare.total(Probe.INST_RETIRED)


@pytest.mark.parametrize("isa", ISAS)
def test_the_tally_is_exact_at_every_stop(isa: str, tmp_path: Path) -> None:
    bare = Bare.load(isa, assemble(isa, LOOP[isa], tmp_path))
    start_attribution(bare.core)
    expected, attributed = Counter[int](), Counter[int]()
    for n, address in enumerate(reference_trace(isa, bare.code), 1):
        expected[address] += 1
        if n % 97 == 0:
            assert bare.run(n) is ExitReason.DEADLINE
            attributed += tally(bare.core)
            assert attributed == expected
    bare.run()
    assert attributed + tally(bare.core) == expected


@pytest.mark.parametrize("isa", ISAS)
def test_a_fault_in_mid_block_takes_back_what_did_not_retire(isa: str, tmp_path: Path) -> None:
    bare = Bare.load(isa, assemble(isa, STORE[isa], tmp_path))
    bare.core.write_register(BASE[isa], 0x10_0000)  # not mapped
    start_attribution(bare.core)
    assert bare.run() is ExitReason.FAULT
    assert by_offset(bare) == {0: 1}
    bare.core.write_register(BASE[isa], DATA)
    assert bare.run() is ExitReason.SYSCALL
    assert list(by_offset(bare).values()) == [1, 1, 1]  # the store and what is behind it


def test_a_repeat_is_tallied_when_it_retires(tmp_path: Path) -> None:
    bare = Bare.load("x86_64", assemble("x86_64", REPEATS, tmp_path))
    start_attribution(bare.core)
    assert bare.run() is ExitReason.SYSCALL
    counts = by_offset(bare)
    assert set(counts.values()) == {1}
    assert sum(counts.values()) == bare.total(Probe.INST_RETIRED) == 11


@pytest.mark.parametrize("isa", ISAS)
def test_starting_again_starts_from_nothing(isa: str, tmp_path: Path) -> None:
    bare = Bare.load(isa, assemble(isa, LOOP[isa], tmp_path))
    assert bare.run(1001) is ExitReason.DEADLINE
    start_attribution(bare.core)
    bare.run()
    # of 2,002 instructions 1,001 have passed: 1 and 500 rounds
    assert sorted(by_offset(bare).values()) == [1, 500, 500]


@pytest.mark.parametrize("isa", ISAS)
def test_accounts_are_apart_and_nobodys_is_not_kept(isa: str, tmp_path: Path) -> None:
    bare = Bare.load(isa, assemble(isa, LOOP[isa], tmp_path))
    core = bare.core
    core.attribute([1 << Probe.INST_RETIRED])
    for until, account in ((101, 0), (301, 7), (601, 8), (1001, 7)):
        core.attribute_to(account)
        assert bare.run(until) is ExitReason.DEADLINE
    kept = {account: struct.unpack(f"={len(rows) // 8}Q", rows)[1::2] for account, rows in _taken(core, (0, 7, 8))}
    # each account begins at the loop's first instruction: half of 200 + 400, half of 300
    assert kept == {0: (), 7: (300, 300), 8: (150, 150)}


def _taken(core: Core, accounts: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    return ((account, core.take_attribution(account)) for account in accounts)


@pytest.mark.parametrize("isa", ISAS)
def test_columns_are_what_counters_count(isa: str, tmp_path: Path) -> None:
    bare = Bare.load(isa, assemble(isa, LOOP[isa], tmp_path))
    less = 1 << LESS_SHIFT + Probe.BR_COND_TAKEN
    columns = (1 << Probe.BR_COND_TAKEN, 1 << Probe.BR_COND | less, 1 << Probe.INST_RETIRED | 1 << Probe.BR_COND)
    start_attribution(bare.core, columns)
    bare.run()
    # the branch is the third instruction: 1,000 times, of which 999 taken
    assert list(taken(bare.core, 3).values()) == [(0, 0, 1), (0, 0, 1000), (999, 1, 2000), (0, 0, 1)]


def test_iterations_of_a_repeat_are_its_own(tmp_path: Path) -> None:
    bare = Bare.load("x86_64", assemble("x86_64", REPEATS, tmp_path))
    start_attribution(bare.core, (1 << Probe.STORE, 1 << Probe.LOAD))
    bare.run()
    # rep stosb of 100 bytes, movb; repe scasb looks at 0, 0 and 7: the first 2 bytes are 0 and the third is not
    assert [counts for counts in taken(bare.core, 2).values() if any(counts)] == [(100, 0), (1, 0), (0, 3)]


@pytest.mark.parametrize("isa", ISAS)
def test_what_is_not_attributed_cannot_be_taken(isa: str, tmp_path: Path) -> None:
    core = Bare.load(isa, assemble(isa, LOOP[isa], tmp_path)).core
    for call in (core.attribute_to, core.take_attribution):
        with pytest.raises(RuntimeError, match="attribute"):
            call(1)
