"""[pmu_interrupt] latency_cycles: samples are so much later than the instruction whose event ended the period."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from c_programs import build
from end_to_end.command import perfemu
from guests import guest
from perfcore.abi.constants import RecordType
from perfcore.abi.sample import Sample
from perfcore.perfdata.reader import open_perf_data

TASKS = Path(__file__).parent.parent / "end_to_end" / "tasks.c"
CORES = {"aarch64": "neoverse-n1", "x86_64": "zen5"}
LATENCY = 150
TASKS_CPUS = "2"


def samples(folder: Path, latency: int, *arguments: str | Path) -> list[Sample]:
    late = ("--set", f"pmu_interrupt.latency_cycles={latency}")
    result = perfemu("record", "-q", *late, "-o", folder / "perf.data", *arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    with open_perf_data(str(folder / "perf.data")) as file:
        taken = [record for record in file.records() if record.type == RecordType.SAMPLE]
        return [file.decode_sample(record, file.event_number(record)) for record in taken]


@pytest.mark.parametrize("isa", CORES)
def test_samples_are_late_by_the_latency(isa: str, tmp_path: Path) -> None:
    """On `ideal` a cycle is an instruction and a nanosecond: where each instruction is known, so is the sample's.

    With a period of 1000 the sample of instruction 1000 n is where one with a period of 1000 is 150 instructions on: it
    is the sample of instruction 1000 n + 150. What is late at the program's end comes then.
    """
    program = (guest("integer_mix", isa).path,)
    every = ("--core", "ideal", "-e", "instructions", "-c", "10", *program)
    ten = [sample.ip for sample in samples(tmp_path, 0, *every)]
    late = [sample.ip for sample in samples(tmp_path, LATENCY, *every[:4], "-c", "1000", *program)]
    assert len(late) == len(ten) // 100
    assert late[:-1] == [ten[100 * (number + 1) + LATENCY // 10 - 1] for number in range(len(late) - 1)]


@pytest.mark.parametrize("isa", CORES)
def test_precise_samples_are_not_late_and_nothing_else_changes(isa: str, tmp_path: Path) -> None:
    program = (guest("sort", isa).path, "2000")
    arguments = ("--core", CORES[isa], "-c", "1009", *program)
    precise = [samples(tmp_path, latency, "-e", "cycles:pp", *arguments) for latency in (LATENCY, 0)]
    assert precise[0] == precise[1]
    late, prompt = (samples(tmp_path, latency, "-e", "cycles", *arguments) for latency in (LATENCY, 0))
    assert len(late) == len(prompt) > 100
    assert [sample.ip for sample in late] != [sample.ip for sample in prompt]
    counts = []
    for latency in (0, LATENCY):
        late_ones = ("--core", CORES[isa], "--set", f"pmu_interrupt.latency_cycles={latency}")
        counts.append(perfemu("stat", "-x,", *late_ones, "-e", "cycles:u,instructions:u", *program).stderr)
    assert counts[0] == counts[1]


@pytest.mark.parametrize("isa", CORES)
def test_no_sample_comes_to_another_task(isa: str, tmp_path: Path) -> None:
    """Threads, children and signals on two CPUs: each task has as many samples as where interrupts are prompt."""
    program = build(TASKS, isa, tmp_path / "tasks")
    arguments = ("--core", CORES[isa], "--cpus", TASKS_CPUS, "-e", "instructions", "-c", "997", program)
    late, prompt = (Counter(each.tid for each in samples(tmp_path, latency, *arguments)) for latency in (5000, 0))
    assert late == prompt
    assert len(late) > 3
