"""perf's own arm64 build, under qemu-user, reads AArch64 files without a word on standard error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import require
from real_perf import RealPerf

GUEST = Path(__file__).parents[2] / "guest_programs" / "sort" / "aarch64.elf"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("arm64") / "perf.data"
    command = [
        sys.executable,
        "-m",
        "perfemu",
        "record",
        "--core",
        "ideal",
        "-q",
        "-g",
        "-e",
        "instructions",
        "-c",
        "10007",
    ]
    subprocess.run([*command, "-o", str(path), "--", str(GUEST)], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def arm64_perf() -> list[str]:
    qemu = require.command("qemu-aarch64", package="qemu-user")
    root = require.debian_arm64("linux-perf")
    return [qemu, "-L", str(root), str(root / "usr/bin/perf")]


def test_its_report_is_the_x86_builds(recording: Path, arm64_perf: list[str], tmp_path: Path) -> None:
    native = RealPerf(tmp_path)
    foreign = RealPerf(tmp_path, arm64_perf)
    for options in ((), ("--no-children",), ("--sort", "sym", "-n")):
        assert foreign.report(recording, *options) == native.report(recording, *options)


def test_it_says_nothing_on_standard_error(recording: Path, arm64_perf: list[str], tmp_path: Path) -> None:
    foreign = RealPerf(tmp_path, arm64_perf)
    assert "quicksort" in foreign.run("script", "-i", recording)
    assert foreign.run("evlist", "-i", recording) == "instructions:u\n"
    assert foreign.errors == []
