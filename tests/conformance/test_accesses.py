"""Are the data accesses that the models hear of those that the engine makes? Of real programs, each one, in order.

The engine's own MEM hooks witness every run of the model gear (emulator/native/core/access_witness.hpp).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import require
from bench import workloads
from conformance import corpus
from debian import ARCHITECTURES
from emulator import cpu
from emulator._native import AccessWitness, AddressSpace, Core
from perfemu import api

CACHE = ("l1d.size=32KiB", "l1d.ways=8", "l1d.line=64", "l1d.latency=4", "memory.latency=100")  # so that it is modelled

# Of those in the corpus: more show little else.
RUNS_OF_A_PROGRAM = 3 if os.environ.get("CORPUS") == "all" else 1

_witnesses: dict[Core, AccessWitness] = {}
_compared: list[int] = []


class WitnessedCore(Core):
    """A core that compares after each run."""

    def set_address_space(self, space: AddressSpace) -> None:
        """A new process, or another one's turn."""
        super().set_address_space(space)
        if self in _witnesses:
            _witnesses[self].set_address_space(space)
        else:
            _witnesses[self] = AccessWitness(self, space)

    def run(self, until_cycle: int) -> int:
        """As the core's own."""
        reason = super().run(until_cycle)
        _compared.append(_witnesses[self].compare())
        return reason


def few_cases() -> list[corpus.Case]:
    """The first runs of each program, for both ISAs."""
    chosen: list[corpus.Case] = []
    for case in corpus.cases():
        same = [other for other in chosen if (other.file, other.isa) == (case.file, case.isa)]
        if len(same) < RUNS_OF_A_PROGRAM:
            chosen.append(case)
    return chosen


@pytest.fixture(autouse=True)
def witnessed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cpu, "Core", WitnessedCore)
    yield
    _witnesses.clear()
    _compared.clear()


@pytest.mark.parametrize("case", few_cases(), ids=str)
def test_models_hear_of_each_access_of_a_real_program(case: corpus.Case, tmp_path: Path) -> None:
    tree = require.debian_tree(ARCHITECTURES[case.isa], case.package)
    directory = tmp_path / "files"
    corpus.write_files(directory)
    api.run(
        api.Guest(
            [f"/{case.file}", *case.arguments],
            core="ideal",
            core_changes=CACHE,
            sysroot=tree,
            environment=corpus.ENVIRONMENT,
            writable_paths=[directory],
            cwd=directory,
        ),
        input=(directory / case.stdin).read_bytes() if case.stdin else b"",
        capture=True,
    )
    assert sum(_compared) > 1000


# The benchmarks, smaller: the hooks cost much.
LUA = workloads.LUA.replace("60000", "600").replace("30000", "300").replace("fib(21)", "fib(11)").replace("8000", "80")
SQL = workloads.SQL.replace("9000", "90")
SIZES = {"embedded_mix": "20", "sort": "20000", "matrix": "40"}
ARGUMENTS = {"gzip": ("-c", "text"), "lua5.4": ("-e", LUA), "sqlite3": (":memory:", SQL)}


def run_workload(workload: workloads.Workload, tmp_path: Path) -> None:
    words = [f"{i * 2654435761 % 4093:x} of {i % 977} and the" for i in range(1500)]
    (tmp_path / "text").write_text(" ".join(words), encoding="ascii")
    result = api.run(
        api.Guest(
            list(workload.argv),
            core="ideal",
            core_changes=CACHE,
            sysroot=workload.sysroot,
            environment=corpus.ENVIRONMENT,
            cwd=tmp_path,
        ),
        capture=True,
    )
    assert result.exit_status == 0
    assert sum(_compared) > 100_000


@pytest.mark.parametrize("isa", workloads.ISAS)
@pytest.mark.parametrize("name", SIZES)
def test_models_hear_of_each_access_of_a_benchmark(name: str, isa: str, tmp_path: Path) -> None:
    run_workload(workloads.guest_program(name, isa, SIZES[name]), tmp_path)


@pytest.mark.parametrize("isa", workloads.ISAS)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_models_hear_of_each_access_of_debians_benchmarks(name: str, isa: str, tmp_path: Path) -> None:
    require.debian_tree(ARCHITECTURES[isa], *workloads.PACKAGES)
    run_workload(workloads.debian_program(name, isa, *ARGUMENTS[name]), tmp_path)
