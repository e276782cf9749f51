"""REP, which is an instruction that runs again and again: where blocks end before it, and where counters wrap in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.cpu import ExitReason
from emulator.probes import Probe
from tests.unit.native.bare import DATA, FOREVER, Bare, assemble

RCX, RDX = 2, 3
TIMES = 20_000  # times the loop's body runs: more than is planned at once, when a counter is armed
CLEARING = f"""
    mov ${TIMES}, %edx
1:  mov ${DATA}, %edi
    mov $2, %ecx
    rep stosb
    dec %edx
    jnz 1b
    syscall"""
# Of the loop: up to REP, from the start and from its head; REP; what is behind it; the system call.
BLOCKS = 5
FILLING = f"""
    mov ${DATA}, %edi
    mov $50000, %ecx
    rep stosb
    syscall"""


def test_a_block_ends_before_it(tmp_path: Path) -> None:
    """So that it is not reached by single steps, each of them a block of its own."""
    bare = Bare.load("x86_64", assemble("x86_64", CLEARING, tmp_path))
    assert bare.run(FOREVER) is ExitReason.SYSCALL
    assert bare.core.decoded_blocks == BLOCKS
    assert bare.total(Probe.INST_RETIRED) == 1 + TIMES * 5 + 1  # the system call
    assert bare.total(Probe.STORE) == TIMES * 2


@pytest.mark.parametrize("after", [1, 9, 16_000, 16_384, 33_000, 49_999, 50_000])
def test_a_counter_wraps_in_the_middle_of_it(after: int, tmp_path: Path) -> None:
    bare = armed(assemble("x86_64", FILLING, tmp_path), Probe.STORE, after)
    assert bare.run(FOREVER) is ExitReason.OVERFLOW
    assert bare.total(Probe.STORE) == after
    assert bare.core.read_register(RCX) == 50_000 - after


@pytest.mark.parametrize("after", [1, 9, 16_000, 16_385, TIMES - 1, TIMES])
def test_a_counter_wraps_in_a_loop_of_them(after: int, tmp_path: Path) -> None:
    bare = armed(assemble("x86_64", CLEARING, tmp_path), Probe.BR_RETIRED, after)
    assert bare.run(FOREVER) is ExitReason.OVERFLOW
    assert bare.core.read_register(RDX) == TIMES - after
    assert bare.total(Probe.INST_RETIRED) == 1 + after * 5


def armed(code: bytes, probe: Probe, after: int) -> Bare:
    """A counter of `probe` wraps when that has fired so often."""
    bare = Bare.load("x86_64", code)
    bank = bare.core.add_bank(1)
    bank.connect(0, 1 << probe)
    bank.write(0, (1 << 64) - after)
    bank.arm(1)
    return bare
