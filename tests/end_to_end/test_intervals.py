"""stat -I and -D: counts of exact parts of the run, which add up, in simulated time; nothing of the run changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from end_to_end.command import complaint, perfemu
from guests import DIRECTORY, ISAS

RETIRED = 2004  # guest_programs/loop_1k, at one instruction a cycle of 1 ns on the ideal core


def loop(isa: str) -> Path:
    return DIRECTORY / "loop_1k" / f"{isa}.elf"


def rows(*arguments: str | Path) -> list[list[str]]:
    """The fields of each line of -x, on stderr."""
    done = perfemu("stat", "-x,", "-e", "instructions:u", *arguments)
    assert done.returncode == 0, done
    lines = done.stderr.decode().splitlines()
    return [[field.strip() for field in line.split(",")] for line in lines if "," in line]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("interval", ["500ns", "500i"])
def test_intervals_add_up(isa: str, interval: str) -> None:
    found = [(row[0], int(row[1])) for row in rows("-I", interval, loop(isa))]
    assert found == [(f"0.00000{end}", count) for end, count in
                     (("0500", 500), ("1000", 500), ("1500", 500), ("2000", 500), ("2004", 4))]  # fmt: skip


def test_so_many_intervals_and_their_sum() -> None:
    found = rows("-I", "500ns", "--interval-count", "2", "--summary", loop("x86_64"))
    assert [row[:2] for row in found] == [["0.000000500", "500"], ["0.000001000", "500"], ["summary", str(RETIRED)]]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("delay", "count"),
    [("2us", 4), ("2000i", 4), ("500ns-700ns,1us-1.5us", 700), ("100i-101i", 1), ("3us", None), ("-1", None)],
)
def test_counting_begins_and_ends_as_asked(isa: str, delay: str, count: int | None) -> None:
    (row,) = rows("-D", delay, loop(isa))
    assert row[0] == ("<not counted>" if count is None else str(count))


def test_intervals_begin_when_counting_does() -> None:
    found = [row[:2] for row in rows("-D", "1us", "-I", "600ns", loop("aarch64"))]
    assert found == [["0.000000600", "600"], ["0.000001004", "404"]]


@pytest.mark.parametrize("core", ["neoverse-n1", "skylake"])
def test_a_modelled_core_counts_the_same_in_intervals(core: str) -> None:
    """And each cycle is in one of them."""
    program = DIRECTORY / "sort" / ("x86_64.elf" if core == "skylake" else "aarch64.elf")
    options = ("stat", "--core", core, "-j", "-e", "{cycles,instructions,cache-misses}:u")
    whole = perfemu(*options, program, "100").stderr.decode().splitlines()
    parts = perfemu(*options, "-I", "1us", program, "100").stderr.decode().splitlines()
    sums: dict[str, float] = {}
    for line in parts:
        counted = json.loads(line)
        if "event" in counted:
            sums[counted["event"]] = sums.get(counted["event"], 0) + float(counted["counter-value"])
    assert len(parts) > 3 * len(whole)
    expected = [json.loads(line) for line in whole]
    assert sums == {row["event"]: float(row["counter-value"]) for row in expected if "event" in row}


def test_each_cpu_has_lived_through_the_interval() -> None:
    """The second one idles all the time."""
    done = perfemu("stat", "--cpus", "2", "-a", "-A", "-x,", "-e", "cpu-clock", "-I", "1us", loop("aarch64"))
    clocks = [(row[1], row[5]) for row in (line.strip().split(",") for line in done.stderr.decode().splitlines())]
    assert clocks == [("CPU0", "1000"), ("CPU1", "1000")] * 2 + [("CPU0", "4"), ("CPU1", "4")]


def test_what_cannot_be_is_said() -> None:
    program = loop("x86_64")
    assert complaint(perfemu("stat", "-I", "1", "-r", "2", program)).startswith("stat: -I and -r exclude each other")
    assert complaint(perfemu("stat", "--interval-count", "1", program)) == "stat --interval-count: wants -I"
    assert "no terminal" in complaint(perfemu("stat", "-I", "1", "--interval-clear", program))
    assert "'x' is not a time" in complaint(perfemu("stat", "-I", "x", program))
    assert "ranges" in complaint(perfemu("stat", "-D", "20-10", program))
