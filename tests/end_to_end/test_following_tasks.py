"""stat and record follow a program's children, on one CPU and on several: every instruction is counted once."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from c_programs import build
from end_to_end.assembled import program
from end_to_end.command import perfemu
from end_to_end.test_many_tasks import FORKS, INSTRUCTIONS
from end_to_end.watching import counts_by_task
from guests import ISAS
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType
from perfcore.events.event import PerfEvent
from perfemu.api import Guest, record, report, stat
from perfemu.session import Session
from real_perf import RealPerf

SET_AFFINITY = "31ffbe080000004889e2b8cb0000000f05"  # edi = 0, esi = 8, rdx = rsp, eax = 203; syscall
CHILD = {"aarch64": 40_005, "x86_64": 40_006}  # instructions of each of the four
SCHEDULES = [
    (),
    ("--cpus", "4"),
    ("--cpus", "4", "--quantum", "77"),
    ("--cpus", "3", "--seed", "1"),
    ("--seed", "2"),
]


@pytest.fixture(params=ISAS)
def forks(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    return request.param, program(tmp_path / "forks", request.param, FORKS[request.param])


@pytest.mark.parametrize("schedule", SCHEDULES, ids=" ".join)
def test_stat_counts_children_unless_it_shall_not(forks: tuple[str, Path], schedule: tuple[str, ...]) -> None:
    isa, path = forks
    counts = []
    for options in ((), ("-i",)):
        done = perfemu("stat", "-x,", "-e", "instructions", *options, *schedule, path)
        assert done.returncode == 1 + 2 + 3 + 4
        counts.append(int(done.stderr.split(b",")[0]))
    assert counts == [INSTRUCTIONS[isa], INSTRUCTIONS[isa] - 4 * CHILD[isa]]


def counts_of(path: Path, exit_status: int, slice_cycles: int, cpus: int) -> dict[int, int]:
    """Instructions of each task."""
    session = Session(Guest((str(path),), core="ideal", stdin=-1, stdout=-1, stderr=-1, cpus=cpus))
    session.machine.kernel.dispatcher.slice_cycles = slice_cycles
    return counts_by_task(session, exit_status)


@pytest.mark.parametrize("cpus", [1, 4])
def test_counts_of_tasks_do_not_depend_on_how_they_were_scheduled(forks: tuple[str, Path], cpus: int) -> None:
    isa, path = forks
    expected = {1000: INSTRUCTIONS[isa] - 4 * CHILD[isa], **dict.fromkeys(range(1001, 1005), CHILD[isa])}
    for slice_cycles in (3_000_000, 1234, 77):
        assert counts_of(path, 1 + 2 + 3 + 4, slice_cycles, cpus) == expected


THREADS = """
#include <pthread.h>
static void *work(void *times) {
    volatile long x = 0;
    for (long i = 0; i < (long)times * 1000; i++) x += i;
    return 0;
}
int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(threads + i, 0, work, (void *)(i + 1));
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
"""


@pytest.mark.parametrize("isa", ISAS)
def test_counts_of_threads_without_races_do_not_depend_on_how_they_were_scheduled(isa: str, tmp_path: Path) -> None:
    """The first thread waits for the others, or finds that they have ended: its counts may differ."""
    source = tmp_path / "threads.c"
    source.write_text(THREADS)
    path = build(source, isa, tmp_path / "threads")
    runs = [counts_of(path, 0, slice_cycles, cpus) for slice_cycles in (3_000_000, 1234) for cpus in (1, 4)]
    workers = [{tid: count for tid, count in run.items() if tid != 1000} for run in runs]
    assert workers == workers[:1] * 4
    assert sorted(workers[0]) == [1001, 1002, 1003, 1004]
    loop = workers[0][1002] - workers[0][1001]  # of 1000 times
    assert [workers[0][tid] - workers[0][1001] for tid in workers[0]] == [0, loop, 2 * loop, 3 * loop]
    assert loop % 1000 == 0


def test_samples_say_which_task_and_which_cpu(forks: tuple[str, Path], tmp_path: Path) -> None:
    isa, path = forks
    done = perfemu("record", "-q", "-e", "instructions", "-c", "1000", "--cpus", "4", "-o", tmp_path / "data", path)
    assert done.returncode == 10, done.stderr
    rows = report(tmp_path / "data", sort=("comm", "tid", "cpu")).events[0]
    assert {row.keys["comm"] for row in rows} == {"forks"}
    samples = Counter({(row.keys["tid"].split(":")[0], row.keys["cpu"]): row.samples for row in rows})
    assert sum(samples.values()) == sum(count // 1000 for count in (82, *[CHILD[isa]] * 4))
    assert sorted(samples.values()) == [40] * 4
    assert {cpu for _, cpu in samples} == {"000", "001", "002", "003"}


def test_two_recordings_of_four_cpus_are_alike(forks: tuple[str, Path], tmp_path: Path) -> None:
    recordings = []
    for seed in ("1", "1", "2"):
        options = ("-q", "-s", "-e", "instructions", "-F", "997", "--cpus", "4", "--seed", seed)
        perfemu("record", *options, "-o", tmp_path / "data", forks[1])
        recordings.append((tmp_path / "data").read_bytes())
        (tmp_path / "data").unlink()
    assert recordings[0] == recordings[1] != recordings[2]


def test_perf_reads_counts_of_tasks(forks: tuple[str, Path], tmp_path: Path) -> None:
    isa, path = forks
    data = tmp_path / "data"
    perfemu("record", "-q", "-s", "-e", "instructions", "-c", "1000", "--cpus", "4", "-o", data, path)
    lines = (
        RealPerf(tmp_path).run("report", "--stdio", "--no-inline", "-T", "--sort", "pid,cpu", "-i", data).splitlines()
    )
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    assert [row for row in rows if len(row) == 3 and row[0] == row[1]] == [
        [str(tid), str(tid), str(CHILD[isa])] for tid in range(1001, 1005)
    ]


def test_python_counts_children_too(forks: tuple[str, Path], tmp_path: Path) -> None:
    isa, path = forks
    assert stat(Guest([path], core="ideal"), ["instructions"])["instructions"] == INSTRUCTIONS[isa]
    recording = record(Guest([path], core="ideal"), ["instructions"], period=1000, output=tmp_path / "data")
    assert len({sample.tid for _, sample in recording.samples()}) == 4


@pytest.mark.parametrize("cpus", ["1", "4"])
def test_what_tasks_do_is_counted_as_tracepoints(forks: tuple[str, Path], cpus: str) -> None:
    """System calls: the first task's four forks, four waits and its end, and each child's end."""
    events = ("sched:sched_process_fork", "sched:sched_process_exec", "sched:sched_process_exit")
    events += ("raw_syscalls:sys_enter", "sched:sched_switch", "context-switches", "sched:sched_switch:u")
    done = perfemu("stat", "-x,", "-e", ",".join(events), "--cpus", cpus, forks[1])
    rows = [line.split(",") for line in done.stderr.decode().splitlines()]
    counts = {row[2]: int(row[0]) for row in rows}
    assert [counts[event] for event in events[:4]] == [4, 1, 5, 13]
    assert counts["sched:sched_switch"] == counts["context-switches"] > 0
    assert counts["sched:sched_switch:u"] == 0  # the kernel does it


def test_a_migration_is_counted_for_who_comes_to_another_cpu(tmp_path: Path) -> None:
    """sched_setaffinity(0, 8, &mask) with CPU 1 alone, then with CPU 0 alone; exit(0)."""
    code = "6a02" + SET_AFFINITY + "6a01" + SET_AFFINITY + "31ffb83c0000000f05"  # push mask; ...; exit
    path = program(tmp_path / "moves", "x86_64", code)
    for cpus, expected in (("1", [0, 0]), ("2", [2, 2])):
        events = "cpu-migrations,sched:sched_migrate_task"
        done = perfemu("stat", "-x,", "-e", events, "--cpus", cpus, path)
        assert [int(line.split(",")[0]) for line in done.stderr.decode().splitlines()] == expected


@pytest.mark.parametrize("cpus", [1, 3])
def test_equal_contexts_that_change_places_come_to_the_same_sums(forks: tuple[str, Path], cpus: int) -> None:
    """perf stat's events, with contexts that are exchanged at a switch and (inherit_stat) with such as are not."""
    readings = []
    for inherit_stat in (0, 1):
        session = Session(Guest((str(forks[1]),), core="ideal", stdin=-1, stdout=-1, stderr=-1, cpus=cpus))
        session.machine.kernel.dispatcher.slice_cycles = 1234
        attrs = [
            PerfEventAttr(type=kind, config=config, inherit=1, inherit_stat=inherit_stat, disabled=1, enable_on_exec=1)
            for kind, config in ((PerfType.HARDWARE, 1), (PerfType.SOFTWARE, 1), (PerfType.SOFTWARE, 3))
        ]
        events = [session.open(attr) for attr in attrs]
        moved: list[object] = []
        tracepoints = session.machine.kernel.tracepoints
        tracepoints.sched_in.subscribe(partial(_note_owner, moved, events[0]))
        session.run()
        readings.append(
            [(values.value, values.enabled, values.running) for event in events for values in [event.read_values()]]
        )
        assert (len(set(moved)) > 1) == (not inherit_stat)
    assert readings[0] == readings[1]
    assert readings[0][0][0] == INSTRUCTIONS[forks[0]]


def _note_owner(owners: list[object], event: PerfEvent, *_: object) -> None:
    owners.append(event.context.task)
