"""make bench: how much counting, sampling and modelling cost, as ratios within one run; what system calls cost.

usage: python tests/bench [--repeats N] [--programs NAME,...] [PART...]

Times are CPU seconds of this process, medians of the repeats. Times of one row were measured within seconds of each
other; other rows, and other runs of this program, are comparable only by their ratios.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import boards
import listeners
import models
import pages
import programs
import reading
import sampling
import system
from workloads import GUESTS, ISAS


def start_up(repeats: int, only: set[str]) -> None:
    """Median wall seconds of `perfemu stat` of programs that do next to nothing."""
    for argv in (["true"], *([str(GUESTS / "loop_1k" / f"{isa}.elf")] for isa in ISAS)):
        times = []
        for _ in range(repeats):
            before = time.perf_counter()
            subprocess.run([sys.executable, "-m", "perfemu", "stat", *argv], check=True, stderr=subprocess.DEVNULL)
            times.append(time.perf_counter() - before)
        print(f"start-up: perfemu stat {argv[0]}: {median(times):.3f} s (goal: below 0.5)")


PARTS = {
    "sampling": sampling.run,
    "models": models.run,
    "programs": programs.run,
    "listeners": listeners.run,
    "system": system.run,
    "boards": boards.run,
    "html": pages.run,
    "reading": reading.run,
    "start-up": start_up,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="What counting, sampling and modelling cost, as ratios.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--programs", default="", help="only these, separated by commas")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there is {', '.join(PARTS)}")
    only = {name for name in options.programs.split(",") if name}
    for part in options.parts or PARTS:
        PARTS[part](options.repeats, only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
