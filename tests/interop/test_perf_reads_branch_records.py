"""perf 6.1 and 6.12 print the branches that were recorded: those before each sample and no others, and callchains made
of calls."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from branch_truth import branches, taken_branches
from c_programs import build
from guests import guest
from real_perf import RealPerf, trixies_perf

NESTED = """
#define FUNCTION __attribute__((noinline)) static int
FUNCTION leaf(int n) { volatile int sum = 0; for (int i = 0; i < n; ++i) sum += i; return sum; }
FUNCTION middle(int n) { return leaf(n) + 1; }
int main(void) { return middle(20000) == 0; }
"""
BRANCH = re.compile(r"0x([0-9a-f]+)/0x([0-9a-f]+)/([MP-])/-/-/\d+/(\w*)")  # from, to, mispredicted, cycles, type


@pytest.fixture
def newest_perf(tmp_path: Path) -> RealPerf:
    return RealPerf(tmp_path, trixies_perf("x86_64"))


@dataclass(frozen=True)
class Unit:
    """Who records branches, on which core."""

    core: str
    entries: int
    isa: str = "x86_64"
    lent: tuple[str, ...] = ()
    event: str = "br_inst_retired.all_branches"
    drops: bool = False  # what has been recorded, behind each interrupt: as its driver does

    @property
    def options(self) -> tuple[str, ...]:
        return ("--core", self.core, *(word for unit in self.lent for word in ("--unit", unit)))


UNITS = (
    Unit("skylake", 32),
    Unit("redwood-cove", 32),
    Unit("zen5", 16, event="ex_ret_brn"),
    Unit("neoverse-n1", 32, "aarch64", ("brbe",), "br_retired", drops=True),
    Unit("ideal", 32, "aarch64", ("brbe",), "br_retired", drops=True),
)
SAMPLER = Unit("zen4", 16, lent=("brs",), event="ex_ret_brn_tkn")  # which counts the branches that it records
LOOP_TO_10 = """
int main(void) {
    volatile int sum = 0;
    for (int i = 0; i < 10; i++) sum += i;
    return sum != 45;
}
"""


@pytest.fixture(params=["6.1", "6.12"])
def perf(request: pytest.FixtureRequest, tmp_path: Path) -> RealPerf:
    return RealPerf(tmp_path, trixies_perf("x86_64") if request.param == "6.12" else ())


def record(path: Path, unit: Unit, *options: str, program: Path, arguments: tuple[str, ...] = ()) -> Path:
    words = ["record", "-q", *unit.options, *options, "-o", path, "--", program, *arguments]
    command = [sys.executable, "-m", "perfemu", *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    assert done.stderr == b""
    return path


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.core}-{unit.isa}")
def test_each_branch_of_a_loop(unit: Unit, perf: RealPerf, tmp_path: Path) -> None:
    """loop_1k: one conditional branch, 1,000 times, of which it is taken 999. A sample behind each second one has those
    before it, as many as there are entries; the last is not taken, and the system call behind is in the kernel."""
    program = guest("loop_1k", unit.isa).path
    path = record(tmp_path / "perf.data", unit, "-j", "any,save_type", "-e", "branches:u", "-c", "2", program=program)
    samples = [BRANCH.findall(line) for line in perf.run("script", "-i", path, "-F", "ip,brstack").splitlines()]
    most = 2 if unit.drops else unit.entries
    expected = [min(number, most) for number in range(2, 1001, 2)]
    assert [len(found) for found in samples] == expected[:-1] + [1 if unit.drops else most]
    assert len({(source, target, kind) for found in samples for source, target, _, kind in found}) == 1
    source, target, _, kind = samples[-1][0]
    assert int(target, 16) < int(source, 16)
    assert kind == "COND"
    assert "COND: 100.0%" in perf.run("report", "--stdio", "-i", path, "-s", "dso_from,dso_to")


@pytest.mark.parametrize("unit", [*UNITS, SAMPLER], ids=lambda unit: f"{unit.core}-{unit.isa}")
def test_each_sample_has_the_branches_before_it(unit: Unit, perf: RealPerf, tmp_path: Path) -> None:
    """embedded_mix: behind each 97th branch, taken or not, the taken ones before it are as the core knows them. Branch
    sampling counts those that are taken, and does not know which were mispredicted."""
    period = 97
    samples = unit is SAMPLER
    program = guest("embedded_mix", unit.isa).path
    truth = branches(program, unit.core, ("1",))
    if samples:
        truth = [branch._replace(mispredicted=False) for branch in truth if branch.taken]
    options = ("-j", "any,u", "-e", f"{unit.event}:u" if samples else "branches:u", "-c", str(period))
    path = record(tmp_path / "perf.data", unit, *options, program=program, arguments=("1",))
    found = [
        [(int(source, 16), int(target, 16), missed == "M") for source, target, missed, _ in BRANCH.findall(line)]
        for line in perf.run("script", "-i", path, "-F", "brstack").splitlines()
    ]
    expected = []
    for end in range(period, len(truth) + 1, period):
        begin = end - period if unit.drops else 0
        before = [branch for branch in truth[max(begin, end - 20 * period) : end] if branch.taken]
        expected.append([(one.source, one.target, one.mispredicted) for one in before[: -unit.entries - 1 : -1]])
    assert found == expected
    assert len(found) > 50


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.core}-{unit.isa}")
def test_a_loop_to_10(unit: Unit, newest_perf: RealPerf, tmp_path: Path) -> None:
    """A sample behind each branch has it first, if it was taken: it leads to where the sample is. Those within main are
    one to the loop's condition, which stands behind its body, and ten to the body.

    perf takes branches with a period of 1 for BTS, by whichever PMU: so this has the PMU's own event."""
    source = tmp_path / "loop.c"
    source.write_text(LOOP_TO_10, encoding="utf-8")
    program = build(source, unit.isa, tmp_path / "loop", "-O0")
    path = record(tmp_path / "perf.data", unit, "-j", "any,u", "-e", f"{unit.event}:u", "-c", "1", program=program)
    lines = newest_perf.run("script", "-i", path, "-F", "ip,brstack").splitlines()
    named = newest_perf.run("script", "-i", path, "-F", "ip,brstacksym").splitlines()
    taken, within = [], 0
    for line, names in zip(lines, named, strict=True):
        newest = BRANCH.search(line)
        if newest is not None and newest[2] == line.split()[0]:
            taken.append((int(newest[1], 16), int(newest[2], 16)))
            within += re.match(r" *[0-9a-f]+ *main\+0x\w+/main\+0x", names) is not None
    assert taken == taken_branches(program, unit.core)
    assert within == 11


