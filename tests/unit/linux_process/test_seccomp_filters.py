"""Seccomp filters beside a task: what they cost the machine that carries them."""

from __future__ import annotations

from pathlib import Path

import same_as_linux
from emulator.linux.seccomp.classic_bpf import ABS, ALU, INSTRUCTION, LD, RET, A, ClassicProgram
from emulator.linux.seccomp.filters import FREE, MODE_FILTER, MOST_REMEMBERED, PENALTY, Action, Filter, Seccomp
from emulator.machine import MachineConfig

FIRST_ARGUMENT = 16  # in struct seccomp_data


def sum_of(additions: int) -> ClassicProgram:
    """Answers the first argument and so many more: `additions` + 2 instructions."""
    return ClassicProgram(
        INSTRUCTION.pack(LD | ABS, 0, 0, FIRST_ARGUMENT)
        + INSTRUCTION.pack(ALU, 0, 0, 1) * additions
        + INSTRUCTION.pack(RET | A, 0, 0, 0)
    )


def words(argument: int) -> tuple[int, ...]:
    return tuple(argument if place == FIRST_ARGUMENT // 4 else 0 for place in range(16))


def test_long_filters_take_time_on_every_core() -> None:
    short, longer = sum_of(100), sum_of(4000)
    assert Seccomp(MODE_FILTER, Filter(short)).works_cycles == 0
    both = Seccomp(MODE_FILTER, Filter(longer, Filter(short)))
    assert both.works_cycles == (4000 + 2 + PENALTY) + (100 + 2 + PENALTY) - FREE


def test_verdicts_are_right_however_many_there_are_and_few_are_kept() -> None:
    seccomp = Seccomp(MODE_FILTER, Filter(sum_of(3)))
    for argument in range(3 * MOST_REMEMBERED):
        verdict = seccomp.verdict(words(Action.ERRNO + argument))
        assert (verdict.action, verdict.data) == (Action.ERRNO, argument + 3)
        assert len(seccomp._verdicts) <= MOST_REMEMBERED


def test_the_time_of_long_filters_is_system_time(tmp_path: Path) -> None:
    """long_filters.c makes 10,000 calls and asks once more. The core takes no time for what the kernel does besides."""
    printed, _ = same_as_linux.ours(Path(__file__).with_name("long_filters.c"), tmp_path, "x86_64")
    cycles = 10_001 * (2 * (4000 + PENALTY) - FREE)
    taken_us = cycles * 1_000_000 / MachineConfig("x86_64").core.frequency_hz
    assert abs(int(printed[0]) - taken_us) < 1
