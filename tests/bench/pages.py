"""What `perfemu html` costs: a million samples of random call paths, in seconds of CPU and bytes of the page."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from perfcore.abi.constants import SampleType
from perfcore.perfdata.features import EventDescription
from perfcore.perfdata.records import FINISHED_ROUND
from synthetic_elf import ADDRESS, TEXT_OFFSET, TEXT_SIZE, ElfSymbol, synthetic_elf
from synthetic_perf_data import SAMPLE_TYPE, Recording, event

SAMPLES = 1_000_000
FUNCTIONS = 256
SIZE = TEXT_SIZE // FUNCTIONS  # bytes of code of each
PATHS = 20_000  # different ones; 20 frames of each on average
ROUND = 4000  # samples that are copied from a ring buffer at once
TEXT = ADDRESS + TEXT_OFFSET
GOAL = "goals: below 5 s and 15 MB"


def _paths(chosen: random.Random) -> Iterator[list[int]]:
    """Addresses, innermost first. Like calls: each path shares its outer part with one before."""
    made: list[list[int]] = [[TEXT]]
    for _ in range(PATHS):
        path = chosen.choice(made[-500:])
        path = path[-chosen.randrange(1, len(path) + 1) :] if len(path) > 35 else path
        path = [TEXT + SIZE * chosen.randrange(FUNCTIONS) + chosen.randrange(SIZE), *path]
        made.append(path)
        yield path


def program(directory: Path, described: EventDescription) -> Recording:
    """Started, but without samples."""
    symbols = [ElfSymbol(f"function_{number}", SIZE * number, SIZE) for number in range(FUNCTIONS)]
    made = Recording([described])
    made.start(synthetic_elf(directory / "prog", symbols), TEXT_SIZE, address=TEXT, pgoff=TEXT_OFFSET)
    return made


def recording(directory: Path) -> Path:
    made = program(directory, event(sample_type=SAMPLE_TYPE | SampleType.CALLCHAIN))
    chosen = random.Random(1)
    paths = list(_paths(chosen))
    for number in range(SAMPLES):
        if number % ROUND == 0:
            made.records.append(FINISHED_ROUND)
        path = paths[int(PATHS * chosen.random() ** 2)]
        made.sample(path[0], path[1:], period=chosen.randrange(1000, 2000))
    return made.write(directory / "perf.data")


def run(repeats: int, only: set[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="perfemu-bench-") as name:
        directory = Path(name)
        data, page = recording(directory), directory / "page.html"
        command = [sys.executable, "-m", "perfemu", "html", str(data), "-o", str(page)]
        times = []
        for _ in range(repeats):
            before = _children_seconds()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times.append(_children_seconds() - before)
        megabytes = data.stat().st_size / 1e6, page.stat().st_size / 1e6
        read = f"html: {SAMPLES:,} samples, {megabytes[0]:.0f} MB"
        print(f"{read}: {median(times):.2f} s, page of {megabytes[1]:.2f} MB ({GOAL})")


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
