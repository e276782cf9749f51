"""Images in C to the conventions of QEMU's virt: they say the same there and on our board, check for check.

What they find wrong is a line that begins with FAIL, and the number of those is in the exit status.
"""

from __future__ import annotations

import subprocess
import time
from functools import cache
from io import BytesIO
from pathlib import Path

import pytest

import require
from board_images import virt_image
from perfemu.board_request import BoardRequest
from perfemu.boards import BoardSession
from perfemu.guest import Guest

TIMEOUT_S = 300
ALL_PASSED = 1  # the status: (0 << 1) | 1
MOST_SECONDS = 20  # of CPU time; on an idle host it is 3


def ours(path: Path, cpus: int, core: str = "ideal", pmu: str | None = None) -> tuple[int, str]:
    output = BytesIO()
    guest = Guest((str(path),), core=core, cpus=cpus, memory="64M", stdin=-1, pmu=pmu)
    # One register that is none is tried on purpose, and told to the user.
    ending = BoardSession(guest, BoardRequest("virt", test_device=True), output, lambda line: None).run()
    return ending.exit_status, output.getvalue().decode()


@cache
def of_qemu(kind: str, cpus: int, folder: Path) -> tuple[int, str]:
    command = require.command("qemu-system-aarch64", package="qemu-system-arm")
    path = written(kind, folder)
    done = subprocess.run(
        [command, "-nodefaults", "-machine", "virt,gic-version=3", "-cpu", "cortex-a57", "-smp", str(cpus)]
        + ["-m", "64", "-display", "none", "-serial", "stdio", "-device", "virtio-serial-device"]
        + ["-device", "virtconsole,chardev=ctd", "-chardev", "testdev,id=ctd", "-kernel", path],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.decode()


def written(kind: str, folder: Path) -> Path:
    path = folder / kind
    path.write_bytes(virt_image(kind))
    return path


@pytest.mark.parametrize(("kind", "cpus"), [("flat", 1), ("flat", 4), ("elf", 1), ("elf", 2)])
def test_it_says_what_it_says_under_qemu(kind: str, cpus: int, tmp_path: Path) -> None:
    status, text = ours(written(kind, tmp_path), cpus)
    assert [line for line in text.splitlines() if line.startswith("FAIL")] == []
    assert (status, text) == of_qemu(kind, cpus, tmp_path)
    assert status == ALL_PASSED


def test_many_cpus_that_spin_come_to_an_end_soon(tmp_path: Path) -> None:
    """8 CPUs spin with YIELD, WFE, and by the clock. Here, for QEMU's host threads wait for each other for minutes."""
    start = time.process_time()
    status, text = ours(written("flat", tmp_path), 8)
    assert (status, "all passed" in text) == (ALL_PASSED, True)
    assert time.process_time() - start < MOST_SECONDS


@pytest.mark.parametrize("core", ["cortex-a55", "neoverse-n1"])
def test_whatever_the_core(core: str, tmp_path: Path) -> None:
    status, text = ours(written("flat", tmp_path), 2, core)
    assert [line for line in text.splitlines() if line.startswith("FAIL")] == []
    assert status == ALL_PASSED


@pytest.mark.parametrize("version", [0, 1, 4, 5, 7, 8, 9])
def test_whatever_the_version_of_the_pmu(version: int, tmp_path: Path) -> None:
    status, text = ours(written("flat", tmp_path), 2, pmu=f"pmuv3p{version}")
    assert [line for line in text.splitlines() if line.startswith("FAIL")] == []
    assert "PASS CHAIN: both halves wrap" in text
    assert status == ALL_PASSED
