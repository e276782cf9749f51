"""The vDSO that programs have here is not that of perf's own machine: perf finds it where record has kept it."""

from __future__ import annotations

import subprocess
import sys
from os import environ
from pathlib import Path

import pytest

import require
from real_perf import RealPerf, trixies_perf

SOURCE = """
#include <time.h>
int main(void) {
    struct timespec now;
    for (int i = 0; i < 1000; i++) clock_gettime(CLOCK_MONOTONIC, &now);
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clock")
    (folder / "clock.c").write_text(SOURCE)
    words = [require.command("gcc", package="gcc"), "-O1", "-o", folder / "clock", folder / "clock.c"]
    subprocess.run(words, check=True)
    return folder / "clock"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture(params=["6.1", "6.12"])
def perf(request: pytest.FixtureRequest, home: Path) -> RealPerf:
    return RealPerf(home, trixies_perf("x86_64") if request.param == "6.12" else ())


def record(home: Path, file: Path, *words: str | Path) -> Path:
    command = [sys.executable, "-m", "perfemu", "record", "-q", "--core", "skylake", "-o", file, *words]
    done = subprocess.run(command, check=True, capture_output=True, env={**environ, "HOME": str(home)})
    assert done.stderr == b""
    return file


def test_a_trace_leads_through_it(perf: RealPerf, home: Path, program: Path, tmp_path: Path) -> None:
    """perf complains of the errors that it would find in its own one's code."""
    file = record(home, tmp_path / "data", "-e", "intel_pt//u", "--", program)
    found = perf.run("script", "-i", file, "--itrace=be", "-F", "ip,sym,addr")
    assert found.count("=>") > 4000
    assert found.count(" __vdso_clock_gettime\n") >= 1000  # calls, as where they lead
    assert "trace error" not in found


def test_samples_have_its_symbols(perf: RealPerf, home: Path, program: Path, tmp_path: Path) -> None:
    file = record(home, tmp_path / "data", "-e", "instructions:u", "-c", "100", "--", program)
    names = perf.run("script", "-i", file, "-F", "ip,sym").split()
    assert names.count("__vdso_clock_gettime") > 100


@pytest.mark.parametrize("option", ["-N", "-B"])
def test_nothing_is_kept_where_that_is_not_wanted(home: Path, program: Path, tmp_path: Path, option: str) -> None:
    record(home, tmp_path / "data", "-e", "instructions:u", option, "--", program)
    assert list(home.iterdir()) == []


def test_it_is_kept_once(home: Path, program: Path, tmp_path: Path) -> None:
    for _ in range(2):
        record(home, tmp_path / "data", "-e", "instructions:u", "--", program)
    [kept] = (home / ".debug" / "[vdso]").glob("*/vdso")
    [link] = (home / ".debug" / ".build-id").glob("*/*")
    assert link.resolve() == kept.parent
    assert kept.read_bytes()[:4] == b"\x7fELF"
    assert [each.name for each in kept.parent.iterdir()] == ["vdso"]


def test_where_it_cannot_be_kept_that_is_said(home: Path, program: Path, tmp_path: Path) -> None:
    (home / ".debug").write_text("no directory")
    command = [sys.executable, "-m", "perfemu", "record", "--core", "skylake", "-o", tmp_path / "data", "--", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**environ, "HOME": str(home)})
    assert f"perfemu: record: no vDSO is kept in {home}/.debug, and perf will take another for it: " in done.stderr
    record(home, tmp_path / "data", "--", program)  # but not with -q


def test_nothing_is_written_where_a_link_leads(home: Path, program: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (home / ".debug").symlink_to(tmp_path / "elsewhere")
    record(home, tmp_path / "data", "--", program)
    assert list((tmp_path / "elsewhere").iterdir()) == []
