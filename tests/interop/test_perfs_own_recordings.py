"""Recordings by the unmodified perf, of a program of this machine: every reader of ours says what perf report says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import perfemu
import require
from devtools import Browser
from end_to_end.command import perfemu as command
from exports import exported
from real_perf import RealPerf

SOURCE = """
volatile unsigned sink;
__attribute__((noinline)) void leaf(int n) { for (int i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void middle(int n) { leaf(n); sink++; }
int main(void) { for (int i = 0; i < ROUNDS; i++) middle(20000); return 0; }
"""
REPORTS = [
    "-g none",
    "--no-children -g caller --symbols leaf",
    "--no-children -g callee --symbols leaf",
    "--no-children -g folded --symbols leaf",
    "--no-children --sort dso,sym -g none",
    "--no-children --hierarchy -g none",
    "--no-children --percentage relative --symbols leaf,main -g none",
    "--no-children --sort srcline -g none --symbols leaf",
]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of two builds; in user mode, for the kernel's symbols are perf's to know."""
    directory = tmp_path_factory.mktemp("perf")
    compiler = require.command("gcc", package="gcc")
    perf = require.command("perf", package="linux-perf")
    (directory / "loop.c").write_text(SOURCE)
    made = []
    for rounds in (1000, 1500):
        program, data = directory / f"loop-{rounds}", directory / f"{rounds}.data"
        options = ["-g", "-O0", "-static"]  # with frame pointers
        sources = [f"-DROUNDS={rounds}", directory / "loop.c"]
        subprocess.run([compiler, *options, "-o", program, *sources], check=True)
        sampling = ["-q", "-g", "-e", "cpu-clock:u", "-c", "100000", "-o", data]
        done = subprocess.run(
            [perf, "record", *sampling, program], capture_output=True, env={"HOME": str(directory)}, check=False
        )
        if done.returncode:
            pytest.skip(f"perf cannot record here: {done.stderr.decode()[-200:]}")
        made.append(data)
    return made[0], made[1]


@pytest.fixture
def data(recordings: tuple[Path, Path]) -> Path:
    return recordings[0]


def period_of(data: Path) -> int:
    """As perf counts it: samples, each of 100,000 ns."""
    return perfemu.report(data)["cpu-clock"].period


@pytest.mark.parametrize("options", REPORTS)
def test_report(options: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines. Their order is perf's own where rows weigh the same."""
    theirs = RealPerf(tmp_path).report(data, *options.split())
    ours = exported(monkeypatch, data, "stdio", *options.split()).decode().splitlines()
    assert sorted(line.rstrip() for line in ours if line) == sorted(line.rstrip() for line in theirs if line)
    assert any("leaf" in line or "loop.c:3" in line for line in theirs)


def test_diff(recordings: tuple[Path, Path]) -> None:
    done = command("diff", "--json", *recordings)
    document: dict[str, Any] = json.loads(done.stdout)
    (event,) = document["events"]
    assert (event["event"], event["exact"]) == ("cpu-clock", False)
    assert document["remarks"] == ["cpu-clock: functions' counts are samples' weights, not exact"]
    for side, data in zip(("old", "new"), recordings, strict=True):
        assert event["total"][side] == period_of(data)
        for rows in (event["modules"], event["functions"]):
            assert sum(row[side] or 0 for row in rows) == period_of(data)
    (leaf,) = [row for row in event["functions"] if row["name"] == "leaf"]
    assert leaf["new"] == perfemu.report(recordings[1])["cpu-clock"]["leaf"].period


def test_annotate(data: Path) -> None:
    function = perfemu.annotate(data, "leaf")
    assert function.exact == (False,)
    period = perfemu.report(data)["cpu-clock"]["leaf"].period
    assert function.counts == {"cpu-clock:u": period}
    assert sum(each.counts[0] for each in function.instructions) == period


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as made:
        yield made


def test_html(recordings: tuple[Path, Path], browser: Browser, tmp_path: Path) -> None:
    """The page's table is report's."""
    page, data = tmp_path / "page.html", recordings[0]
    done = command("html", data, "-o", page)
    assert (done.returncode, done.stderr) == (0, b"")
    browser.open(page, "")
    assert browser.errors == []
    rows = browser.run(
        "[...document.querySelectorAll('#functions tbody tr')].map(row => [...row.children].map(c => c.textContent))"
    )
    shown = {row[0]: (int(row[2].replace(",", "")), int(row[4].replace(",", ""))) for row in rows if row[1] != ""}
    for name in ("leaf", "middle", "main"):
        row = perfemu.report(data, children=True)["cpu-clock"][name]
        assert shown[name] == (row.period, row.children_period)
    assert sum(own for own, _ in shown.values()) == period_of(data)
    done = command("html", *recordings[::-1], "-o", page)
    assert (done.returncode, done.stderr) == (0, b"")


def test_exports(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are text and say their sums; others' readers are asked of our own recordings."""
    period = period_of(data)
    folded = exported(monkeypatch, data, "folded").decode().splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in folded) == period
    speedscope = json.loads(exported(monkeypatch, data, "speedscope"))
    assert sum(sum(profile["weights"]) for profile in speedscope["profiles"]) == period
    callgrind = exported(monkeypatch, data, "callgrind").decode().splitlines()
    assert f"totals: {period}" in callgrind
    assert json.loads(exported(monkeypatch, data, "json"))["events"][0]["period"] == period
    for style in ("pprof", "firefox", "csv"):
        assert exported(monkeypatch, data, style)
