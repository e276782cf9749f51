"""stat -G, --for-each-cgroup, record -G: control groups that the guest makes while it runs, counted by their names."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path

import pytest

from end_to_end.command import complaint, perfemu
from guests import DIRECTORY, guest
from perfemu.events.changes import CgroupNames, Changes
from perfemu.guest import Guest
from perfemu.session import Session

ISA = platform.machine()
ROOT = "/sys/fs/cgroup"


def inside(group: str, program: str) -> str:
    """A shell that goes there, and becomes the program."""
    return f"sh -c 'echo 0 > {ROOT}/{group}/cgroup.procs; exec {program}'"


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """At paths of equal length, so that a shell does the same for each."""
    copies = {name: tmp_path / str(number) / "it" for number, name in enumerate(("sort", "loop_1k"))}
    for name, copy in copies.items():
        copy.parent.mkdir()
        shutil.copy(DIRECTORY / name / f"{ISA}.elf", copy)
    return {name: str(copy) for name, copy in copies.items()}


def rows(options: str, script: str) -> tuple[list[list[str]], str]:
    """Those of -x, and what else is said."""
    done = perfemu("stat", "-x,", *options.split(), "--", "sh", "-c", script)
    lines = done.stderr.decode().splitlines()
    told = [line for line in lines if line.startswith("perfemu: ")]
    return [line.split(",") for line in lines if line not in told], "\n".join(told)


def counted(options: str, script: str) -> dict[str, int]:
    """Group -> count."""
    return {row[3]: int(row[0]) for row in rows(options, script)[0]}


def test_a_group_counts_what_its_tasks_execute_and_those_below(programs: dict[str, str]) -> None:
    """The shell does the same before either program; so the difference is that of what they retire."""
    options = "-a --cpus 2 -e instructions:u --for-each-cgroup a,a/b,/"
    counts = {
        name: counted(options, f"mkdir -p {ROOT}/a/b; {inside('a/b', program)}; :")
        for name, program in programs.items()
    }
    retired = {name: guest(name, ISA).counts["INST_RETIRED"] for name in programs}
    assert counts["sort"]["a"] == counts["sort"]["a/b"] < counts["sort"]["/"]
    assert counts["sort"]["a"] - counts["loop_1k"]["a"] == retired["sort"] - retired["loop_1k"]


def test_one_that_is_made_again_counts_on(programs: dict[str, str]) -> None:
    once = f"mkdir {ROOT}/a; {inside('a', programs['loop_1k'])}; rmdir {ROOT}/a; "
    options = "-a -e instructions:u -G a"
    assert counted(options, once * 2)["a"] == 2 * counted(options, once)["a"]


def test_intervals_and_cpus_add_up(programs: dict[str, str]) -> None:
    script = f"mkdir {ROOT}/a; {inside('a', programs['sort'])}; :"
    options = "-a --cpus 2 -e instructions:u -G a"
    total = counted(options, script)["a"]
    intervals, _ = rows(f"{options} -I 20000i", script)
    assert len(intervals) > 4
    assert sum(int(row[1]) for row in intervals if row[1] != "<not counted>") == total
    cpus, _ = rows(f"{options} -A", script)
    assert [row[0] for row in cpus] == ["CPU0", "CPU1"]
    assert sum(int(row[1]) for row in cpus if row[1] != "<not counted>") == total


def test_one_that_never_appears_is_named_and_not_counted() -> None:
    lines, told = rows("-a -e instructions:u,page-faults:u --for-each-cgroup nosuch", "exit")
    assert [(row[0], row[2], row[3]) for row in lines] == [
        ("<not counted>", event, "nosuch") for event in ("instructions:u", "page-faults:u")
    ]
    assert told == "perfemu: the guest has made no control group nosuch: nothing was counted of it"


def test_json_and_metrics_are_by_group(programs: dict[str, str]) -> None:
    """The ratio is of the group's own cycles: on this core one is one instruction."""
    script = f"mkdir {ROOT}/a {ROOT}/c; {inside('a', programs['sort'])}; :"
    options = ("-a", "-e", "instructions:u,cycles:u", "--for-each-cgroup", "a,c", "--", "sh", "-c", script)
    lines = [json.loads(line) for line in perfemu("stat", "-j", *options).stderr.splitlines()]
    assert [(line["event"], line["cgroup"]) for line in lines] == [
        (event, group) for group in "ac" for event in ("instructions:u", "cycles:u")
    ]
    assert (float(lines[0]["metric-value"]), lines[0]["metric-unit"]) == (1.0, "insn per cycle")
    assert lines[2]["counter-value"] == "<not counted>"
    alone = perfemu("stat", "--metric-only", "-x,", *options).stderr.decode().splitlines()
    assert alone == ["cgroup,insn per cycle,", "a,1.00,", "c,,"]


@pytest.mark.parametrize(
    ("asked", "cgroups", "expected"),
    [
        (["cycles,instructions"], [(1, ("a",))], ["a", "a"]),  # one is for all
        (["cycles,instructions"], [(1, ("a", ""))], ["a", ""]),  # ... unless it is not alone
        (["cycles,instructions"], [(1, ("", "a"))], ["", "a"]),
        (["cycles", "instructions"], [(1, ("a",))], ["a", ""]),  # of those that stood before it
        (["cycles", "instructions"], [(1, ("a",)), (2, ("b",))], ["a", "b"]),
    ],
)
def test_which_event_counts_which_group(
    asked: list[str], cgroups: list[tuple[int, tuple[str, ...]]], expected: list[str]
) -> None:
    """As `perf stat -G` of Debian's 6.1 and 6.12 does, asked as guests."""
    session = Session(Guest((str(DIRECTORY / "loop_1k" / "x86_64.elf"),), core="ideal"))
    changes = Changes(cgroups=tuple(CgroupNames(*names) for names in cgroups))
    assert [spec.cgroup for spec in changes.applied(session.parse(asked))] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("stat -e cycles -G a", "stat -G: control groups are counted in system-wide mode alone: with -a or -C"),
        ("stat --for-each-cgroup a", "in system-wide mode alone: with -a or -C"),
        ("record -G a", "must define events before cgroups"),
        ("stat -a -G a -e cycles", "must define events before cgroups"),
        ("stat -a -e cycles -G a,b", "more groups than events (-e) before it: 1"),
        ("stat -a -e cycles -G a --for-each-cgroup b", "-G and --for-each-cgroup exclude each other"),
        ("stat -a -e cycles --for-each-cgroup a.*", "patterns of names are not modelled"),
        ("stat -a -e cycles --for-each-cgroup ../a", "'..' is in no path below /sys/fs/cgroup"),
        ("stat -a -e {cycles,instructions} -G a,b", "the group leader counts another control group"),
        ("stat -a -e cycles -G a --functions", "is of all control groups"),
        ("record --exact -a -e cycles -G a", "is of all control groups"),
        ("stat --board virt -e cycles -G a", "are of programs"),
    ],
)
def test_what_makes_no_sense(options: str, message: str, tmp_path: Path) -> None:
    done = perfemu(*options.split(), "--", "sh", "-c", "exit", cwd=tmp_path)
    assert done.returncode in (1, 129)
    assert message in complaint(done)
