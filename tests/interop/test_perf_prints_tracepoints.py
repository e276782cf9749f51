"""Tracepoints sampled by perfemu record, and by perf as a guest: the host's perf prints their fields."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from end_to_end.assembled import program
from end_to_end.command import complaint, perfemu
from end_to_end.test_many_tasks import FORKS
from guests import ISAS, guest
from perfemu.api import report
from real_perf import RealPerf

PARENT, CHILDREN = 1000, [1001, 1002, 1003, 1004]
FIELDS = ("-F", "trace:comm,tid,event,trace")


def printed(perf: RealPerf, file: Path) -> list[tuple[str, int, str, str]]:
    """(comm, tid, event, fields) of each sample."""
    lines = perf.run("script", *FIELDS, "-i", file).splitlines()
    found = [re.fullmatch(r" *(\S+) +(\d+) +(\w+:\w+): ?(.*)", line) for line in lines]
    assert all(found), lines
    return [(match[1], int(match[2]), match[3], match[4].strip()) for match in found if match]


@pytest.mark.parametrize("isa", ISAS)
def test_system_calls_have_their_arguments_and_results(isa: str, tmp_path: Path) -> None:
    sort = guest("sort", isa)
    size = len(sort.stdout.encode())
    events = "syscalls:sys_enter_write,syscalls:sys_exit_write"
    done = perfemu("record", "-q", "-e", events, "-o", tmp_path / "data", sort.path)
    assert done.stdout.decode() == sort.stdout
    entered, left = printed(RealPerf(tmp_path), tmp_path / "data")
    assert entered[2] == "syscalls:sys_enter_write"
    assert re.fullmatch(rf"fd: 0x00000001, buf: 0x[0-9a-f]+, count: {size:#010x}", entered[3])
    assert left[2:] == ("syscalls:sys_exit_write", f"{size:#x}")


@pytest.mark.parametrize("isa", ISAS)
def test_tasks_come_go_and_take_turns(isa: str, tmp_path: Path) -> None:
    """Four children that each count for a while, one CPU: the parent forks, then sleeps in wait4 until one ends."""
    path = program(tmp_path / "forks", isa, FORKS[isa])
    perfemu("record", "-q", "-e", "sched:*", "-o", tmp_path / "data", path)
    samples = printed(RealPerf(tmp_path), tmp_path / "data")
    by_event: dict[str, list[str]] = {}
    for _, _, event, fields in samples:
        by_event.setdefault(event, []).append(fields)
    assert by_event["sched:sched_process_exec"] == [f"filename={path} pid={PARENT} old_pid={PARENT}"]
    assert by_event["sched:sched_process_fork"] == [
        f"comm=forks pid={PARENT} child_comm=forks child_pid={child}" for child in CHILDREN
    ]
    ended = [f"comm=forks pid={task} prio=120" for task in (*CHILDREN, PARENT)]
    assert sorted(by_event["sched:sched_process_exit"]) == sorted(ended)
    switches = by_event["sched:sched_switch"]
    first = f"prev_comm=forks prev_pid={PARENT} prev_prio=120 prev_state=S ==> next_comm=forks next_pid="
    assert switches[0].startswith(first)
    counts = Counter(event for _, _, event, _ in samples)
    counted = perfemu("stat", "-x,", "-e", "sched:*", path).stderr.decode().splitlines()
    assert counts == Counter({row[2]: int(row[0]) for row in (line.split(",") for line in counted)})


def test_a_pipe_and_our_own_report_know_them_too(tmp_path: Path) -> None:
    path = program(tmp_path / "forks", "x86_64", FORKS["x86_64"])
    perfemu("record", "-q", "-e", "sched:*", "-o", tmp_path / "data", path)
    (tmp_path / "pipe").write_bytes(perfemu("record", "-q", "-e", "sched:*", "-o", "-", path).stdout)
    perf = RealPerf(tmp_path)
    assert printed(perf, tmp_path / "pipe") == printed(perf, tmp_path / "data")
    for file in ("data", "pipe"):
        events = report(tmp_path / file, sort=("tid",)).events
        samples = {event.name: sum(row.samples for row in event) for event in events}
        assert samples["sched:sched_process_exit"] == 5


def test_a_wakeup_names_who_is_woken_and_where(tmp_path: Path) -> None:
    """cat sleeps until echo has written."""
    data, script = tmp_path / "data", "(sleep 0.1; echo word) | cat"
    perfemu("record", "-q", "-e", "sched:sched_wakeup", "--cpus", "2", "-o", data, "sh", "-c", script)
    wakeups = [(comm, fields) for comm, _, _, fields in printed(RealPerf(tmp_path), data)]
    assert [comm for comm, _ in wakeups] == ["sh"] * len(wakeups)
    assert re.fullmatch(r"comm=cat pid=1002 prio=120 target_cpu=00[01]", wakeups[-1][1])


def test_a_rate_that_is_asked_for_holds_for_tracepoints(tmp_path: Path) -> None:
    path = program(tmp_path / "forks", "x86_64", FORKS["x86_64"])
    perfemu("record", "-q", "-c", "2", "-e", "sched:sched_process_fork", "-o", tmp_path / "data", path)
    line = RealPerf(tmp_path).run("evlist", "-v", "-i", tmp_path / "data")
    assert "{ sample_period, sample_freq }: 2, sample_type: IP|TID|TIME|CPU|PERIOD|RAW" in line


def test_unknown_tracepoints_are_named(tmp_path: Path) -> None:
    for event, said in (
        ("sched:sched_swich", "no tracepoint 'sched:sched_swich', did you mean sched:sched_switch"),
        ("syscalls:sys_enter_wri*x", "no tracepoint matches 'syscalls:sys_enter_wri*x'"),
    ):
        assert said in complaint(perfemu("stat", "-e", event, "/bin/true"))


def test_perf_sched_follows_the_cpus(tmp_path: Path) -> None:
    """Each child executes for 40,003 ns, or for as long as its slices last; idle time is between switches."""
    path = program(tmp_path / "forks", "x86_64", FORKS["x86_64"])
    perfemu("record", "-q", "-a", "--cpus", "5", "-e", "sched:*", "-o", tmp_path / "data", path)
    perf = RealPerf(tmp_path, says=("Samples do not have callchains.",))
    rows = [line.split() for line in perf.run("sched", "timehist", "-i", tmp_path / "data").splitlines()]
    ran = {row[2]: float(row[-1]) for row in rows if len(row) == 6 and row[2].startswith("forks[")}
    assert {f"forks[{child}]" for child in CHILDREN} <= set(ran)
    assert all(ran[f"forks[{child}]"] == 0.040 for child in CHILDREN)


def test_perf_sched_latency_knows_how_long_tasks_ran_and_waited(tmp_path: Path) -> None:
    """One CPU for four children, each of which executes 40,003 instructions of 1 ns, all before the next one's turn."""
    path = program(tmp_path / "forks", "x86_64", FORKS["x86_64"])
    perfemu("record", "-q", "-a", "--core", "ideal", "-e", "sched:*", "-o", tmp_path / "data", path)
    perf = RealPerf(tmp_path)
    rows = [line.split("|") for line in perf.run("sched", "latency", "-p", "-i", tmp_path / "data").splitlines()]
    ran = {row[0].strip(): row[1].strip() for row in rows if row[0].strip().startswith("forks:")}
    assert all(ran[f"forks:{child}"] == "0.040 ms" for child in CHILDREN)
    told = [
        (event, dict(re.findall(r"(\w+)=(\d+)", fields))) for _, _, event, fields in printed(perf, tmp_path / "data")
    ]
    waited = [int(row["delay"]) for event, row in told if event == "sched:sched_stat_wait" and row["pid"] == "1004"]
    assert 3 * 40_003 <= sum(waited) < 4 * 40_003  # for the children before it, less what the parent did meanwhile
    runtime = sum(int(row["runtime"]) for event, row in told if event == "sched:sched_stat_runtime")
    counted = perfemu("stat", "-x,", "--core", "ideal", "-e", "task-clock", path).stderr.decode()
    assert f"{runtime / 1e6:.2f}" == counted.split(",")[0]


