"""--fast-forward and --warmup: what is decoded is exact for the whole run; what is modelled begins where it is said."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from c_programs import build
from end_to_end.command import ENVIRONMENT, PERFEMU
from guests import ISAS

CORES = {"x86_64": "zen5", "aarch64": "neoverse-n1"}
EVENTS = "instructions,branches,cycles,branch-misses"
THREADS = """
#include <pthread.h>
static void *sum(void *from) {
    volatile long total = 0;
    for (long i = 0; i < 200000; i++) total += i ^ (long)from;
    return 0;
}
int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, sum, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
}
"""


def perfemu(*argv: object, status: int = 0) -> str:
    """What it prints on stderr."""
    command = [PERFEMU, *map(str, argv)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=300, check=False)
    assert done.returncode == status, done.stderr
    return done.stderr


def counts(printed: str) -> dict[str, int]:
    rows = (line.split(",") for line in printed.splitlines() if line[:1].isdecimal())
    return {row[2].partition(":")[0]: int(row[0]) for row in rows}


def sort(isa: str) -> Path:
    return Path(__file__).parents[2] / "guest_programs" / "sort" / f"{isa}.elf"


@pytest.mark.parametrize("isa", ISAS)
def test_what_is_modelled_counts_from_there_and_the_rest_from_the_start(isa: str) -> None:
    stat = ("stat", "-x,", "-e", EVENTS, "--core", CORES[isa])
    whole = counts(perfemu(*stat, sort(isa)))
    printed = perfemu(*stat, "--fast-forward", 1_000_000, "--warmup", 500_000, sort(isa))
    assert "cycles and what models count begin after 1,500,000 instructions, in cycle " in printed
    part = counts(printed)
    assert (part["instructions"], part["branches"]) == (whole["instructions"], whole["branches"])
    assert 0 < part["cycles"] < whole["cycles"]
    assert 0 < part["branch-misses"] < whole["branch-misses"]


@pytest.mark.parametrize("isa", ISAS)
def test_none_is_no_option(isa: str) -> None:
    stat = ("stat", "-d", "--core", CORES[isa])
    assert perfemu(*stat, "--fast-forward", 0, "--warmup", 0, sort(isa)) == perfemu(*stat, sort(isa))


@pytest.mark.parametrize("options", [("--fast-forward", 1_000_000), ("--warmup", 100_000)])
def test_the_header_says_so_and_no_ratio_mixes_what_was_counted_from_different_points(options: tuple[object]) -> None:
    printed = perfemu("stat", "--core", "zen5", *options, sort("x86_64"))
    assert f"(core zen5, modelled after {options[-1]:,} instructions)" in printed
    assert "frontend cycles idle" in printed
    assert not any(unit in printed for unit in ("insn per cycle", "GHz", "of all branches", "/sec"))


def test_recordings_are_the_same_twice_and_sample_cycles_from_there(tmp_path: Path) -> None:
    def record(name: str, *options: object) -> bytes:
        path = tmp_path / name
        perfemu("record", "-c", 100_000, "--core", "zen5", *options, "-o", path, sort("x86_64"))
        return path.read_bytes().replace(name.encode(), b"data")

    first, second = (record(name, "--fast-forward", 1_000_000) for name in ("data1", "data2"))
    assert first == second
    assert len(first) < len(record("data3"))


def test_several_cpus_change_together_and_run_the_same_twice(tmp_path: Path) -> None:
    (tmp_path / "threads.c").write_text(THREADS)
    path = build(tmp_path / "threads.c", "x86_64", tmp_path / "threads", "-pthread")
    stat = (
        "stat",
        "-x,",
        "-e",
        EVENTS,
        "--core",
        "zen5",
        "--cpus",
        3,
        "--fast-forward",
        1_000_000,
        "--warmup",
        500_000,
    )
    first = perfemu(*stat, path)
    assert first == perfemu(*stat, path)
    assert counts(first)["cycles"] > 0


def test_a_program_that_ends_before(tmp_path: Path) -> None:
    printed = perfemu("stat", "-x,", "-e", EVENTS, "--core", "zen5", "--fast-forward", 10**9, sort("x86_64"))
    assert (
        "ended before it was modelled after 1,000,000,000 instructions: cycles and what models count are 0" in printed
    )
    assert counts(printed)["cycles"] == 0 < counts(printed)["instructions"]


@pytest.mark.parametrize("option", ["--fast-forward", "--warmup"])
def test_a_core_without_models_refuses(option: str) -> None:
    printed = perfemu("stat", option, 5, "--core", "ideal", sort("x86_64"), status=129)
    assert f"{option}: core ideal models nothing that would begin later" in printed
    assert "-1 is not within 0.." in perfemu("stat", option, -1, sort("x86_64"), status=129)


@pytest.mark.parametrize("isa", ISAS)
def test_until_a_region_begins_that_is_modelled_as_a_whole(isa: str) -> None:
    stat = ("stat", "--core", CORES[isa], "--from-symbol", "quicksort", "-x,", "-e", EVENTS)
    whole = counts(perfemu(*stat, sort(isa)))
    functional = counts(perfemu(*stat, "--fast-forward", "region", sort(isa)))
    warm = counts(perfemu(*stat, "--fast-forward", 1000, "--warmup", "region", sort(isa)))
    for name in ("instructions", "branches"):
        assert functional[name] == warm[name] == whole[name]
    assert abs(warm["cycles"] - whole["cycles"]) < abs(functional["cycles"] - whole["cycles"])
    assert warm["cycles"] == pytest.approx(whole["cycles"], rel=1e-2)


def test_ratios_are_printed_of_a_region_that_is_modelled_as_a_whole() -> None:
    stat = ("stat", "--core", "zen5", "--from-symbol", "quicksort", sort("x86_64"))
    whole = perfemu(stat[0], "--warmup", "region", *stat[1:])
    assert "(core zen5, modelled from the region on)" in whole
    assert "insn per cycle" in whole
    # The region has begun before the functional part is over.
    late = perfemu(stat[0], "--fast-forward", 2_000_000, "--warmup", "region", *stat[1:])
    part = perfemu(stat[0], "--fast-forward", "region", "--warmup", 20, *stat[1:])
    assert "modelled after 20 instructions of the region" in part
    assert "insn per cycle" not in late + part


def test_a_region_that_is_not_named() -> None:
    printed = perfemu("stat", "--warmup", "region", "--core", "zen5", sort("x86_64"), status=129)
    assert "--fast-forward region, --warmup region: which? name its function by --from-symbol" in printed
