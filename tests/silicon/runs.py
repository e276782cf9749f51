"""CPU time of programs on the host, in cycles, without a PMU: what their longer runs take more than their short ones.

Other threads of a core, and other guests of the host, make a program slower for milliseconds, by half and more, but
leave pauses. So runs are short and many, and the fastest counts, of the program as of the dependent additions between
them, of which each takes one cycle. What all runs of a program have in common, its start above all, is in both of two
runs that are compared.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

ROUNDS = 300
# glibc chooses no code that the emulated CPUs do not have, and asks for its memory at once, at the start.
TUNABLES = (
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-FMA,-F16C,-ERMS,-FSRM,-XSAVE,-XSAVEC,-RTM:"
    "glibc.malloc.top_pad=1048576:glibc.malloc.mmap_threshold=33554432"
)
ENVIRONMENT = {"GLIBC_TUNABLES": TUNABLES, "LC_ALL": "C"}


@dataclass(frozen=True, slots=True)
class Workload:
    """A program with much and with little to do."""

    name: str
    much: tuple[str, ...]
    little: tuple[str, ...]


def build(folder: Path) -> Path:
    """The program that times programs, runs.c."""
    program = folder / "runs"
    subprocess.run(["gcc", "-O2", "-o", program, Path(__file__).with_name("runs.c")], check=True)
    return program


def host_cycles(program: Path, workload: Workload, rounds: int = ROUNDS) -> float:
    """Of what `much` does more than `little`."""
    done = subprocess.run(
        [program, str(rounds), *workload.much, "--", *workload.little],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{workload.name}: {done.stderr.strip()}")
    rows = [line.split() for line in done.stdout.splitlines()]
    much, little = (min(float(time) for number, time, _ in rows if number == which) for which in "01")
    nanoseconds_per_cycle = min(float(addition) for *_, addition in rows)
    return (much - little) / nanoseconds_per_cycle
