"""What counting and sampling on the ideal core cost.

For every program and ISA the same run, by turns:
  raw       Unicorn in its fastest configuration
  count     perfemu stat -e instructions --core ideal
  calls     the same as count, and the call stack is kept
  1/1M      perfemu record -g -e instructions -c 1000000 --core ideal
  1/100k    perfemu record -g -e instructions -c 100000 --core ideal
  exact     perfemu record --exact -e instructions,branches --core ideal
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import geometric_mean, median

from workloads import ISAS, Workload, cpu_seconds, guest_program, raw

from perfemu.attributing import ExactSamples
from perfemu.counting import count
from perfemu.events.attributes import Sampling, stat_attr
from perfemu.guest import Guest
from perfemu.recording import record
from perfemu.session import Session

_RATIOS = "{:12.3f}{:14.3f}{:13.3f}{:15.3f}{:14.3f}"
ARGUMENTS = {  # about a thousand million instructions each
    "integer_mix": "20000",
    "sort": "4000000",
    "compression": "4096",
    "interpreter": "300",
    "sha256": "12000",
}
GOALS = "goals: count/raw speed at least 0.75; calls, 1/1M, exact at most 1.05, 1/100k at most 1.30 times count"


def counting(workload: Workload, directory: Path) -> None:
    with open(os.devnull, "wb") as nowhere:
        count(Guest(workload.argv, core="ideal", stdout=nowhere.fileno()), ["instructions"])


def keeping_calls(workload: Workload, directory: Path) -> None:
    with open(os.devnull, "wb") as nowhere:
        session = Session(Guest(workload.argv, core="ideal", stdout=nowhere.fileno()))
        session.keep_calls()
        for spec in session.parse(["instructions"]):
            session.open(stat_attr(spec))
        session.run()


def sampling(period: int) -> Callable[[Workload, Path], None]:
    def run(workload: Workload, directory: Path) -> None:
        with open(os.devnull, "wb") as nowhere:
            settings = Guest(workload.argv, core="ideal", stdout=nowhere.fileno())
            record(
                Session(settings),
                ["instructions"],
                Sampling(None, period, callchains=True, exact_callchains=True),
                str(directory / "perf.data"),
            )

    return run


def exact(workload: Workload, directory: Path) -> None:
    with open(os.devnull, "wb") as nowhere:
        settings = Guest(workload.argv, core="ideal", stdout=nowhere.fileno())
        events = ["instructions", "branches"]
        record(Session(settings), events, Sampling(), str(directory / "perf.data"), make_exact=ExactSamples)


MODES: dict[str, Callable[[Workload, Path], None]] = {
    "raw": lambda workload, directory: raw(workload),
    "count": counting,
    "calls": keeping_calls,
    "1/1M": sampling(1_000_000),
    "1/100k": sampling(100_000),
    "exact": exact,
}


def measure(workload: Workload, repeats: int) -> dict[str, float]:
    """Median CPU seconds of each mode; the modes take turns, so that a slow minute hits all of them."""
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory(prefix="perfemu-bench-") as directory:
        for _ in range(repeats):
            for mode, run in MODES.items():
                times[mode].append(cpu_seconds(partial(run, workload, Path(directory))))
    return {mode: median(each) for mode, each in times.items()}


def run(repeats: int, only: set[str]) -> None:
    print(f"{'':23}{'CPU seconds':^40}  {'ratios':^34}")
    print(
        f"{'program':13}{'ISA':9}"
        + "".join(f"{mode:>8}" for mode in MODES)
        + "   raw/count  calls /count  1/1M /count  1/100k /count  exact /count"
    )
    ratios: list[tuple[float, ...]] = []
    for name, argument in ARGUMENTS.items():
        if only and name not in only:
            continue
        for isa in ISAS:
            seconds = measure(guest_program(name, isa, argument), repeats)
            counted = seconds["count"]
            against = (seconds[mode] / counted for mode in ("calls", "1/1M", "1/100k", "exact"))
            ratios.append((seconds["raw"] / counted, *against))
            row = "".join(f"{value:8.3f}" for value in seconds.values())
            print(f"{name:13}{isa:9}{row}" + _RATIOS.format(*ratios[-1]), flush=True)
    if ratios:
        means = [geometric_mean(column) for column in zip(*ratios, strict=True)]
        print(f"{'geometric mean':70}" + _RATIOS.format(*means))
    print(GOALS)
