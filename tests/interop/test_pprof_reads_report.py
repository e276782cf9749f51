"""perfemu report --format pprof, then Go's pprof: report's numbers, to the last event."""

from __future__ import annotations

import gzip
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import perfemu
import require
from exports import exact, exported, sampled, weights
from guests import ISAS, guest

_ROW = re.compile(r"^ *(\d+) +[\d.]+% +[\d.]+% +(\d+) +[\d.]+%  (.+)$")  # flat and cumulative


def pprof(file: Path, *arguments: str) -> list[str]:
    command = [require.command("go", package="golang-go"), "tool", "pprof", *arguments, str(file)]
    home = {"HOME": str(file.parent), "PATH": "/usr/bin:/bin", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=home, cwd=file.parent, timeout=300)
    return done.stdout.splitlines()


def functions(file: Path, event: str) -> tuple[Counter[str], Counter[str]]:
    """Own weights, and those with what was called."""
    own, total = Counter[str](), Counter[str]()
    for line in pprof(file, "-top", "-nodefraction=0", f"-sample_index={re.escape(event)}"):
        if row := _ROW.match(line):
            own[row[3]] += int(row[1])
            total[row[3]] += int(row[2])
    return +own, +total


def written(data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = data.with_suffix(".pb.gz")
    file.write_bytes(exported(monkeypatch, data, "pprof"))
    return file


@pytest.mark.parametrize("isa", ISAS)
def test_functions_weigh_what_report_says(isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the recursive one."""
    data = sampled(tmp_path, isa)
    file = written(data, monkeypatch)
    own, total = weights(data), weights(data, children=True)
    assert own["instructions:u"]["quicksort"] > 10 * 1009
    for event in own:
        assert functions(file, event) == (own[event], total[event])


@pytest.mark.parametrize("isa", ISAS)
def test_exact_recordings_keep_every_event(isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = exact(tmp_path, isa, "sort", "1000")
    file = written(data, monkeypatch)
    for event, own in weights(data).items():
        assert functions(file, event) == (own, own)


@pytest.mark.parametrize("isa", ISAS)
def test_the_program_is_disassembled_with_the_counts_of_its_instructions(
    isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """loop_1k: two instructions a thousand times, four once."""
    lines = pprof(written(exact(tmp_path, isa, "loop_1k"), monkeypatch), "-disasm=_start")
    counts = [line.split()[0] for line in lines if re.match(r"^ +\d+ +\d+ +[0-9a-f]+: ", line)]
    assert Counter(counts) == {"1": 4, "1000": 2}


def test_tasks_are_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = pprof(written(sampled(tmp_path, "x86_64"), monkeypatch), "-tags", "-sample_index=instructions:u")
    assert {line.split(":")[0].strip() for line in lines if ": Total" in line} == {"comm", "pid", "tid"}


def test_times_are_in_nanoseconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "perf.data"
    program = guest("sort", "x86_64").path
    perfemu.record(perfemu.Guest([program], core="ideal"), ["task-clock"], period=1000, output=data, capture=True)
    top = pprof(written(data, monkeypatch), "-top")
    assert "Type: task-clock:u" in top
    assert re.search(r"Total samples = [\d.]+us", "\n".join(top))


def test_two_exports_are_the_same_bytes_without_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = sampled(tmp_path, "aarch64")
    first = exported(monkeypatch, data, "pprof")
    assert exported(monkeypatch, data, "pprof") == first
    assert first[:10] == b"\x1f\x8b\x08\x00" + bytes(4) + b"\x02\xff"  # RFC 1952: MTIME 0, OS unknown
    assert b"quicksort" in gzip.decompress(first)
