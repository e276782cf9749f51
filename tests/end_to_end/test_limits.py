"""What a run may use at most: time, instructions, tasks and memory, each with a message and a status of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import require
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
    """A cycle of the ideal core is a nanosecond; a number alone is one of milliseconds for stat, as perf's."""
    spin = program(tmp_path / "spin", isa, SPIN[isa])
    done = perfemu("stat", "-x,", "-e", "instructions", "--timeout", "2", "--cpus", cpus, spin)
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
        ("--cpus", "0", "0 is not within 1..64"),
        ("--cpus", "65", "65 is not within 1..64"),
        ("--quantum", "0", "0 is not within 1..9223372036854775807"),
        ("--seed", "x", "'x' is not a number"),
        ("--timeout", "1m", "'1m' is not a time: 2s, 1.5ms"),
        ("--timeout", "nan", "'nan' is not a time: 2s, 1.5ms"),
        ("--timeout", "-1", "-1 is no time that could pass"),
        ("--max-tasks", "0", "0 is not within 1..9223372036854775807"),
        ("--memory", "1T", "'1T' is not a size: 512M, 8G"),
        ("--memory", "4k", "4k is not within 16M..64G"),
        ("--max-output", "-1", "'-1' is not a size: 512M, 8G"),
    ],
)
def test_what_is_no_limit_is_named(option: str, value: str, message: str) -> None:
    done = perfemu("run", f"{option}={value}", "/bin/true")
    assert done.returncode == 129
    assert complaint(done).startswith(f"run: argument {option}: {message} ")


def shell(*options: str, script: str, cwd: Path) -> tuple[list[str], list[str]]:
    """What busybox's shell prints, and what is said on stderr."""
    busybox = require.debian_tree("amd64", "busybox-static") / "bin" / "busybox"
    done = perfemu("run", *options, "--", busybox, "sh", "-c", script, cwd=cwd)
    return done.stdout.decode().splitlines(), done.stderr.decode().splitlines()


def test_what_the_guest_writes_to_the_host_ends_at_the_limit_exactly(tmp_path: Path) -> None:
    """Each new file counts as 4096 bytes: 100 KiB less two of them is 94,208 bytes, of which 60,000 go to the first."""
    script = "head -c 60000 /dev/zero > a; head -c 60000 /dev/zero > b; : > c; mkdir d; ln -s x y; echo x"
    printed, said = shell("--max-output", "100k", script=script, cwd=tmp_path)
    assert printed == []
    told = "perfemu: the guest has written 102400 bytes to the host, and may not write more (ENOSPC; --max-output)"
    assert said.count(told) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert (tmp_path / "a").stat().st_size == 60_000
    assert (tmp_path / "b").stat().st_size == 34_208  # all that was left: nothing could be said of it


def test_what_is_written_to_standard_output_counts(tmp_path: Path) -> None:
    printed, _ = shell("--max-output", "10", script="echo 123456; echo abcdef; echo more; exit 0", cwd=tmp_path)
    assert printed == ["123456", "abc"]


def test_files_in_memory_take_half_of_it_at_most(tmp_path: Path) -> None:
    script = "head -c 60000000 /dev/zero > /tmp/perfemu-limit; stat -c %s /tmp/perfemu-limit"
    printed, said = shell("--memory", "64M", script=script, cwd=tmp_path)
    assert 32_000_000 < int(printed[0]) <= 32 << 20
    full = "perfemu: files in memory (/tmp, memfd) are full: the limit is 33554432 bytes (ENOSPC)"
    assert full in said


def test_files_in_memory_leave_that_much_less_to_programs(tmp_path: Path) -> None:
    """awk takes more than 24 MiB, and less than 40: there is room for that, and not for a file of 20 MB besides."""
    big = 'awk \'BEGIN { x = "0123456789"; while (length(x) < 10000000) x = x x; y = x "y"; print length(y) }\''
    write = "head -c 20000000 /dev/zero > /tmp/perfemu-limit"
    alone, _ = shell("--memory", "40M", script=f"{write}; rm /tmp/perfemu-limit; {big}", cwd=tmp_path)
    both, said = shell("--memory", "40M", script=f"{write}; {big}", cwd=tmp_path)
    assert alone == ["10485761"]  # 10 * 2**20, and the y
    assert both == []
    assert any(line.endswith("killed: the machine's 40 MiB of memory are used up") for line in said)


@pytest.mark.parametrize(("command", "time"), [("run", "0.001"), ("run", "1ms"), ("stat", "1"), ("stat", "0.001s")])
def test_a_millisecond_can_be_written_so(command: str, time: str, tmp_path: Path) -> None:
    spin = program(tmp_path / "spin", "x86_64", SPIN["x86_64"])
    done = perfemu(command, "--timeout", time, spin)
    assert done.returncode == 124
    assert done.stderr.decode().splitlines()[0] == f"{spin}: stopped: 0.001 s of simulated time are over (--timeout)"
