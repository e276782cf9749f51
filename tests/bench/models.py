"""What the models cost: speeds as ratios to raw Unicorn, and to valgrind's cachegrind on x86-64.

For every program and ISA, by turns:
  raw       Unicorn in its fastest configuration
  count     --core ideal
  caches    L1I, L1D, L2, two-level TLBs, gshare, no pipeline (tests/bench/cores/caches.toml)
  in-order  the same and an in-order pipeline (tests/bench/cores/in_order.toml)
  default   the ISA's default core: out of order, in its full configuration
  stat      the same with all events that perfemu stat counts if none are named; the modes before count instructions
  record    perfemu record on it: cycles, 4000 times a second
  cachegrind  valgrind --tool=cachegrind --cache-sim=yes --branch-sim=yes, on the x86-64 programs
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import geometric_mean, median
from typing import BinaryIO

from workloads import ISAS, Workload, child_seconds, cpu_seconds, raw, real_programs

from perfemu.cores import DEFAULT_CORES
from perfemu.counting import ChooseEvents, count, default_events
from perfemu.events.attributes import Sampling
from perfemu.guest import Guest
from perfemu.recording import DEFAULT_EVENTS, record
from perfemu.session import Session

CORES = Path(__file__).resolve().parent / "cores"
CACHEGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes", "--cachegrind-out-file=/dev/null"]
GOALS = """\
goals, of raw, AArch64 and x86-64: count 0.80 and 0.75; caches 0.36 and 0.33 (and 0.75 of cachegrind); in-order 0.22 and
0.18; out of order 0.06, aiming at 0.12"""


def settings_for(workload: Workload, core: str, stdout: BinaryIO) -> Guest:
    return Guest(workload.argv, core=core, sysroot=workload.sysroot, stdout=stdout.fileno(), stdin=-1)


def modelled(core: str, events: Iterable[str] | ChooseEvents = ("instructions",)) -> Callable[[Workload], None]:
    def run(workload: Workload) -> None:
        with open(os.devnull, "wb") as nowhere:
            count(settings_for(workload, core, nowhere), events)

    return run


def recorded(core: str) -> Callable[[Workload], None]:
    def run(workload: Workload) -> None:
        with open(os.devnull, "wb") as nowhere, tempfile.TemporaryDirectory(prefix="perfemu-bench-") as directory:
            settings = settings_for(workload, core, nowhere)
            record(Session(settings), DEFAULT_EVENTS, Sampling(), str(Path(directory) / "perf.data"))

    return run


def modes(isa: str) -> dict[str, Callable[[Workload], None]]:
    return {
        "raw": raw,
        "count": modelled("ideal"),
        "caches": modelled(str(CORES / "caches.toml")),
        "in-order": modelled(str(CORES / "in_order.toml")),
        "default": modelled(DEFAULT_CORES[isa]),
        "stat": modelled(DEFAULT_CORES[isa], default_events),
        "record": recorded(DEFAULT_CORES[isa]),
    }


def cachegrind(workload: Workload, repeats: int) -> float | None:
    if workload.isa != "x86_64" or shutil.which("valgrind") is None:
        return None
    return median(child_seconds([*CACHEGRIND, *workload.argv]) for _ in range(repeats))


def run(repeats: int, only: set[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="perfemu-bench-") as directory:
        for isa in ISAS:
            rows: list[dict[str, float]] = []
            runs = modes(isa)
            print(f"{isa:14}{'raw s':>7}" + "".join(f"{mode:>10}" for mode in list(runs)[1:]) + "   caches/cachegrind")
            workloads = [each for each in real_programs(isa, Path(directory)) if not only or each.name in only]
            if workloads:
                raw(workloads[0])  # not timed: the first run brings in what the others find
            for workload in workloads:
                times: dict[str, list[float]] = {mode: [] for mode in runs}
                for _ in range(repeats):
                    for mode, each in runs.items():
                        times[mode].append(cpu_seconds(partial(each, workload)))
                seconds = {mode: median(values) for mode, values in times.items()}
                row = {mode: seconds["raw"] / seconds[mode] for mode in list(runs)[1:]}
                valgrind = cachegrind(workload, repeats)
                if valgrind is not None:
                    row["cachegrind"] = valgrind / seconds["caches"]
                rows.append(row)
                _print(workload.name, seconds["raw"], row)
            if rows:
                _print("geom. mean", None, {mode: geometric_mean(row[mode] for row in rows) for mode in rows[0]})
    print(GOALS)


def _print(name: str, raw_seconds: float | None, row: dict[str, float]) -> None:
    first = f"{raw_seconds:7.3f}" if raw_seconds is not None else " " * 7
    print(f"{name:14}{first}" + "".join(f"{value:10.3f}" for value in row.values()), flush=True)
