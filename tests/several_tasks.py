"""A recording by hand of several commands, threads, files and CPUs, with no two rows of equal weight."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from perfcore.abi.constants import SampleType
from perfcore.abi.records import Comm, Fork
from perfcore.perfdata.features import CpuCount
from perfcore.perfdata.writer import PerfDataWriter
from synthetic_elf import ADDRESS, TEXT_OFFSET, ElfSymbol, synthetic_elf
from synthetic_perf_data import PID, SAMPLE_TYPE, START_NS, Recording, event, features

TEXT = ADDRESS + TEXT_OFFSET
LIBRARY = 0x7F0000000000
CHILD, THREAD = PID + 1, PID + 2
TASKS = ((PID, PID), (CHILD, CHILD), (PID, THREAD))
SAMPLES = 300
SAMPLE_TYPE_HERE = SAMPLE_TYPE | SampleType.CALLCHAIN | SampleType.CPU


def _files(directory: Path) -> tuple[Path, Path]:
    names = ("main", "middle", "leaf")
    program = synthetic_elf(
        directory / "prog", [ElfSymbol(name, 0x100 * number, 0x100) for number, name in enumerate(names)]
    )
    library = synthetic_elf(directory / "libx.so", [ElfSymbol("copy", 0, 0x100), ElfSymbol("search", 0x100, 0x100)])
    return program, library


def recording(directory: Path, events: int = 1) -> Path:
    """Of commands prog (with a thread named worker) and child, on two CPUs; some samples have no symbol."""
    names = ("instructions:u", "cycles:u")[:events]
    made = Recording([event(name, number + 1, sample_type=SAMPLE_TYPE_HERE) for number, name in enumerate(names)])
    program, library = _files(directory)
    made.start(program, 0x1000, address=TEXT, pgoff=TEXT_OFFSET)
    made.map(library, 0x1000, LIBRARY, TEXT_OFFSET)
    made.fork(CHILD)
    made.add(Comm(CHILD, CHILD, "child"))
    made.add(Fork(PID, PID, THREAD, PID, made.time_ns))
    made.add(Comm(PID, THREAD, "worker"))
    first = made.time_ns + 1000
    chance = random.Random(5)
    for number, weight in enumerate(_weights()):
        pid, tid = TASKS[min(chance.randrange(6), 2) if number % 5 else 0]
        leaf = chance.choice((TEXT + 0x100, TEXT + 0x200, TEXT + 0x200, LIBRARY, LIBRARY + 0x100, TEXT + 0x800))
        callers = [TEXT + 0x104] * chance.randrange(2) + [TEXT + 0x10]
        made.sample(
            leaf + 4 * chance.randrange(3),
            callers,
            period=weight,
            pid=pid,
            tid=tid,
            cpu=chance.randrange(2),
            number=number % events,
        )
    told = features()
    told.cpus = CpuCount(2, 2)
    told.sample_time_ns = (first, made.time_ns)
    assert first > START_NS
    path = directory / "perf.data"
    with PerfDataWriter(path, made.events, told) as writer:
        writer.write(b"".join(made.records))
    return path


def _weights() -> Iterator[int]:
    """Of which no two sums that matter here are equal."""
    chance = random.Random(11)
    return (chance.randrange(1000, 100_000) for _ in range(SAMPLES))