def test_sleep_is_told_when_it_ends(tmp_path: Path) -> None:
    """Where a signal could have ended it; nothing waits for a disk."""
    perfemu(
        "record", "-q", "-a", "--core", "ideal", "-e", "sched:sched_stat_*", "-o", tmp_path / "data", "sleep", "0.25"
    )
    told = [row for row in printed(RealPerf(tmp_path), tmp_path / "data") if row[2] == "sched:sched_stat_sleep"]
    ((comm, tid, _, fields),) = told
    assert (comm, tid) == ("swapper", 0)  # the timer's interrupt finds nobody there
    assert re.fullmatch(r"comm=sleep pid=1000 delay=250000\d{3} \[ns\]", fields)


def test_a_task_that_has_executed_another_program_has_its_name(tmp_path: Path) -> None:
    script = "(sleep 0.01; echo word) | cat"
    perfemu("record", "-q", "-a", "--cpus", "2", "-e", "sched:*", "-o", tmp_path / "data", "sh", "-c", script)
    samples = printed(RealPerf(tmp_path), tmp_path / "data")
    executed = [(comm, fields.split()[0].rpartition("/")[2]) for comm, _, event, fields in samples if "_exec" in event]
    assert {comm for comm, _ in executed} == {"sh", "sleep", "cat"}
    assert all(comm == file or (comm == "sh" and file in ("sh", "dash", "bash")) for comm, file in executed)
    assert all(comm[0] != ":" for comm, *_ in samples)  # which perf gives to whom it knows no name
