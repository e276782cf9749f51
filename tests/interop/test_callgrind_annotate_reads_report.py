"""perfemu report --format callgrind, then Valgrind's callgrind_annotate: report's numbers, to the last event."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import perfemu
import require
from c_programs import build
from exports import exact, exported, sampled, weights
from guests import ISAS

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^ *([\d,]+) \([ \d.]+%\)  \S+:(\S+)(?: \[.*\])?$")  # without its file where a function is inlined
_SOURCE_LINE = re.compile(r"^ *(?:([\d,]+) \([ \d.]+%\)|\.)  (.*)$")


def annotated(file: Path, *arguments: str) -> list[str]:
    """The lines of callgrind_annotate; relative source files are those of this project."""
    command = [require.command("callgrind_annotate", package="valgrind"), "--threshold=100", *arguments, str(file)]
    done = subprocess.run([*command, f"-I={ROOT}"], capture_output=True, text=True, check=True, cwd=file.parent)
    assert done.stderr == ""
    return done.stdout.splitlines()


def functions(file: Path, event: str, *arguments: str) -> Counter[str]:
    found = Counter[str]()
    for line in annotated(file, "--auto=no", f"--show={event}", f"--sort={event}", *arguments):
        if row := _ROW.match(line):
            found[row[2]] += int(row[1].replace(",", ""))
    return +found


@pytest.fixture(params=ISAS)
def isa(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("children", [False, True], ids=["own", "with callees"])
def test_functions_weigh_what_report_says(
    isa: str, children: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the recursive one, with what it called."""
    data = sampled(tmp_path, isa)
    file = tmp_path / "callgrind.out"
    file.write_bytes(exported(monkeypatch, data, "callgrind"))
    told = weights(data, children=children)
    assert told["instructions:u"]["quicksort"] > 10 * 1009
    for event, functions_told in told.items():
        assert functions(file, event, f"--inclusive={'yes' if children else 'no'}") == functions_told


def test_exact_recordings_are_counts_of_each_function(
    isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = exact(tmp_path, isa, "sort", "1000")
    file = tmp_path / "callgrind.out"
    file.write_bytes(exported(monkeypatch, data, "callgrind"))
    assert "Costs: exact counts" in annotated(file)
    for event, told in weights(data).items():
        assert functions(file, event) == told


def test_lines_of_the_source_carry_the_counts_that_it_says_itself(
    isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In guest_programs/loop_1k each line of assembly says in its comment how often it retires."""
    data = exact(tmp_path, isa, "loop_1k")
    file = tmp_path / "callgrind.out"
    file.write_bytes(exported(monkeypatch, data, "callgrind"))
    shown = [row for line in annotated(file, "--show=instructions:u") if (row := _SOURCE_LINE.match(line))]
    lines = [(row[1], said[1]) for row in shown if (said := re.search(r"//\s+(\d[\d,]*\b)", row[2]))]
    assert len(lines) == 6
    assert all(counted == said for counted, said in lines)


def test_two_runs_write_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = sampled(tmp_path, "aarch64")
    assert exported(monkeypatch, data, "callgrind") == exported(monkeypatch, data, "callgrind")


def test_inlined_code_is_of_its_own_source(isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """main has the loop of spin.h within it: its costs lie in both files, and the loop's 1000 rounds in spin.h."""
    (tmp_path / "spin.h").write_text(SPIN, encoding="utf-8")
    source = tmp_path / "main.c"
    source.write_text('#include "spin.h"\nint main() {\n  spin(1000);\n  return 0;\n}\n', encoding="utf-8")
    program = build(source, isa, tmp_path / "prog", "-g")
    data = tmp_path / "exact.data"
    perfemu.record(perfemu.Guest([program], core="ideal"), ["instructions"], exact=True, output=data, capture=True)
    file = tmp_path / "callgrind.out"
    file.write_bytes(exported(monkeypatch, data, "callgrind"))
    rows = [row for line in annotated(file, "--auto=no") if (row := re.search(r"(\S+):main\b", line))]
    assert {Path(row[1]).name for row in rows} == {"main.c", "spin.h"}
    assert functions(file, "instructions:u")["main"] == weights(data)["instructions:u"]["main"]
    lines = [row for line in annotated(file) if (row := _SOURCE_LINE.match(line)) and "volatile" in row[2]]
    assert int((lines[0][1] or "0").replace(",", "")) > 1000


SPIN = """
static inline __attribute__((always_inline)) void spin(long n) {
  for (volatile long i = 0; i < n; i++);
}
"""
