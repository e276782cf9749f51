"""What a run may use at most: time, instructions, tasks and memory, each with a message and a status of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.assembled import SPIN, exits, program
from end_to_end.command import complaint, perfemu
from guests import ISAS

# fork, until that fails; then exit with -result. AArch64: clone 220, exit 93. x86-64: fork 57, exit 60. A child spins.
FORKS = {
    "aarch64": "200280d2010080d2020080d2030080d2040080d2881b80d2010000d4"  # x0 = SIGCHLD, x1 to x4 = 0; clone
    "400000b500000014"  # cbnz x0, over the next; b .
    "1f0000f1ccfeff54"  # cmp x0, #0; b.gt, to the beginning
    "e00300cba80b80d2010000d4",  # neg x0, x0; exit
    "x86_64": "b8390000000f0585c074fe7ff389c7f7dfb83c0000000f05",  # fork; jz .; jg; exit(-result)
}
EAGAIN = 11


@pytest.mark.parametrize("isa", ISAS)
def test_instructions_end_at_the_limit_exactly(isa: str, tmp_path: Path) -> None:
    spin = program(tmp_path / "spin", isa, SPIN[isa])
    done = perfemu("stat", "-x,", "-e", "instructions", "--max-instructions", "1234567", spin)
    assert done.returncode == 124
    message, count = done.stderr.decode().splitlines()
    assert message == f"{spin}: stopped: 1,234,567 instructions have been executed (--max-instructions)"
    assert count.startswith("1234567,,instructions:u,1234567,100.00,")


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("cpus", ["1", "4"])
def test_simulated_time_ends_at_the_limit_exactly(isa: str, cpus: str, tmp_path: Path) -> None:
    """A cycle of the ideal core is a nanosecond."""
    spin = program(tmp_path / "spin", isa, SPIN[isa])
    done = perfemu("stat", "-x,", "-e", "instructions", "--timeout", "0.002", "--cpus", cpus, spin)
    assert done.returncode == 124
    message, count = done.stderr.decode().splitlines()
    assert message == f"{spin}: stopped: 0.002 s of simulated time are over (--timeout)"
    assert count.startswith("2000000,")


@pytest.mark.parametrize("isa", ISAS)
def test_who_ends_before_the_limits_does_not_feel_them(isa: str, tmp_path: Path) -> None:
    path = program(tmp_path / "exits", isa, exits(isa, 7))
    done = perfemu("run", "--timeout", "1", "--max-instructions", "3", "--max-tasks", "1", path)
    assert (done.returncode, done.stderr) == (7, b"")


def test_a_limit_costs_nothing_while_all_sleep(tmp_path: Path) -> None:
    """A sleep of 1000 s, a few instructions before the limit: poll(0, 0, 1000000), and a loop."""
    path = program(tmp_path / "sleeps", "x86_64", "31ff31f6ba40420f00b8070000000f05" + SPIN["x86_64"])
    done = perfemu("stat", "-x,", "-e", "instructions", "--max-instructions", "10", path)
    assert (done.returncode, done.stderr.decode().splitlines()[1].split(",")[0]) == (124, "10")


@pytest.mark.parametrize("isa", ISAS)
def test_a_fork_bomb_finds_no_more_tasks(isa: str, tmp_path: Path) -> None:
    done = perfemu("run", "--max-tasks", "10", "--timeout", "5", program(tmp_path / "forks", isa, FORKS[isa]))
    assert done.returncode == EAGAIN
    assert complaint(done) == "forks: no task more than 10 (--max-tasks): EAGAIN"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--cpus", "0", "0 is not within 1..9223372036854775807"),
        ("--cpus", "65", "65 is more than 64"),
        ("--quantum", "0", "0 is not within 1..9223372036854775807"),
        ("--seed", "x", "'x' is not a number"),
        ("--timeout", "1s", "'1s' is not a number of seconds"),
        ("--timeout", "nan", "'nan' is not a number of seconds"),
        ("--timeout", "-1", "-1 is no time that could pass"),
        ("--max-tasks", "0", "0 is not within 1..9223372036854775807"),
        ("--memory", "1T", "'1T' is not a size: 512M, 8G"),
        ("--memory", "4k", "4k is not within 16M..64G"),
    ],
)
def test_what_is_no_limit_is_named(option: str, value: str, message: str) -> None:
    done = perfemu("run", f"{option}={value}", "/bin/true")
    assert done.returncode == 129
    assert complaint(done).startswith(f"run: argument {option}: {message} ")
