"""With period P over N instructions there are floor(N / P) samples, each where a CODE hook sees the P-th."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import perfemu
from code_hook import retired_addresses
from guests import Guest, guest, guests

PERIODS = (997, 10_007, 1_000_003)
PROGRAMS = ("integer_mix", "sort", "sha256", "interpreter")
SMALL = ("string_instructions", "page_crossing", "branch_patterns", "recursion", "memory_access", "locked_operations")
LONGEST_REFERENCE = 12_000_000  # instructions; the CODE hook is a Python function


@cache
def reference(path: Path, isa: str) -> list[int]:
    return retired_addresses(isa, path)


def sampled(program: Guest, event: str, period: int, output: Path) -> list[int]:
    recording = perfemu.record(
        perfemu.Guest([program.path], core="ideal"), [event], period=period, output=output, capture=True
    )
    assert recording.exit_status == program.exit_status
    return [sample.ip for _, sample in recording.samples()]


@pytest.mark.parametrize("period", PERIODS)
@pytest.mark.parametrize("program", [each for each in guests() if each.name in PROGRAMS], ids=str)
def test_samples_lie_on_the_instructions_that_a_code_hook_sees(program: Guest, period: int, tmp_path: Path) -> None:
    addresses = reference(program.path, program.isa)
    assert len(addresses) == program.counts["INST_RETIRED"] <= LONGEST_REFERENCE
    ips = sampled(program, "instructions", period, tmp_path / "perf.data")
    assert len(ips) == len(addresses) // period
    # A sample's address is that of the next instruction to execute; behind the last one there is none to compare.
    assert ips == [addresses[at] for at in range(period, len(addresses), period)][: len(ips)]


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_precise_samples_lie_on_the_instruction_that_overflowed(isa: str, tmp_path: Path) -> None:
    program = guest("sort", isa)
    addresses = reference(program.path, isa)
    ips = sampled(program, "instructions:pp", 10_007, tmp_path / "perf.data")
    assert ips == [addresses[at - 1] for at in range(10_007, len(addresses) + 1, 10_007)]


@pytest.mark.parametrize("program", [each for each in guests() if each.name in SMALL], ids=str)
def test_every_single_instruction_can_be_sampled(program: Guest, tmp_path: Path) -> None:
    ips = sampled(program, "instructions", 1, tmp_path / "perf.data")
    assert len(ips) == program.counts["INST_RETIRED"]
    assert ips[:-1] == reference(program.path, program.isa)[1:]
