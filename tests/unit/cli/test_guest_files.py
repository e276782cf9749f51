"""Where a guest's writes go, as the user of the command sees it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import require
from guests import DIRECTORY

SCRIPT = (
    "for i in 1 2; do echo here > inside; echo there > {elsewhere}/file; echo memory > {memory}; "
    "read line < {memory}; echo $line; done"
)


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A directory that is neither below the current one nor below /tmp, as the guest sees it."""
    with tempfile.TemporaryDirectory(prefix="perfemu-test-", dir="/var/tmp") as directory:
        yield Path(directory)


def run(script: str, cwd: Path, *options: str | Path) -> subprocess.CompletedProcess[str]:
    busybox = require.command("busybox", package="busybox-static")
    command = [
        sys.executable,
        "-m",
        "perfemu",
        "run",
        "--core",
        "ideal",
        *map(str, options),
        busybox,
        "sh",
        "-c",
        script,
    ]
    environment = {"PYTHONPATH": str(DIRECTORY.parent)}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def test_writes_go_below_the_current_directory_or_into_memory_or_nowhere(tmp_path: Path, elsewhere: Path) -> None:
    memory = Path("/tmp/perfemu-test-guest-files")
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    done = run(SCRIPT.format(elsewhere=elsewhere, memory=memory), cwd)
    assert (cwd / "inside").read_text() == "here\n"
    assert not (elsewhere / "file").exists()
    assert not memory.exists()
    assert done.stdout == "memory\nmemory\n"
    said = [line for line in done.stderr.splitlines() if line.startswith("perfemu: ")]
    assert said == [f"perfemu: {elsewhere}/file: the guest may not write here (EROFS); --rw PATH allows it"]  # once


def test_rw_lets_the_guest_write_on_the_host(tmp_path: Path) -> None:
    """Also below /tmp, where writes would stay in memory otherwise."""
    cwd, allowed = tmp_path / "cwd", tmp_path / "allowed"
    cwd.mkdir()
    allowed.mkdir()
    assert run(f"echo there > {allowed}/file", cwd, "--rw", allowed).stderr == ""
    assert (allowed / "file").read_text() == "there\n"
