"""A program of eight tasks in three processes, with signals: its counts are exact, and any two runs of it are alike."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from c_programs import build
from end_to_end.hosts import everywhere, hosts_of, idle_and_busy
from end_to_end.watching import counts_by_task
from guests import ISAS
from perfemu.guest import Guest
from perfemu.session import Session

SOURCE = Path(__file__).with_name("tasks.c")
WORKERS = {"thread1": 4, "thread2": 5, "thread3": 6, "grand1": 4, "grand2": 5}  # thousands of rounds
TASKS = {*WORKERS, "tasks", "child1", "child2"}
SCHEDULES = (  # CPUs, quantum, slice, seed
    (1, 1000, 3_000_000, None), (1, 1000, 1234, None), (1, 1000, 7777, 3),
    (4, 1000, 3_000_000, None), (4, 77, 501, None), (2, 20_000, 5000, 1),
)  # fmt: skip


@pytest.fixture(scope="module", params=ISAS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(SOURCE, request.param, tmp_path_factory.mktemp("tasks") / "tasks")


def counts_by_name(path: Path, cpus: int, quantum: int, slice_cycles: int, seed: int | None) -> dict[str, int]:
    """What each task has executed, by the name that it had in the end; they add up to what the CPUs have executed."""
    session = Session(
        Guest(
            (str(path), "quiet"), core="ideal", stdin=-1, stdout=-1, stderr=-1,
            cpus=cpus, quantum=quantum, seed=seed,
        )
    )  # fmt: skip
    session.machine.kernel.dispatcher.slice_cycles = slice_cycles
    names: dict[int, str] = {}
    pids: list[int] = []
    tracepoints = session.machine.kernel.tracepoints
    tracepoints.task_fork.subscribe(lambda parent, child: pids.append(child.pid))
    tracepoints.task_exit.subscribe(lambda task: names.update({task.tid: task.comm}))
    counts = counts_by_task(session, 0)
    assert len(counts) == len(names) == len(TASKS)
    assert sorted(Counter(pids).values()) == [2, 2, 3]
    return {names[tid]: count for tid, count in counts.items()}


def test_counts_add_up_and_are_the_same_however_tasks_are_scheduled(built: Path) -> None:
    """Who waits for a thread may find that it has ended, or sleep: what it executes may differ by that."""
    runs = [counts_by_name(built, *schedule) for schedule in SCHEDULES]
    assert all(run.keys() == TASKS for run in runs)
    workers = [{name: run[name] for name in WORKERS} for run in runs]
    assert workers == workers[:1] * len(runs)
    round_ = workers[0]["thread2"] - workers[0]["thread1"]  # a thousand, and a signal
    assert round_ > 3000
    assert workers[0]["thread3"] - workers[0]["thread2"] == round_
    assert workers[0]["grand2"] - workers[0]["grand1"] == round_
    for waiting in TASKS - set(WORKERS):
        counts = [run[waiting] for run in runs]
        assert max(counts) - min(counts) < 500


@pytest.mark.parametrize(
    "schedule", [("--cpus", "4"), ("--cpus", "3", "--seed", "5", "--quantum", "333")], ids=" ".join
)
def test_two_runs_are_alike_on_any_host(schedule: tuple[str, ...], built: Path, tmp_path: Path) -> None:
    """What it prints says when things happened, in which order and on which CPU."""
    hosts = hosts_of(built.parent)
    done = everywhere(hosts, "stat", "-d", "-e", "context-switches,cpu-migrations,page-faults", *schedule, built)
    assert done.stdout.count(b"came as number") == 3
    data = tmp_path / "perf.data"
    events = "instructions,cpu-clock,page-faults"
    everywhere(hosts, "record", "-g", "-c", "997", "-e", events, "-o", data, *schedule, built, data=data)
    everywhere(hosts, "report", "--sort", "comm,pid,tid,cpu", "-i", data)


def test_two_runs_are_alike_while_the_host_is_busy(built: Path, tmp_path: Path) -> None:
    hosts, data = idle_and_busy(built.parent), tmp_path / "perf.data"
    everywhere(hosts, "stat", "-e", "instructions,context-switches", "--cpus", "4", built)
    everywhere(hosts, "record", "-c", "1009", "-e", "instructions", "--cpus", "4", "-o", data, built, data=data)