@pytest.mark.parametrize("core", ["skylake", "redwood-cove"])
def test_callchains_of_calls(core: str, perf: RealPerf, tmp_path: Path) -> None:
    source, program = tmp_path / "nested.c", tmp_path / "nested"
    source.write_text(NESTED, encoding="utf-8")
    build(source, "x86_64", program)
    options = ("--call-graph", "lbr", "-e", "instructions:u", "-c", "500")
    path = record(tmp_path / "perf.data", Unit(core, 32), *options, program=program)
    text = perf.run("script", "-i", path, "-F", "ip,sym")
    chains = [[line.split()[1] for line in block.splitlines() if line.split()] for block in text.split("\n\n")]
    of_leaf = [chain for chain in chains if chain and chain[0] == "leaf"]
    assert len(of_leaf) > 10
    assert all(chain[:3] == ["leaf", "middle", "main"] for chain in of_leaf)


@pytest.mark.parametrize("unit", [UNITS[0], UNITS[3]], ids=lambda unit: unit.core)
def test_readers_of_blocks(unit: Unit, tmp_path: Path) -> None:
    """perf 6.12, built for the program's own ISA, makes blocks, histories and IPC of the stacks, and complains of
    nothing."""
    source, program = tmp_path / "nested.c", tmp_path / "nested"
    source.write_text(NESTED, encoding="utf-8")
    build(source, unit.isa, program, "-g")
    path = record(tmp_path / "perf.data", unit, "-b", "-e", "cycles:u", "-c", "1009", program=program)
    perf = RealPerf(tmp_path, trixies_perf(unit.isa))
    history = perf.run("report", "--stdio", "--branch-history", "-i", path)
    assert re.search(r"\bleaf .*cycles:\d+", history)
    blocks = perf.run("report", "--stdio", "--total-cycles", "-i", path)
    assert re.search(r"\[nested\.c:\d+ -> nested\.c:\d+\]", blocks)
    listing = perf.run("script", "-F", "+brstackinsn", "-i", path)
    assert re.search(r"insn: [0-9a-f ]+\s+# PRED \d+ cycles \[\d+\] \d+\.\d+ IPC", listing)
    objdump = {"aarch64": "aarch64-linux-gnu-objdump", "x86_64": "objdump"}[unit.isa]
    annotated = perf.run("annotate", "--stdio", "--objdump", objdump, "-s", "leaf", "-i", path)
    assert re.search(r"# [+-]\d+\.\d+%.*\(p:\d+\.\d+%\)", annotated)
