"""With CYC packets, perf counts between branches the cycles that the core has counted between them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from guests import guest
from intel_pt_truth import Truth, perfs, traced
from real_perf import RealPerf

_CYC = re.compile(r" CYC (0x[0-9a-f]+)")
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
    for perf in perfs(tmp_path):
        assert cycles_told(perf, truth) > len(truth.branches) // 7


@pytest.mark.parametrize("threshold", [1, 2, 4, 7, 10])
@pytest.mark.parametrize("core", ["skylake", "redwood-cove"])
def test_cycles_between_some_branches(tmp_path: Path, core: str, threshold: int) -> None:
    """With `cyc_thresh` no CYC says less than 2**(n-1) cycles, so there are fewer; they add up to the same."""
    program = guest("branch_patterns", "x86_64").path
    plain = traced(program, tmp_path / "perf.data", "intel_pt/cyc,psb_period=0/u", core)
    expected = [cycles_told(perf, plain) for perf in perfs(tmp_path)]
    truth = traced(program, tmp_path / "thresh.data", f"intel_pt/cyc,psb_period=0,cyc_thresh={threshold}/u", core)
    for perf, most in zip(perfs(tmp_path), expected, strict=True):
        packets = [int(each, 16) for each in _CYC.findall(perf.run("script", "-D", "-i", truth.file))]
        assert min(packets) >= 1 << threshold - 1
        told = cycles_told(perf, truth)
        assert 4 < told <= most
        assert told < most or threshold == 1


@pytest.mark.parametrize(
    "event", ["intel_pt/cyc/u", "intel_pt/cyc,mtc=0,psb_period=0/u", "intel_pt/cyc,cyc_thresh=4/u"]
)
def test_times_are_those_of_cycles(tmp_path: Path, event: str) -> None:
    """Wherever perf tells cycles it knows the time to a nanosecond: 4 cycles, since the machine was at 100 s."""
    truth = traced(guest("branch_patterns", "x86_64").path, tmp_path / "perf.data", event)
    for perf in perfs(tmp_path):
        options = ("--ns", "--itrace=i1ie", "-F", "time,ip,ipc")
        lines = perf.run("script", "-i", truth.file, *options).splitlines()
        for line, (_, branch) in zip(lines, truth.steps(), strict=True):
            if branch and _IPC.search(line):
                seconds, nanoseconds = line.split(":")[0].split(".")
                assert abs((int(seconds) - 100) * 10**9 + int(nanoseconds) - branch.cycle // 4) <= 1


def cycles_told(perf: RealPerf, truth: Truth) -> int:
    """At how many branches perf tells them. Between any two they are the core's, and instructions are all there are."""
    steps = list(truth.steps())
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
    assert [after[0] - before[0] for before, after in pairwise(told)] == [
        after[1] - before[1] for before, after in pairwise(told)
    ]
    return len(told)


def test_samples_of_cycles(tmp_path: Path) -> None:
    """`--itrace=y` of perf 6.12: a sample wherever cycles are known, whose period they are."""
    truth = traced(guest("branch_patterns", "x86_64").path, tmp_path / "perf.data", "intel_pt/cyc/u")
    _, perf = perfs(tmp_path)
    lines = perf.run("script", "-i", truth.file, "--itrace=i1ie", "-F", "ip,ipc").splitlines()
    known = [(line.split()[0], found[2]) for line in lines if (found := _IPC.search(line)) and found[2] != "0"]
    samples = perf.run("script", "-i", truth.file, "--itrace=y0nse", "-F", "ip,period").splitlines()
    assert [tuple(line.split()[::-1]) for line in samples] == known
    assert len(known) > 1000
