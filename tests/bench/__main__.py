"""make bench: how much counting and sampling cost, as ratios within one run.

usage: python tests/bench [--repeats N] [--programs NAME,...]

For every program and ISA the same run, by turns:
  raw       Unicorn in its fastest configuration: virtual TLB, native fill hook, data without execute permission, no
            other hooks. The Linux around it is ours.
  count     perfemu stat -e instructions
  1/1M      perfemu record -g -e instructions -c 1000000
  1/100k    perfemu record -g -e instructions -c 100000
Times are CPU seconds of this process, medians of the repeats. Times of one row were measured within seconds of each
other; other rows, and other runs of this program, are comparable only by their ratios.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median

from emulator._native import Core
from emulator.linux.program import Program
from emulator.machine import Machine, MachineConfig
from perfemu.counting import count
from perfemu.events.attributes import Sampling
from perfemu.recording import record
from perfemu.session import GuestSettings

GUESTS = Path(__file__).resolve().parents[2] / "guest_programs"
ISAS = ("aarch64", "x86_64")
ARGUMENTS = {  # about a thousand million instructions each
    "integer_mix": "20000",
    "sort": "4000000",
    "compression": "4096",
    "interpreter": "300",
    "sha256": "12000",
}
GOALS = """\
goals: count/raw speed at least 0.75; 1/1M at most 1.05 and 1/100k at most 1.30 times count; start-up below 0.5 s"""


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    isa: str

    @property
    def argv(self) -> tuple[str, ...]:
        return str(GUESTS / self.name / f"{self.isa}.elf"), ARGUMENTS[self.name]


def raw(workload: Workload, directory: Path) -> None:
    machine = Machine(MachineConfig(workload.isa))
    machine.cpus[0].core = Core(workload.isa, machine.memory, counting=False)
    with open(os.devnull, "wb") as nowhere:
        machine.start(Program(workload.argv[0], workload.argv, stdout=nowhere.fileno()))
        status = machine.run()
    if status != 0:
        sys.exit(f"{workload.argv} ended with wait status {status:#x}")


def counting(workload: Workload, directory: Path) -> None:
    with open(os.devnull, "wb") as nowhere:
        count(GuestSettings(workload.argv, stdout=nowhere.fileno()), ["instructions"])


def sampling(period: int) -> Callable[[Workload, Path], None]:
    def run(workload: Workload, directory: Path) -> None:
        with open(os.devnull, "wb") as nowhere:
            settings = GuestSettings(workload.argv, stdout=nowhere.fileno())
            record(settings, ["instructions"], Sampling(None, period, True), str(directory / "perf.data"))

    return run


MODES: dict[str, Callable[[Workload, Path], None]] = {
    "raw": raw,
    "count": counting,
    "1/1M": sampling(1_000_000),
    "1/100k": sampling(100_000),
}


def cpu_seconds(run: Callable[[Workload, Path], None], workload: Workload, directory: Path) -> float:
    before = time.process_time()
    run(workload, directory)
    return time.process_time() - before


def measure(workload: Workload, repeats: int) -> dict[str, float]:
    """Median CPU seconds of each mode; the modes take turns, so that a slow minute hits all of them."""
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory(prefix="perfemu-bench-") as directory:
        for _ in range(repeats):
            for mode, run in MODES.items():
                times[mode].append(cpu_seconds(run, workload, Path(directory)))
    return {mode: median(each) for mode, each in times.items()}


def start_up(argv: list[str], repeats: int) -> float:
    """Median wall seconds of `perfemu stat` of a program that does next to nothing."""
    times = []
    for _ in range(repeats):
        before = time.perf_counter()
        subprocess.run([sys.executable, "-m", "perfemu", "stat", *argv], check=True, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - before)
    return median(times)


def main() -> int:
    parser = argparse.ArgumentParser(description="What counting and sampling cost, as ratios within one run.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--programs", default=",".join(ARGUMENTS))
    options = parser.parse_args()
    print(f"{'':23}{'CPU seconds':^32}  {'ratios':^34}")
    print(
        f"{'program':13}{'ISA':9}"
        + "".join(f"{mode:>8}" for mode in MODES)
        + "   raw/count  1/1M /count  1/100k /count"
    )
    ratios: list[tuple[float, float, float]] = []
    for name in options.programs.split(","):
        for isa in ISAS:
            seconds = measure(Workload(name, isa), options.repeats)
            counted = seconds["count"]
            ratios.append((seconds["raw"] / counted, seconds["1/1M"] / counted, seconds["1/100k"] / counted))
            row = "".join(f"{value:8.3f}" for value in seconds.values())
            print(f"{name:13}{isa:9}{row}" + "{:12.3f}{:13.3f}{:15.3f}".format(*ratios[-1]), flush=True)
    means = [geometric_mean(column) for column in zip(*ratios, strict=True)]
    print(f"{'geometric mean':54}" + "{:12.3f}{:13.3f}{:15.3f}".format(*means))
    for what in (["true"], *([str(GUESTS / "loop_1k" / f"{isa}.elf")] for isa in ISAS)):
        print(f"start-up: perfemu stat {what[0]}: {start_up(what, options.repeats):.3f} s")
    print(GOALS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
