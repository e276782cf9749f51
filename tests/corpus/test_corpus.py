"""Do unmodified Debian programs do what they do on Linux? Output and exit status are the same as on the host's kernel.

What Linux does may depend on how busy the host is, so it has three tries; we have one, since ours is always the same.

Each run takes the cases that are not slow, each of one ISA by turns, and compares with what the program of the host's
ISA does. CORPUS=all
(`make corpus`) takes all, and compares with the program of the same ISA, under qemu-user where the host has another. A
case that is known not to work says so in its row (`broken`), and fails on the day when it does; REWRITE_BROKEN=1 writes
those keys anew.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import require
from corpus import marks
from corpus.cases import Case, cases, packages
from corpus.debian_machine import HOST_ISA, machine
from corpus.runs import Run, run_here, run_on_linux
from guests import ISAS


def in_turn(case: Case) -> bool:
    """Every second row is for the first ISA, and the others are for the second."""
    return (ROWS.index((case.family, case.name)) + ISAS.index(case.isa)) % 2 == 0


EVERYTHING = os.environ.get("CORPUS") == "all"
REWRITE = os.environ.get("REWRITE_BROKEN") == "1"
ALL = cases()
ROWS = list(dict.fromkeys((case.family, case.name) for case in ALL))
CHOSEN = [case for case in ALL if EVERYTHING or (case.slow is None and in_turn(case))]
LEAST_CASES = 80  # of programs and pipelines, and
MOST_OF_COREUTILS = 30
TRIES = 3


@dataclass(frozen=True, slots=True)
class Comparison:
    """The runs of a case, as soon as they are finished."""

    linux: Future[Run]
    here: Future[Run]
    again: Callable[[], Run]  # on Linux


def parameters(case: Case) -> object:
    known = case.broken is not None and not REWRITE
    known_broken = [pytest.mark.xfail(reason=case.broken, raises=AssertionError, strict=True)] if known else []
    return pytest.param(case, id=str(case), marks=known_broken)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Case, Comparison]]:
    """The runs of all chosen tests of this module, as many at a time as there are processors, begun in their order."""
    require.command("proot", package="proot")
    chosen = [
        item.callspec.params["case"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and hasattr(item, "callspec")
    ]
    roots = {isa: machine(isa, packages(CHOSEN)) for isa in sorted({HOST_ISA, *(case.isa for case in CHOSEN)})}
    base = tmp_path_factory.mktemp("corpus")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        on_linux: dict[Path, Future[Run]] = {}
        comparisons = {}
        for case in chosen:
            isa = case.isa if EVERYTHING and case.native is None else HOST_ISA
            place = base / f"{case.family}-{case.name}-on-linux-{isa}"
            if place not in on_linux:
                on_linux[place] = pool.submit(run_on_linux, case, isa, roots[isa], place)
            here = pool.submit(run_here, case, roots[case.isa], base / str(case))
            again = partial(run_on_linux_again, case, isa, roots[isa], place)
            comparisons[case] = Comparison(on_linux[place], here, again)
        yield comparisons
        pool.shutdown(cancel_futures=True)
    if REWRITE:
        marks.rewrite(
            {case: broken(case, runs.linux.result(), runs.here.result()) for case, runs in comparisons.items()}
        )


def run_on_linux_again(case: Case, isa: str, root: Path, place: Path) -> Run:
    with tempfile.TemporaryDirectory(prefix=f"{place.name}-", dir=place.parent) as directory:
        return run_on_linux(case, isa, root, Path(directory, place.name))


def broken(case: Case, linux: Run, here: Run) -> str | None:
    """Why a case does not work; what the row says already, unless it does work."""
    if here.outcome == linux.outcome:
        return None
    if case.broken is not None:
        return case.broken
    if here.complaints:
        return here.complaints[0]
    if here.outcome.status is None:
        return f"not ready after {case.timeout_s} s"
    if here.outcome.status != linux.outcome.status:
        return f"status {here.outcome.status} instead of {linux.outcome.status}"
    return "another output"


@pytest.mark.parametrize("case", [parameters(case) for case in CHOSEN])
def test_program_does_what_it_does_on_linux(case: Case, runs: dict[Case, Comparison]) -> None:
    linux, here = runs[case].linux.result(), runs[case].here.result()
    if linux.outcome.status != case.status:
        pytest.fail(f"on Linux it should end with {case.status}, and does so with {linux.outcome}", pytrace=False)
    if REWRITE:
        return
    for _ in range(TRIES - 1):
        if case.broken is None and here.outcome != linux.outcome:
            linux = runs[case].again()
    complaints = "\n".join(here.complaints)
    assert here.outcome == linux.outcome, f"\nours: {here.outcome}\n{complaints}\nLinux's: {linux.outcome}"


def test_corpus_is_as_large_as_it_should_be() -> None:
    rows = {(case.family, case.name) for case in ALL}
    others = {row for row in rows if row[0] != "coreutils"}
    assert len(rows) - len(others) <= MOST_OF_COREUTILS
    assert len(others) >= LEAST_CASES, "enough without coreutils and busybox"


def test_only_the_file_for_them_runs_nothing_but_coreutils_and_busybox() -> None:
    small = {"coreutils", "busybox-static"}
    for case in ALL:
        assert (case.family == "coreutils") or not set(case.packages) <= small, case
