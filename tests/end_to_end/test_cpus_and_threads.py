"""Counts and profiles of CPUs and of threads: what each did, exactly, and together what the program did."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from end_to_end.assembled import program
from end_to_end.command import complaint, perfemu
from end_to_end.test_following_tasks import CHILD
from end_to_end.test_many_tasks import FORKS, INSTRUCTIONS
from guests import ISAS
from perfemu.api import Guest, report, stat
from perfemu.errors import UsageError
from real_perf import RealPerf

TASKS = range(1000, 1005)


@pytest.fixture(params=ISAS)
def forks(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    return request.param, program(tmp_path / "forks", request.param, FORKS[request.param])


def counts(path: Path, *options: str) -> list[list[str]]:
    """The rows of `stat -x,`."""
    done = perfemu("stat", "-x,", *options, path)
    assert done.returncode == 1 + 2 + 3 + 4, done.stderr
    return [line.split(",") for line in done.stderr.decode().splitlines()]


@pytest.mark.parametrize(
    "schedule", [("--cpus", "1"), ("--cpus", "4"), ("--cpus", "3", "--quantum", "77")], ids=" ".join
)
def test_what_all_cpus_execute_is_what_the_program_executes(forks: tuple[str, Path], schedule: tuple[str, ...]) -> None:
    isa, path = forks
    event = ("-e", "instructions", *schedule)
    (whole,) = counts(path, *event, "-a")
    assert int(whole[0]) == INSTRUCTIONS[isa]
    rows = counts(path, *event, "-a", "-A")
    assert [row[0] for row in rows] == [f"CPU{number}" for number in range(int(schedule[1]))]
    assert sum(int(row[1]) for row in rows) == INSTRUCTIONS[isa]
    (last,) = counts(path, *event, "-C", str(int(schedule[1]) - 1))
    assert last[0] == rows[-1][1]


def test_each_cpu_is_a_core_and_all_are_one_die(forks: tuple[str, Path]) -> None:
    """In the order, and with the fields and widths, that `perf stat` of Debian 12 has as a guest on two CPUs."""
    isa, path = forks
    asked = ("--cpus", "2", "-a", "-e", "instructions,page-faults")
    by_cpu = counts(path, *asked, "-A")
    cores = counts(path, *asked, "--per-core")
    names = ("instructions:u", "page-faults")
    assert [(*row[:2], row[4]) for row in cores] == [(f"S0-D0-C{cpu}", "1", name) for cpu in "01" for name in names]
    assert sorted(row[2] for row in cores) == sorted(row[1] for row in by_cpu)
    die, faults = counts(path, *asked, "--per-die")
    assert die[:5] == ["S0-D0", "2", str(INSTRUCTIONS[isa]), "", "instructions:u"]
    assert int(faults[2]) == sum(int(row[1]) for row in by_cpu if row[3] == "page-faults")
    text = perfemu("stat", *asked, "--per-core", path).stderr.decode()
    assert f"S0-D0-C1           1 {int(cores[2][2]):>18,}      instructions:u" in text
    first = json.loads(perfemu("stat", "-j", *asked, "--per-die", path).stderr.splitlines()[0])
    assert list(first)[:3] == ["die", "aggregate-number", "counter-value"]
    assert len(stat(Guest([path], cpus=2, core="ideal"), ["instructions"], all_cpus=True, per_core=True).parts) == 2


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        (("-a",), {"all_cpus": True}),
        (("-a", "-A"), {"all_cpus": True, "per_cpu": True}),
        (("-C", "0,2-3"), {"cpu_list": "0,2-3"}),
        (("-C", "2", "-A"), {"cpu_list": "2", "per_cpu": True}),
        (("--per-thread",), {"per_thread": True}),
        (("-A", "--per-thread"), {"per_cpu": True, "per_thread": True}),
        (("-A",), {"per_cpu": True}),
        (("-C", "1", "--per-thread"), {"cpu_list": "1", "per_thread": True}),
        (("-C", "4"), {"cpu_list": "4"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_python_gets_what_the_command_prints(
    forks: tuple[str, Path], options: tuple[str, ...], keywords: dict[str, Any]
) -> None:
    path = str(forks[1])
    done = perfemu("stat", *options, "--cpus", "4", path)
    try:
        printed = str(stat(Guest([path], core="ideal", cpus=4, cwd="/"), **keywords))
    except UsageError as error:
        printed = f"perfemu: {error.message}\n"
    assert done.stderr.decode() == printed


def test_python_finds_the_counts_of_each_cpu_and_thread(forks: tuple[str, Path]) -> None:
    isa, path = forks
    by_thread = stat(Guest([path], core="ideal", cpus=4), ["instructions"], per_thread=True)
    own = INSTRUCTIONS[isa] - 4 * CHILD[isa]
    expected = {"forks-1000": own, **{f"forks-{task}": CHILD[isa] for task in TASKS[1:]}}
    assert {name: part["instructions"] for name, part in by_thread.parts.items()} == expected
    by_cpu = stat(Guest([path], core="ideal", cpus=4), ["instructions"], all_cpus=True, per_cpu=True)
    assert list(by_cpu.parts) == ["CPU0", "CPU1", "CPU2", "CPU3"]
    assert by_thread["instructions"] == by_cpu["instructions"] == INSTRUCTIONS[isa]
    assert sum(part["instructions"] for part in by_cpu.parts.values()) == INSTRUCTIONS[isa]
    assert stat(Guest([path], core="ideal"), ["instructions"]).parts == {}


@pytest.mark.parametrize("cpus", ["1", "4"])
def test_each_thread_has_its_own_count(forks: tuple[str, Path], cpus: str) -> None:
    """The busiest first; of those that are equal, in the order of their making. The parent forks and waits."""
    isa, path = forks
    rows = counts(path, "-e", "instructions", "--cpus", cpus, "--per-thread")
    own = INSTRUCTIONS[isa] - 4 * CHILD[isa]
    assert [(row[0], int(row[1])) for row in rows] == [
        *((f"forks-{task}", CHILD[isa]) for task in TASKS[1:]),
        ("forks-1000", own),
    ]
    (alone,) = counts(path, "-e", "instructions", "--cpus", cpus, "--per-thread", "-i")
    assert (alone[0], int(alone[1])) == ("forks-1000", own)


def test_time_of_a_cpu_goes_on_while_it_idles(forks: tuple[str, Path]) -> None:
    rows = counts(forks[1], "-e", "cpu-clock,context-switches", "--cpus", "5", "-a", "-A")
    clocks = {row[0]: row[4] for row in rows if row[3] == "cpu-clock"}
    assert len(set(clocks.values())) == 1  # ns: all are enabled from the first moment to the last
    switches = {row[0]: int(row[1]) for row in rows if row[3] == "context-switches"}
    assert all(switches[f"CPU{number}"] > 0 for number in range(4))
    ours = int(counts(forks[1], "-e", "context-switches", "--cpus", "5")[0][0])
    assert ours < sum(switches.values())  # to a task from an idle CPU is a switch of the CPU's, and of no task's


def test_lines_look_like_perfs(forks: tuple[str, Path]) -> None:
    """perf 6.1: a CPU's number has 7 columns, a thread's name 16 before the dash, its number 8 behind it."""
    isa, path = forks
    options = ("-e", "instructions,cycles", "--cpus", "2")
    text = perfemu("stat", *options, "-a", "-A", path).stderr.decode()
    assert " Performance counter stats for 'system wide' (core ideal):" in text
    assert re.search(r"^CPU0 {7}(?=.{18} {6}instructions:u  ) *[\d,]+ {6}in", text, re.MULTILINE)
    assert not re.search("seconds (user|sys)", text)
    text = perfemu("stat", *options, "-C", "0,1", path).stderr.decode()
    assert " Performance counter stats for 'CPU(s) 0,1' (core ideal):" in text
    text = perfemu("stat", *options, "--per-thread", path).stderr.decode()
    assert f"\n           forks-1001     {CHILD[isa]:18,}      instructions:u  " in text
    assert "seconds user" in text
    for option, key, value in (("-aA", "cpu", "0"), ("--per-thread", "thread", "forks-1001")):
        lines = perfemu("stat", "-j", *options, option, path).stderr.decode().splitlines()
        first = json.loads(lines[0])
        assert (next(iter(first)), first[key]) == (key, value)


def test_quiet_is_quiet(forks: tuple[str, Path]) -> None:
    for options in ((), ("-I", "1"), ("-x,",), ("-j", "--functions")):
        done = perfemu("stat", "--quiet", *options, "-e", "instructions", forks[1])
        assert (done.returncode, done.stderr) == (1 + 2 + 3 + 4, b"")


def test_repeated_runs_have_no_deviation(forks: tuple[str, Path]) -> None:
    text = perfemu("stat", "-r", "2", "-e", "instructions", "--per-thread", forks[1]).stderr.decode()
    assert text.count("( +-  0.00% )") == len(TASKS) + 1  # the last is the elapsed time


def test_a_cpus_samples_are_of_all_that_it_executes(forks: tuple[str, Path], tmp_path: Path) -> None:
    """One for each 1,000 instructions of a CPU, whoever executes them."""
    path = forks[1]
    options = ("-e", "instructions", "--cpus", "3")
    executed = [int(row[1]) for row in counts(path, *options, "-a", "-A")]
    for scope, cpus in ((("-a",), range(3)), (("-C", "1-2"), range(1, 3))):
        perfemu("record", "-q", *options, *scope, "-c", "1000", "-o", tmp_path / "data", path)
        rows = report(tmp_path / "data", sort=("cpu",)).events[0]
        assert {int(row.keys["cpu"]): row.samples for row in rows} == {cpu: executed[cpu] // 1000 for cpu in cpus}
        line = RealPerf(tmp_path).run("evlist", "-v", "-i", tmp_path / "data")
        assert "CPU" in line
        assert "enable_on_exec" not in line


def test_idle_time_is_the_idle_tasks(forks: tuple[str, Path], tmp_path: Path) -> None:
    """Of the kernel: without modifiers only user mode is sampled."""
    perf = RealPerf(tmp_path)
    for event, idle in (("cpu-clock", False), ("cpu-clock:uk", True)):
        perfemu("record", "-q", "-a", "-e", event, "-c", "1000", "--cpus", "6", "-o", tmp_path / "data", forks[1])
        rows = report(tmp_path / "data", sort=("comm", "cpu")).events[0]
        assert {row.keys["comm"] for row in rows} == ({"forks", "swapper"} if idle else {"forks"})
    tasks = perf.run("script", "-F", "comm,tid", "-i", tmp_path / "data", "--comms", "swapper").split()
    assert set(zip(tasks[::2], tasks[1::2], strict=True)) == {("swapper", "0")}


def test_what_makes_no_sense_is_said() -> None:
    for options, said in (
        (("stat", "-A"), "stat -A: counts of each CPU want -a or -C"),
        (("stat", "-aA", "--per-thread"), "stat: -A and --per-thread exclude each other"),
        (("stat", "--per-thread", "-C", "0"), "stat: --per-thread and -C exclude each other"),
        (("stat", "-C", "1"), "-C 1: there is no CPU 1: the machine has CPU 0 alone (--cpus)"),
        (("record", "--cpus", "2", "-C", "0-2"), "-C 0-2: there is no CPU 2: the machine has CPUs 0 to 1 (--cpus)"),
        (("stat", "-C", "1-0"), "-C 1-0: '1-0' ends before it begins"),
        (("stat", "-C", "x"), "-C x: 'x' is neither a CPU nor a range of them, as in 0,2-3"),
    ):
        done = perfemu(*options, "/bin/true")
        assert done.returncode == 129
        assert complaint(done) == said
