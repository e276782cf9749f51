"""No sample has another task's branches, whatever comes between: threads, children, signals, switches, other CPUs; nor
any of the kernel's."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from c_programs import build
from perfcore.abi.constants import RecordType
from perfcore.abi.sample import Sample
from perfcore.perfdata.reader import open_perf_data
from perfemu.symbols.elf import ElfFile

WORKERS = ("work_of_main", "work_of_thread", "work_of_child")
UNITS = {  # core, and what it is lent -> ISA, event of branches, whether call stacks are kept
    ("skylake",): ("x86_64", "branches:u", True),
    ("redwood-cove",): ("x86_64", "branches:u", True),
    ("zen5",): ("x86_64", "branches:u", False),
    ("zen4", "--unit", "brs"): ("x86_64", "ex_ret_brn_tkn:u", False),
    ("neoverse-n1", "--unit", "brbe"): ("aarch64", "branches:u", False),
    ("ideal", "--unit", "brbe", "--set", "brbe.records=64"): ("aarch64", "branches:u", False),
}
PERIOD = 37


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    source, directory = Path(__file__).with_name("branch_stacks.c"), tmp_path_factory.mktemp("programs")
    return {isa: build(source, isa, directory / isa) for isa in ("x86_64", "aarch64")}


def record(path: Path, program: Path, *options: str) -> list[Sample]:
    words = ["record", "-q", "-o", str(path), *options, "--", str(program)]
    subprocess.run([sys.executable, "-m", "perfemu", *words], check=True, stdin=subprocess.DEVNULL)
    with open_perf_data(str(path)) as file:
        return [file.decode_sample(each, 0) for each in file.records() if each.type == RecordType.SAMPLE]


def addresses(sample: Sample) -> set[int]:
    return {address for entry in sample.branches for address in (entry.from_ip, entry.to_ip)}


def check_each_has_its_own(samples: list[Sample], program: Path) -> dict[str, int]:
    """How many samples have branches of each worker."""
    with ElfFile(str(program)) as file:
        known = {symbol.name: symbol for symbol in file.functions()}
        starts = {name: file.address_of(known[name].start) or 0 for name in WORKERS}
    workers = {name: range(starts[name], starts[name] + known[name].end - known[name].start) for name in WORKERS}
    found: dict[str, int] = defaultdict(int)
    owners: dict[str, set[int]] = defaultdict(set)
    for sample in samples:
        assert not any(address >> 63 for address in addresses(sample))
        inside = {name for name, code in workers.items() if any(address in code for address in addresses(sample))}
        for name in inside:
            found[name] += 1
            owners[name].add(sample.tid)
    assert {name: len(tasks) for name, tasks in owners.items()} == dict.fromkeys(WORKERS, 1)
    assert len(set.union(*owners.values())) == len(WORKERS)  # each is another task's
    return found


@pytest.mark.parametrize(("of", "cpus"), [("tasks", "3"), ("cpus", "1")])
@pytest.mark.parametrize("unit", UNITS, ids=" ".join)
def test_branches_are_the_tasks_own(
    unit: tuple[str, ...], of: str, cpus: str, programs: dict[str, Path], tmp_path: Path
) -> None:
    """Events of tasks, which children inherit, and events of CPUs, on which tasks come and go."""
    isa, event, _ = UNITS[unit]
    options = ["--core", *unit, "--cpus", cpus, "-j", "any,u", "-e", event, "-c", str(PERIOD)]
    samples = record(tmp_path / "perf.data", programs[isa], *options, *(["-a"] if of == "cpus" else []))
    found = check_each_has_its_own(samples, programs[isa])
    assert min(found.values()) > 5


@pytest.mark.parametrize("unit", [unit for unit, (_, _, stacks) in UNITS.items() if stacks], ids=" ".join)
def test_call_stacks_are_the_tasks_own(unit: tuple[str, ...], programs: dict[str, Path], tmp_path: Path) -> None:
    """They are kept while their task is away, and are there again when it comes back."""
    isa, _, _ = UNITS[unit]
    options = ["--core", *unit, "--call-graph", "lbr", "-e", "instructions:u", "-c", "101"]
    samples = record(tmp_path / "perf.data", programs[isa], *options)
    check_each_has_its_own(samples, programs[isa])


@pytest.mark.parametrize("unit", [("skylake",), ("neoverse-n1", "--unit", "brbe")], ids=" ".join)
def test_with_the_kernels_asked_for_there_are_no_others(
    unit: tuple[str, ...], programs: dict[str, Path], tmp_path: Path
) -> None:
    """The kernel is modelled, and has no branches."""
    isa, event, _ = UNITS[unit]
    options = ["--core", *unit, "-j", "any,u,k", "-e", event[:-2], "-c", str(PERIOD)]
    samples = record(tmp_path / "perf.data", programs[isa], *options)
    check_each_has_its_own(samples, programs[isa])
