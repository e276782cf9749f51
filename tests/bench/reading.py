"""What reading a large perf.data costs beside perf: seconds of CPU of both reports, of the same file."""

from __future__ import annotations

import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pages

from perfcore.perfdata.records import FINISHED_ROUND
from synthetic_elf import TEXT_SIZE
from synthetic_perf_data import event

SAMPLES = 4_000_000  # 48 bytes each
GOAL = "goal: at most 3 times perf's"


def _without_callchains(directory: Path) -> Path:
    """Addresses all over a program's functions, the first ones most."""
    made = pages.program(directory, event())
    chosen = random.Random(1)
    for number in range(SAMPLES):
        if number % pages.ROUND == 0:
            made.records.append(FINISHED_ROUND)
        address = pages.TEXT + int(TEXT_SIZE * chosen.random() ** 2)
        made.sample(address, period=chosen.randrange(1000, 2000))
    return made.write(directory / "perf.data")


RECORDINGS: dict[str, Callable[[Path], Path]] = {
    "callchains of 20": pages.recording,
    "no callchains": _without_callchains,
}


def run(repeats: int, only: set[str]) -> None:
    perf = shutil.which("perf")
    for what, recording in RECORDINGS.items():
        with tempfile.TemporaryDirectory(prefix="perfemu-bench-") as name:
            data = recording(Path(name))
            report = ["report", "--stdio", "-g", "none", "-i", str(data)]
            ours, theirs = [sys.executable, "-m", "perfemu", *report], [perf or "", *report]
            # minima of runs that take turns: neighbours make both slower, and nothing makes them faster
            times = [(_seconds(ours), _seconds(theirs) if perf else 0.0) for _ in range(repeats)]
            best = [min(column) for column in zip(*times, strict=True)]
            told = f"perf's {best[1]:.2f} s, {best[0] / best[1]:.2f} times ({GOAL})" if perf else "no perf here"
            print(f"reading {data.stat().st_size / 1e6:.0f} MB, {what}: report {best[0]:.2f} s, {told}")


def _seconds(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command, check=True, **quiet)  # type: ignore[call-overload]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
