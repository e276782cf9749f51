"""With CYC packets, perf counts between branches the cycles that the core has counted between them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from guests import guest
from intel_pt_truth import perfs, traced

_IPC = re.compile(r"\((\d+)/(\d+)\)")  # instructions and cycles since the last time


@pytest.mark.parametrize(
    ("core", "event"),
    [
        ("skylake", "intel_pt/cyc/u"),
        ("skylake", "intel_pt/cyc,mtc_period=0,psb_period=0/u"),
        ("skylake", "intel_pt/cyc,mtc=0,tsc=0,noretcomp/u"),
        ("redwood-cove", "intel_pt/cyc/u"),
        ("ideal", "intel_pt/cyc/u"),
    ],
)
@pytest.mark.parametrize("program", ["recursion", "branch_patterns"])
def test_cycles_between_branches(tmp_path: Path, program: str, core: str, event: str) -> None:
    """Where several branches share a packet, its time is the first one's: there perf says what has passed since the
    last packet. The first time of all is from where the trace began."""
    truth = traced(guest(program, "x86_64").path, tmp_path / "perf.data", event, core)
    steps = list(truth.steps())
    for perf in perfs(tmp_path):
        lines = perf.run("script", "-i", truth.file, "--itrace=i1ie", "-F", "ip,ipc").splitlines()
        assert len(lines) == len(steps)
        told, instructions, cycles = [], 0, 0
        for number, (line, (_, branch)) in enumerate(zip(lines, steps, strict=True), 1):
            if not (found := _IPC.search(line)):
                continue
            instructions += int(found[1])
            cycles += int(found[2])
            assert instructions == number
            if branch:  # or the end, which is no branch
                told.append((cycles, branch.cycle))
        assert len(told) > len(truth.branches) // 7
        assert [after[0] - before[0] for before, after in pairwise(told)] == [
            after[1] - before[1] for before, after in pairwise(told)
        ]


def test_samples_of_cycles(tmp_path: Path) -> None:
    """`--itrace=y` of perf 6.12: a sample wherever cycles are known, whose period they are."""
    truth = traced(guest("branch_patterns", "x86_64").path, tmp_path / "perf.data", "intel_pt/cyc/u")
    _, perf = perfs(tmp_path)
    lines = perf.run("script", "-i", truth.file, "--itrace=i1ie", "-F", "ip,ipc").splitlines()
    known = [(line.split()[0], found[2]) for line in lines if (found := _IPC.search(line)) and found[2] != "0"]
    samples = perf.run("script", "-i", truth.file, "--itrace=y0nse", "-F", "ip,period").splitlines()
    assert [tuple(line.split()[::-1]) for line in samples] == known
    assert len(known) > 1000
