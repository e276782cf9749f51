"""perfemu diff: what it attributes adds up to the difference of the totals, to the instruction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from c_programs import build
from end_to_end.command import complaint, perfemu
from guests import ISAS

SOURCE = Path(__file__).with_name("versions.c")
SOURCE_OF_A_LOOP = """int main(void) {{
    for (volatile int i = 0; i < {rounds}; i++) {{ }}
    return 0;
}}
"""
CORES = {"aarch64": "neoverse-n1", "x86_64": "skylake"}


@pytest.fixture(scope="module", params=ISAS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Static, of one thread."""
    folder = tmp_path_factory.mktemp(request.param)
    return build(SOURCE, request.param, folder / "old", "-g"), build(
        SOURCE, request.param, folder / "new", "-g", "-DNEW"
    )


def isa_of(program: Path) -> str:
    return next(isa for isa in ISAS if program.parent.name.startswith(isa))


def compared(*arguments: str | Path) -> dict[str, Any]:
    done = perfemu("diff", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    for event in document["events"]:
        for rows in (event["functions"], event["modules"]):
            for side in ("old", "new", "difference"):
                assert sum(row[side] or 0 for row in rows) == event["total"][side]
    return document


def rows_that_changed(rows: list[dict[str, Any]]) -> dict[str, tuple[int | None, int | None]]:
    return {row["name"]: (row["old"], row["new"]) for row in rows if row["difference"]}


def test_all_of_it_is_in_the_function_that_changed_and_what_it_calls(pair: tuple[Path, Path]) -> None:
    (event,) = compared("--old", pair[0], "--new", pair[1])["events"]
    changed = rows_that_changed(event["functions"])
    assert set(changed) == {"compute", "hash", "further"}
    assert event["exact"]
    # hash(n) loops n times, and hash(n / 2) half as often: of one size a round, and a few instructions a call
    old, new = changed["hash"]
    assert old is not None
    assert new is not None
    assert 1.5 * old < new < 1.5 * old + 20
    assert changed["further"][0] is None


def test_functions_that_were_renamed_are_one(pair: tuple[Path, Path]) -> None:
    (event,) = compared("--old", pair[0], "--new", pair[1])["events"]
    (row,) = [row for row in event["functions"] if row["name"] == "compute_more"]
    assert row["old_name"] == "compute_all"
    assert row["difference"] == 0


def test_lines_say_where(pair: tuple[Path, Path]) -> None:
    (event,) = compared("--old", pair[0], "--new", pair[1])["events"]
    number = 1 + SOURCE.read_text().splitlines().index("    for (unsigned i = 0; i < n; i++) sum += i;")
    assert f"versions.c:{number}" in rows_that_changed(event["lines"])


def test_two_equal_runs_do_not_differ(pair: tuple[Path, Path]) -> None:
    events = "cycles,instructions,branch-misses,L1-dcache-load-misses"
    document = compared("--core", CORES[isa_of(pair[0])], "-e", events, "--old", pair[0], "--new", pair[0])
    assert [event["event"] for event in document["events"]] == events.split(",")
    assert not any(rows_that_changed([event["total"], *event["functions"]]) for event in document["events"])
    assert all(event["total"]["old"] > 0 for event in document["events"])


def test_what_models_count_adds_up_too(pair: tuple[Path, Path]) -> None:
    document = compared(
        "--core", CORES[isa_of(pair[0])], "-e", "cycles,branch-misses", "--old", pair[0], "--new", pair[1]
    )
    cycles, _ = document["events"]
    assert {"hash", "further"} <= set(rows_that_changed(cycles["functions"]))


def test_threads_and_children_add_up_too(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    isa = isa_of(pair[0])
    old = build(SOURCE, isa, tmp_path / "old", "-DTASKS")
    new = build(SOURCE, isa, tmp_path / "new", "-DTASKS", "-DNEW")
    (event,) = compared("--cpus", "2", "--old", old, "--new", new)["events"]
    changed = rows_that_changed(event["functions"])
    assert {"compute", "hash", "further"} <= set(changed)
    own = sum(
        (after or 0) - (before or 0)
        for name, (before, after) in changed.items()
        if name in ("compute", "hash", "further")
    )
    assert abs(event["total"]["difference"] - own) < 200  # who waits for whom


def test_files_say_what_runs_say(pair: tuple[Path, Path], tmp_path: Path) -> None:
    files = []
    for program in pair:
        files.append(tmp_path / program.name)
        assert perfemu("record", "-q", "--exact", "-e", "instructions", "-o", files[-1], program).returncode == 0
    from_files, from_runs = compared(*files), compared("--old", pair[0], "--new", pair[1])
    assert from_files["events"] == from_runs["events"]


def test_stat_results_know_totals(pair: tuple[Path, Path], tmp_path: Path) -> None:
    files = []
    for program in pair:
        files.append(tmp_path / program.name)
        assert perfemu("stat", "-j", "-e", "instructions,branches", "-o", files[-1], program).returncode == 0
    events = json.loads(perfemu("diff", "--json", *files).stdout)["events"]
    assert [(event["event"], event["functions"]) for event in events] == [("instructions", []), ("branches", [])]
    (whole,) = compared("--old", pair[0], "--new", pair[1])["events"]
    assert events[0]["total"] == whole["total"]


def test_clocks_of_stat_results_are_in_nanoseconds(tmp_path: Path) -> None:
    """As perf 6.1 writes them with -j: msec, with six decimals."""
    row = '{{"counter-value" : "{}", "unit" : "msec", "event" : "task-clock", "event-runtime" : 444990}}'
    for name, value in (("old", "0.444990"), ("new", "0.544991")):
        (tmp_path / name).write_text(f"# started on Mon Nov 23 12:50:16 2026\n\n{row.format(value)}\n")
    (event,) = json.loads(perfemu("diff", "--json", tmp_path / "old", tmp_path / "new").stdout)["events"]
    assert event["total"] == {"name": "task-clock", "old": 444_990, "new": 544_991, "difference": 100_001}


def test_lines_of_a_source_file_that_was_renamed(tmp_path: Path) -> None:
    """As those of one file: what is at the same line is compared."""
    lines = {}
    for name, rounds in (("first.c", 10), ("second.c", 20)):
        (tmp_path / name).write_text(SOURCE_OF_A_LOOP.format(rounds=rounds))
        lines[name] = build(tmp_path / name, "x86_64", tmp_path / f"{name}.elf", "-g")
    (event,) = compared("--old", lines["first.c"], "--new", lines["second.c"])["events"]
    (row,) = [row for row in event["lines"] if row["difference"]]
    assert (row["name"], row["old_name"]) == ("second.c:2", "first.c:2")
    (function,) = [row for row in event["functions"] if row["name"] == "main"]
    assert row["difference"] == function["difference"] > 0


@pytest.mark.parametrize(("threshold", "status"), [("0.01%", 1), ("100", 1), ("99%", 0), ("1000000", 0)])
def test_a_growth_beyond_what_is_allowed_is_a_failure(pair: tuple[Path, Path], threshold: str, status: int) -> None:
    done = perfemu("diff", "--fail-above", threshold, "--old", pair[0], "--new", pair[1])
    assert done.returncode == status
    assert (f"more than {threshold}" in done.stderr.decode()) is bool(status)
    assert perfemu("diff", "--fail-above", threshold, "--old", pair[1], "--new", pair[0]).returncode == 0


def test_other_machines_are_named(pair: tuple[Path, Path], tmp_path: Path) -> None:
    isa = isa_of(pair[0])
    other = build(SOURCE, next(other for other in ISAS if other != isa), tmp_path / "old")
    document = compared("--old", pair[0], "--new", other)
    assert any(remark.endswith(": other instructions") for remark in document["remarks"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one",), "diff: wants two files, OLD and NEW, or two commands, --old and --new"),
        (("--old", "x"), "diff: --old and --new go together, and without files"),
        (("/nonexistent", "/nonexistent"), "cannot read /nonexistent: No such file or directory"),
        ((__file__, __file__), f"{__file__} is neither a perf.data file nor what stat -j writes"),
        (("--old", "'", "--new", "x"), "diff: ''': No closing quotation"),
        (("--fail-above", "much", "a", "b"), "diff: argument --fail-above: 'much' is neither a percentage nor a count"),
        (("-c", "ratio"), "diff -c (ways to compute: there is the difference) is not modelled yet"),
    ],
)
def test_what_cannot_be_compared_is_named(arguments: tuple[str, ...], message: str) -> None:
    done = perfemu("diff", *arguments)
    assert done.returncode != 0
    assert message in complaint(done)


def test_files_without_a_common_event_are_named(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for event in ("instructions", "branches"):
        perfemu("stat", "-j", "-e", event, "-o", tmp_path / event, pair[0])
    done = perfemu("diff", tmp_path / "instructions", tmp_path / "branches")
    assert "have no event in common" in complaint(done)


def test_a_region_of_both(pair: tuple[Path, Path]) -> None:
    (event,) = compared("--from-symbol", "compute", "--old", pair[0], "--new", pair[1])["events"]
    assert set(rows_that_changed(event["functions"])) == {"compute", "hash", "further"}
    assert {row["name"] for row in event["functions"]}.isdisjoint({"_start", "main"})
    (whole,) = compared("--old", pair[0], "--new", pair[1])["events"]
    assert event["total"]["difference"] == whole["total"]["difference"]
