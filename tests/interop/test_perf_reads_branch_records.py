"""perf 6.1 and 6.12 print the branches that were recorded: of a loop each one, and callchains made of calls."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from c_programs import build
from guests import guest
from real_perf import RealPerf, trixies_perf

NESTED = """
#define FUNCTION __attribute__((noinline)) static int
FUNCTION leaf(int n) { volatile int sum = 0; for (int i = 0; i < n; ++i) sum += i; return sum; }
FUNCTION middle(int n) { return leaf(n) + 1; }
int main(void) { return middle(2000) == 0; }
"""
BRANCH = re.compile(r"(0x[0-9a-f]+)/(0x[0-9a-f]+)/[MP]/-/-/\d+/(\w*)")  # from, to, mispredicted or not, cycles, type
ENTRIES = {"skylake": 32, "redwood-cove": 32, "zen5": 16}


@pytest.fixture(params=["6.1", "6.12"])
def perf(request: pytest.FixtureRequest, tmp_path: Path) -> RealPerf:
    return RealPerf(tmp_path, trixies_perf("x86_64") if request.param == "6.12" else ())


def record(path: Path, core: str, *options: str, program: Path) -> Path:
    words = ["record", "-q", "--core", core, *options, "-o", path, "--", program]
    command = [sys.executable, "-m", "perfemu", *map(str, words)]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return path


@pytest.mark.parametrize("core", ENTRIES)
def test_each_branch_of_a_loop(core: str, perf: RealPerf, tmp_path: Path) -> None:
    """loop_1k: one conditional branch, 1,000 times, of which it is taken 999. A sample behind each second one has those
    before it, as many as there are entries; the last is not taken, and the system call behind is in the kernel."""
    program = guest("loop_1k", "x86_64").path
    path = record(tmp_path / "perf.data", core, "-j", "any,save_type", "-e", "branches:u", "-c", "2", program=program)
    samples = [BRANCH.findall(line) for line in perf.run("script", "-i", path, "-F", "ip,brstack").splitlines()]
    assert [len(found) for found in samples] == [min(number, ENTRIES[core]) for number in range(2, 1001, 2)]
    assert len({entry for found in samples for entry in found}) == 1
    ((source, target, kind),) = set(samples[-1])
    assert int(target, 16) < int(source, 16)
    assert kind == "COND"
    assert "COND: 100.0%" in perf.run("report", "--stdio", "-i", path, "-s", "dso_from,dso_to")


@pytest.mark.parametrize("core", ["skylake", "redwood-cove"])
def test_callchains_of_calls(core: str, perf: RealPerf, tmp_path: Path) -> None:
    source, program = tmp_path / "nested.c", tmp_path / "nested"
    source.write_text(NESTED, encoding="utf-8")
    build(source, "x86_64", program)
    options = ("--call-graph", "lbr", "-e", "instructions:u", "-c", "500")
    path = record(tmp_path / "perf.data", core, *options, program=program)
    text = perf.run("script", "-i", path, "-F", "ip,sym")
    chains = [[line.split()[1] for line in block.splitlines() if line.split()] for block in text.split("\n\n")]
    of_leaf = [chain for chain in chains if chain and chain[0] == "leaf"]
    assert len(of_leaf) > 10
    assert all(chain[:3] == ["leaf", "middle", "main"] for chain in of_leaf)
