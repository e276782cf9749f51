"""runs: benchmarks measured, several at once if wanted; each in a process of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import BinaryIO

from perfemu.checking.benchmarks import Benchmark
from perfemu.comparing.measured import Measured
from perfemu.comparing.measuring import measured_run
from perfemu.errors import PerfemuError

_LAST_BYTES = 400  # of what a program wrote, that are shown if it failed


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a benchmark: its counts, or why there are none."""

    benchmark: Benchmark
    measured: Measured | None
    problem: str = ""


def measure(benchmark: Benchmark) -> Outcome:
    """Run it. What it writes is shown to nobody, unless it fails."""
    complaints: list[str] = []
    try:
        with ExitStack() as files:
            stdin = files.enter_context(_input(benchmark))
            output = files.enter_context(tempfile.TemporaryFile())
            guest = replace(benchmark.guest, stdin=stdin.fileno(), stdout=output.fileno(), stderr=output.fileno())
            done = measured_run(guest, benchmark.events, complaints.append, scope=benchmark.scope())
            if done.ending.exit_status == benchmark.exit_status:
                for event in done.measured.events.values():
                    event.places.clear()  # the other process has no use for them
                return Outcome(benchmark, done.measured)
            return Outcome(benchmark, None, _failure(done.ending.exit_status, benchmark.exit_status, output))
    except OSError as error:
        return Outcome(benchmark, None, f"{error.filename}: {error.strerror}")
    except PerfemuError as problem:
        return Outcome(benchmark, None, str(problem))


def measure_all(benchmarks: Sequence[Benchmark], jobs: int) -> Iterator[Outcome]:
    """In their order, `jobs` at once."""
    if jobs == 1 or len(benchmarks) == 1:
        yield from map(measure, benchmarks)
        return
    with ProcessPoolExecutor(min(jobs, len(benchmarks)), get_context("spawn")) as pool:
        yield from pool.map(measure, benchmarks)


def _input(benchmark: Benchmark) -> BinaryIO:
    return open(os.devnull if benchmark.input is None else benchmark.input, "rb")


def _failure(status: int, wanted: int, output: BinaryIO) -> str:
    size = os.fstat(output.fileno()).st_size
    written = os.pread(output.fileno(), _LAST_BYTES, max(size - _LAST_BYTES, 0)).decode("utf-8", "replace").split("\n")
    last = next((line for line in reversed(written) if line.strip()), "")
    return f"exit status {status} instead of {wanted}" + (f"; the last that it wrote: {last}" if last else "")
