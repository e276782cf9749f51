"""Images in C for PCs: they say the same on QEMU's PC and on our board, check for check, and end with the same status.

What they find wrong is a line that begins with FAIL, and the number of those is in the exit status.
"""

from __future__ import annotations

import subprocess
import time
from io import BytesIO
from pathlib import Path

import pytest

import require
from board_images import pc_image
from perfemu.board_request import BoardRequest
from perfemu.boards import BoardSession
from perfemu.guest import Guest

TIMEOUT_S = 300
ALL_PASSED = 1  # the status: (0 << 1) | 1
MOST_SECONDS = 20  # of CPU time; on an idle host it is 2


def ours(
    path: Path, cpus: int, command_line: str, core: str = "ideal", pmu: str | None = None, *, faults: bool = False
) -> tuple[int, str]:
    """`faults`: it writes what MSRs refuse, of which the user is told."""
    output, said = BytesIO(), list[str]()
    guest = Guest((str(path),), core=core, cpus=cpus, memory="128M", stdin=-1, pmu=pmu)
    ending = BoardSession(guest, BoardRequest("pc", command_line=command_line), output, said.append).run()
    assert [line for line in said if not (faults and "#GP" in line)] == []
    return ending.exit_status, output.getvalue().decode()


def of_qemu(path: Path, cpus: int, command_line: str) -> tuple[int, str]:
    command = require.command("qemu-system-x86_64", package="qemu-system-x86")
    done = subprocess.run(
        [command, "-nodefaults", "-cpu", "max", "-smp", str(cpus), "-m", "128", "-display", "none", "-no-reboot"]
        + ["-serial", "stdio", "-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-append", command_line]
        + ["-kernel", path],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.decode()


def written(bits: int, folder: Path) -> Path:
    path = folder / "image"
    path.write_bytes(pc_image(bits))
    return path


@pytest.mark.parametrize(("bits", "cpus"), [(64, 1), (64, 4), (32, 1), (32, 2)])
def test_it_says_what_it_says_under_qemu(bits: int, cpus: int, tmp_path: Path) -> None:
    path = written(bits, tmp_path)
    status, text = ours(path, cpus, "image")
    assert [line for line in text.splitlines() if line.startswith("FAIL")] == []
    assert (status, text) == of_qemu(path, cpus, "image")
    assert status == ALL_PASSED


@pytest.mark.parametrize("bits", [64, 32])
def test_what_is_not_offered_is_not_there(bits: int, tmp_path: Path) -> None:
    """What QEMU 7.2 has otherwise than the manual: guest_programs/pc_images/features.c."""
    status, text = ours(written(bits, tmp_path), 1, "reserved")
    assert [line for line in text.splitlines() if line.startswith("FAIL")] == []
    assert (status, "PASS RDSEED" in text) == (ALL_PASSED, True)


def test_many_cpus_that_spin_come_to_an_end_soon(tmp_path: Path) -> None:
    start = time.process_time()
    status, text = ours(written(64, tmp_path), 8, "image")
    assert (status, "all passed" in text) == (ALL_PASSED, True)
    assert time.process_time() - start < MOST_SECONDS


@pytest.mark.parametrize("core", ["skylake", "zen5"])
def test_whatever_the_core(core: str, tmp_path: Path) -> None:
    status, text = ours(written(64, tmp_path), 2, "image", core)
    assert [line for line in text.splitlines() if line.startswith("FAIL")] == []
    assert status == ALL_PASSED


@pytest.mark.parametrize("core", ["ideal", "skylake", "redwood-cove"])
def test_perfmon_is_what_the_manual_says(core: str, tmp_path: Path) -> None:
    """QEMU has no such PMU to compare with: what is expected is derived in perfmon.c, by instruction and by bit."""
    status, text = ours(written(64, tmp_path), 1, "image perfmon", core, faults=True)
    assert [line for line in text.splitlines() if line.startswith("FAIL")] == []
    assert status == ALL_PASSED
    assert text.count("PASS bits of IA32_") == 7
    assert ("the four shares are 255" in text) == (core == "redwood-cove")


@pytest.mark.parametrize("version", [5, 6])
def test_later_versions_are_what_the_manual_says(version: int, tmp_path: Path) -> None:
    pmu = f"intel_arch_perfmon_v{version}"
    status, text = ours(written(64, tmp_path), 1, "image perfmon", pmu=pmu, faults=True)
    assert [line for line in text.splitlines() if line.startswith("FAIL")] == []
    assert status == ALL_PASSED
    assert ("PASS CPUID 23H" in text) == (version == 6)
