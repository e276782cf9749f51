"""What pytest prints for a user's failing assertion about counts, with perfemu installed and nothing else done."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import perfemu
from guests import guest

LOOP = str(Path("guest_programs/loop_1k/x86_64.elf").resolve())

# loop_1k retires 2,004 instructions (expected.toml), each in one cycle of the ideal core, which has no predictor.
FAILING = f"""
import perfemu

def stat(*events):
    return perfemu.stat(perfemu.Guest([{LOOP!r}], core="ideal"), events)

def test_count():
    result = stat("instructions", "cycles", "branch-misses")
    assert result["instructions"] < 5

def test_equal():
    one, other = stat("instructions", "cycles"), stat("instructions", "page-faults")
    assert one == other

def test_no_assertion():
    result = stat("instructions")
    result["cycles"]
"""


def pytest_output(directory: Path, test: str, *options: str) -> str:
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "test_user.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_user.py"]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False).stdout


def test_a_failing_assertion_shows_the_counts(tmp_path: Path) -> None:
    counted, equal, other = pytest_output(tmp_path, FAILING).split("\n____")[1:]
    assert "- perfemu: result -" in counted
    assert counted.rstrip().endswith(
        f"\n{LOOP} (core ideal)\n"
        "            2,004  instructions:u\n"
        "            2,004  cycles:u\n"
        "  <not supported>  branch-misses:u"
    )
    assert re.search(r"^E +cycles:u +2,004 != +-$", equal, re.MULTILINE)  # only one of them has it
    assert re.search(r"^E +page-faults(:u)? +- != +\d+$", equal, re.MULTILINE)
    assert "instructions:u  " not in equal.split("- perfemu")[0]
    assert "perfemu: one" in equal
    assert "perfemu: other" in equal
    assert "perfemu: result" not in other  # the KeyError says all


def test_a_test_without_perfemu_does_not_import_it(tmp_path: Path) -> None:
    test = "import sys\n\ndef test():\n    assert 'perfemu.pytest_plugin' in sys.modules\n"
    test += "    assert not any(name.split('.')[0] in ('emulator', 'perfcore', 'pmu') for name in sys.modules)\n"
    assert "1 passed" in pytest_output(tmp_path, test)


def test_differences_are_of_what_is_not_the_same() -> None:
    one = perfemu.stat(perfemu.Guest([LOOP], core="ideal"), ["instructions", "cycles"])
    assert one.differences(one) == ["the same in both: 8 more"]
    assert one.table() == f"{LOOP} (core ideal)\n  2,004  instructions:u\n  2,004  cycles:u"


GUARDED = """
def test_parser(perfemu):
    run = perfemu.stat(perfemu.Guest(["./prog"], core="ideal"), ["instructions", "branches"])
    perfemu.check(run, instructions="0.1%")

def test_twice(perfemu):
    for rounds in (1, 2):
        perfemu.check(perfemu.stat(perfemu.Guest(["./prog"], core="ideal")))

def test_misspelt(perfemu):
    perfemu.check(perfemu.stat(perfemu.Guest(["./prog"], core="ideal")), cycles=1)
"""
PROGRAMS = {name: guest(name, "x86_64").path for name in ("loop_1k", "sort")}


def guarded(directory: Path, program: str, *options: str) -> str:
    shutil.copy(PROGRAMS[program], directory / "prog")
    return pytest_output(directory, GUARDED, *options)


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_the_fixture_holds_counts_against_the_baseline_of_its_test(processes: tuple[str, ...], tmp_path: Path) -> None:
    without = guarded(tmp_path, "loop_1k", *processes)
    assert "test_user.py::test_parser: it has no baseline yet (pytest --perfemu-update writes " in without
    assert "ValueError: check: cycles is not among the events instructions" in without
    assert not (tmp_path / "perfemu-baseline.json").exists()
    assert "1 failed, 2 passed" in guarded(tmp_path, "loop_1k", "--perfemu-update", *processes)
    entries = json.loads((tmp_path / "perfemu-baseline.json").read_text())["entries"]
    assert sorted(entries) == [f"test_user.py::{name}" for name in ("test_parser", "test_twice", "test_twice 2")]
    assert {entry["events"]["instructions"]["total"] for entry in entries.values()} == {2004}
    assert "1 failed, 2 passed" in guarded(tmp_path, "loop_1k", *processes)
    failed = guarded(tmp_path, "sort", *processes)  # which retires more than a million
    assert re.search(r"instructions: 2,004 -> [0-9,]+, \+[0-9,]+ \(.*%\), more than 0.1%", failed)
    assert re.search(r"\+[0-9,]+ +\S+  prog", failed)


def test_another_file_can_be_the_baseline(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    guarded(tmp_path, "loop_1k", "--perfemu-update", "--perfemu-baseline", str(path))
    assert path.exists()
    assert "1 failed, 2 passed" in guarded(tmp_path, "loop_1k", "--perfemu-baseline", str(path))
