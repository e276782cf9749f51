"""Guests sample branches by perf_event_open: each driver's samples, filters and refusals."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from errno import EINVAL, EOPNOTSUPP
from pathlib import Path

import pytest

from c_programs import build
from perfcore.abi.constants import (
    BRANCH_PRIV_SHIFT,
    BRANCH_SPEC_SHIFT,
    BRANCH_TYPE_SHIFT,
    BranchFlag,
    BranchPrivilege,
    BranchSampleType,
    BranchSpeculation,
    BranchType,
    PerfType,
)
from pmu.generic_events import HardwareId

BRANCHES = (PerfType.HARDWARE, HardwareId.BRANCH_INSTRUCTIONS)
ANY, USER = BranchSampleType.ANY, BranchSampleType.USER
PERIOD = 100
PREDICTIONS = int(BranchFlag.MISPRED | BranchFlag.PREDICTED)


@dataclass(frozen=True)
class Unit:
    """Who records branches, and what its driver says of each."""

    options: tuple[str, ...]
    isa: str
    entries: int
    event: tuple[int, int] = BRANCHES
    always: int = 0  # flags of every entry
    typed: bool = False  # says types unasked
    predicts: bool = True
    refused: dict[int, int] = field(default_factory=dict)  # branch_sample_type besides USER -> errno


_STACK, _TRANSACTIONS = int(BranchSampleType.CALL_STACK), int(ANY | BranchSampleType.IN_TX)
_COUNTERS = int(ANY | BranchSampleType.COUNTERS)
_LATER = BranchSpeculation.NON_SPECULATIVE << BRANCH_SPEC_SHIFT
UNITS = {
    "lbr": Unit(("--core", "skylake"), "x86_64", 32, refused={_STACK | ANY: EINVAL, _COUNTERS: EOPNOTSUPP}),
    "arch_lbr": Unit(("--core", "redwood-cove"), "x86_64", 32, typed=True, refused={_STACK | ANY: EINVAL}),
    "amd_lbr": Unit(
        ("--core", "zen5"), "x86_64", 16, always=_LATER, refused={_STACK: EOPNOTSUPP, _TRANSACTIONS: EOPNOTSUPP}
    ),
    "brs": Unit(
        ("--core", "zen4", "--unit", "brs"), "x86_64", 16, (PerfType.RAW, 0xC4), predicts=False,
        refused={int(BranchSampleType.ANY_CALL): EINVAL, int(ANY | BranchSampleType.TYPE_SAVE): EINVAL},
    ),
    "brbe": Unit(
        ("--core", "neoverse-n1", "--unit", "brbe"), "aarch64", 32, typed=True,
        always=BranchPrivilege.USER << BRANCH_PRIV_SHIFT,
        refused={_STACK: EOPNOTSUPP, _TRANSACTIONS: EOPNOTSUPP, _COUNTERS: EOPNOTSUPP},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    source, directory = Path(__file__).with_name("branch_samples.c"), tmp_path_factory.mktemp("programs")
    return {isa: build(source, isa, directory / isa) for isa in ("x86_64", "aarch64")}


def run(unit: Unit, programs: dict[str, Path], wanted: int, event: tuple[int, int] | None = None) -> list[str]:
    """What the program says: user mode alone is asked for."""
    type_, config = unit.event if event is None else event
    words = [*map(str, map(int, (type_, config, PERIOD, wanted | USER, 1)))]
    command = [sys.executable, "-m", "perfemu", "run", *unit.options, "--", str(programs[unit.isa]), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("name", UNITS)
def test_samples_of_a_loop(name: str, programs: dict[str, Path]) -> None:
    """A pass is three taken branches: a call, a return, and one back. 2,000 of them, less the last jump, are 5,999 and
    the return of the loop itself, so 60 samples; those of any branch count the last pass's, too. A sample has all
    entries, each within the loop but around its start."""
    unit = UNITS[name]
    samples, entries, outside, *flags = run(unit, programs, ANY | BranchSampleType.TYPE_SAVE * (name != "brs"))
    assert int(samples) == 60
    assert int(entries) == 60 * unit.entries
    assert int(outside) <= 2  # the call of loop()
    told = {int(each, 16) for each in flags}
    assert all(each & unit.always == unit.always for each in told)
    assert all(bool(each & PREDICTIONS) == unit.predicts for each in told)
    types = {each >> BRANCH_TYPE_SHIFT & 15 for each in told}
    assert types == ({BranchType.CALL, BranchType.RET, BranchType.COND} if name != "brs" else {0})


@pytest.mark.parametrize("name", [name for name in UNITS if name != "brs"])
def test_calls_alone(name: str, programs: dict[str, Path]) -> None:
    """One of three branches is a call, so that the 100 before a sample have as many as there are entries."""
    unit = UNITS[name]
    samples, entries, _, *flags = run(unit, programs, BranchSampleType.ANY_CALL)
    assert int(samples) == 60
    assert int(entries) >= 58 * unit.entries
    types = {int(each, 16) >> BRANCH_TYPE_SHIFT & 15 for each in flags}
    assert types == ({BranchType.CALL} if unit.typed else {BranchType.UNKNOWN})


@pytest.mark.parametrize("name", UNITS)
def test_what_is_refused(name: str, programs: dict[str, Path]) -> None:
    unit = UNITS[name]
    for wanted, error in unit.refused.items():
        assert run(unit, programs, wanted) == ["error", str(error)], hex(wanted)


def test_branch_sampling_is_of_its_own_event(programs: dict[str, Path]) -> None:
    assert run(UNITS["brs"], programs, ANY, BRANCHES) == ["error", str(EINVAL)]


def test_without_a_unit_there_are_none(programs: dict[str, Path]) -> None:
    unit = Unit(("--core", "neoverse-n1"), "aarch64", 0)
    assert run(unit, programs, ANY) == ["error", str(EOPNOTSUPP)]


@pytest.mark.parametrize("name", UNITS)
def test_sysfs_says_how_many_there_are(name: str, programs: dict[str, Path]) -> None:
    unit = UNITS[name]
    pmu = "armv8_pmuv3_0" if unit.isa == "aarch64" else "cpu"
    path = f"/sys/bus/event_source/devices/{pmu}/caps/branches"
    command = [sys.executable, "-m", "perfemu", "run", *unit.options, "--", str(programs[unit.isa]), path]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == f"{unit.entries}\n"
