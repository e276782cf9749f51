"""Do unmodified Debian programs do what they do on Linux? Output and exit status equal those of the same program on the
host's kernel: natively, or under qemu-user if the host's processor is another.

Each run takes the cases that are not slow; CORPUS=all (`make corpus`) takes all. A case that is known not to work says
so in its row (`broken`), and fails on the day when it does work.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

import require
from corpus.cases import Case, cases, packages
from corpus.debian_machine import machine
from corpus.runs import Run, run_here, run_on_linux

ALL = cases()
CHOSEN = [case for case in ALL if os.environ.get("CORPUS") == "all" or case.slow is None]
LEAST_CASES = 80  # of programs and pipelines, and
MOST_OF_COREUTILS = 30
Runs = tuple[Run, Run]
Results = dict[Case, Future[Runs]]


def parameters(case: Case) -> object:
    marks = [pytest.mark.xfail(reason=case.broken, raises=AssertionError, strict=True)] if case.broken else []
    return pytest.param(case, id=str(case), marks=marks)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """The runs of all chosen tests of this module, as many at a time as there are processors, begun in their order."""
    require.command("proot", package="proot")
    chosen = {
        item.callspec.params["case"]: None  # in order, once
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and hasattr(item, "callspec")
    }
    roots = {isa: machine(isa, packages(CHOSEN)) for isa in sorted({case.isa for case in ALL})}
    base = tmp_path_factory.mktemp("corpus")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield {case: pool.submit(run_both, case, roots, base / str(case)) for case in chosen}
        pool.shutdown(cancel_futures=True)


def run_both(case: Case, roots: dict[str, Path], directory: Path) -> Runs:
    directory.mkdir()
    theirs = run_on_linux(case, roots[case.reference_isa], directory / "linux", seen_as=directory / "work")
    return theirs, run_here(case, roots[case.isa], directory / "work")


@pytest.mark.parametrize("case", [parameters(case) for case in CHOSEN])
def test_program_does_what_it_does_on_linux(case: Case, runs: Results) -> None:
    theirs, ours = runs[case].result()
    if theirs.outcome.status != case.status:
        pytest.fail(f"on Linux it should end with {case.status}, and does so with {theirs.outcome}", pytrace=False)
    complaints = "\n".join(ours.complaints)
    assert ours.outcome == theirs.outcome, f"\nours: {ours.outcome}\n{complaints}\nLinux's: {theirs.outcome}"


def test_corpus_is_as_large_as_it_should_be() -> None:
    rows = {(case.family, case.name) for case in ALL}
    others = {row for row in rows if row[0] != "coreutils"}
    assert len(rows) - len(others) <= MOST_OF_COREUTILS
    assert len(others) >= LEAST_CASES, "enough without coreutils and busybox"


def test_only_the_file_for_them_runs_nothing_but_coreutils_and_busybox() -> None:
    small = {"coreutils", "busybox-static"}
    for case in ALL:
        assert (case.family == "coreutils") or not set(case.packages) <= small, case
