"""perf's own decoder finds in our recordings of intel_pt exactly what has retired, on every CPU, in that order."""

from __future__ import annotations

from pathlib import Path

import pytest

import require
from guests import guest
from intel_pt_truth import built, instructions, perfs, recorded, without_repeats
from perfemu.guest import Guest
from perfemu.session import Session
from real_perf import RealPerf


@pytest.fixture(scope="module")
def many_ways(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("many_ways", tmp_path_factory.mktemp("intel_pt"))


def test_a_known_loop(tmp_path: Path) -> None:
    """loop_1k: a jump that is taken 999 times. perf adds lines where the path enters and leaves user mode,
    for whose other side it says 0."""
    file = tmp_path / "perf.data"
    recorded([guest("loop_1k", "x86_64").path], file, "intel_pt//u", "skylake")
    for perf in perfs(tmp_path):
        lines = perf.run("script", "-i", file, "--itrace=b", "-F", "ip,addr").splitlines()
        jumps = [[int(word, 16) for word in line.split() if word != "=>"] for line in lines]
        within = [jump for jump in jumps if all(jump)]
        assert len(within) == 999
        assert len({tuple(jump) for jump in within}) == 1


@pytest.mark.parametrize(
    ("core", "cpus", "event"),
    [
        ("skylake", 1, "intel_pt//u"),
        ("skylake", 4, "intel_pt//u"),
        ("ideal", 1, "intel_pt/cyc,noretcomp,psb_period=0/u"),
    ],
)
def test_perf_finds_what_has_retired(tmp_path: Path, many_ways: Path, core: str, cpus: int, event: str) -> None:
    file = tmp_path / "perf.data"
    retired = recorded([many_ways], file, event, core, cpus)
    for perf in perfs(tmp_path):
        for found, truth in zip(instructions(perf, file, cpus), retired, strict=True):
            assert without_repeats(found) == without_repeats(truth)


def test_perf_as_a_guest_records_the_same(tmp_path: Path) -> None:
    """It finds the PMU in sysfs and maps an AUX area; in its file are the 2,004 instructions of loop_1k."""
    perf = require.command("perf", package="linux-perf")
    file, program = tmp_path / "perf.data", guest("loop_1k", "x86_64").path
    arguments = [perf, "record", "-e", "intel_pt//u", "-o", str(file), str(program)]
    session = Session(Guest(arguments, core="skylake", binds=[f"{tmp_path}:{tmp_path}:rw"], stdout=-1, stderr=-1))
    session.run()
    [found] = instructions(RealPerf(tmp_path / "home"), file, cpus=1)
    assert len(found) == 2004
