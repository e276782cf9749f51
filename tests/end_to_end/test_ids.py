"""-p and -t: only some of the program's processes and threads count, from when they appear; what they start, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import require
from c_programs import build
from end_to_end.command import complaint, perfemu
from guests import DIRECTORY
from perfemu import api
from perfemu.errors import PerfemuError, UsageError

# 1000 starts 1001, which starts 1002; and then 1003
SCRIPT = "(true & wait) & wait; (: ; : ; :) & wait"


@pytest.fixture(scope="module")
def shell() -> api.Guest:
    return api.Guest([require.command("busybox", package="busybox-static"), "sh", "-c", SCRIPT], core="ideal")


@pytest.fixture(scope="module")
def each(shell: api.Guest) -> dict[int, int]:
    """tid -> what that thread alone has executed."""
    counted = api.stat(shell, ["instructions:u"], per_thread=True, capture=True)
    return {int(name.rpartition("-")[2]): part["instructions"] for name, part in counted.parts.items()}


def counted(guest: api.Guest, **options: Any) -> int:
    return api.stat(guest, ["instructions:u"], capture=True, **options)["instructions"]


def test_a_process_and_what_it_starts(shell: api.Guest, each: dict[int, int]) -> None:
    assert sorted(each) == [1000, 1001, 1002, 1003]
    assert counted(shell, pids=[1001]) == each[1001] + each[1002]
    assert counted(shell, pids=[1002]) == each[1002]
    assert counted(shell, pids=[1001, 1003]) == each[1001] + each[1002] + each[1003]
    assert counted(shell, pids=[1001, 1002]) == each[1001] + each[1002]  # 1002 not twice
    assert counted(shell, pids=[1000]) == sum(each.values())


def test_not_what_it_starts() -> None:
    busybox = require.command("busybox", package="busybox-static")

    def lines(*options: str) -> list[list[str]]:
        command = ("stat", "-x,", "-e", "instructions:u", *options, busybox, "sh", "-c", SCRIPT)
        return [line.split(",") for line in perfemu(*command).stderr.decode().splitlines()]

    each = {int(row[0].rpartition("-")[2]): int(row[1]) for row in lines("--per-thread")}
    assert lines("-i", "-p", "1001")[0][0] == str(each[1001])
    assert lines("-i", "-p", "1000,1002")[0][0] == str(each[1000] + each[1002])


def test_threads(tmp_path: Path) -> None:
    program = build(Path(__file__).with_name("markers.c"), "x86_64", tmp_path / "threads", f"-I{DIRECTORY / 'include'}")
    guest = api.Guest([program, "threads"], core="ideal", cpus=2)
    parts = api.stat(guest, ["instructions:u"], per_thread=True).parts
    assert len(parts) == 5
    assert counted(guest, tids=[1002]) == parts["threads-1002"]["instructions"]
    assert counted(guest, pids=[1000]) == sum(part["instructions"] for part in parts.values())
    # together with a region: a loop of 50 in each thread, which begins with two instructions
    assert counted(guest, tids=[1002, 1004], marker=1) == 2 * 102


def test_samples_are_theirs_alone(shell: api.Guest, each: dict[int, int], tmp_path: Path) -> None:
    recorded = api.record(
        shell, ["instructions:u"], period=100, pids=[1002], output=tmp_path / "perf.data", capture=True
    )
    assert {(sample.pid, sample.tid) for _, sample in recorded.samples()} == {(1002, 1002)}
    assert recorded.sample_count == each[1002] // 100


def test_by_thread(shell: api.Guest, each: dict[int, int]) -> None:
    """Of others it is known that they were never counted."""
    parts = api.stat(shell, ["instructions:u"], pids=[1001], per_thread=True, capture=True).parts
    found = {int(name.rpartition("-")[2]): part for name, part in parts.items()}
    assert {tid: part["instructions"] for tid, part in found.items() if "instructions" in part} == {
        1001: each[1001],
        1002: each[1002],
    }


def test_the_heading(shell: api.Guest) -> None:
    busybox = require.command("busybox", package="busybox-static")
    printed = perfemu("stat", "-e", "instructions", "-p", "1001,1003", busybox, "sh", "-c", SCRIPT).stderr.decode()
    assert " Performance counter stats for process id '1001,1003' (core ideal):\n" in printed


def test_what_cannot_be(shell: api.Guest) -> None:
    with pytest.raises(PerfemuError, match="there was no process or thread 1004: there were 1000 to 1003"):
        counted(shell, pids=[1004])
    with pytest.raises(UsageError, match="-p and -t exclude each other"):
        counted(shell, pids=[1000], tids=[1000])
    with pytest.raises(UsageError, match="not with -a or -C"):
        counted(shell, pids=[1000], all_cpus=True)
    assert "-p/--pid: 'x' is not a number" in complaint(perfemu("stat", "-p", "x", "true"))
