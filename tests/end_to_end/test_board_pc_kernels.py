"""Debian's unmodified amd64 kernels boot on the board pc, run busybox, and turn it off."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import debian_kernel
from debian import TRIXIE
from tests.end_to_end.command import ENVIRONMENT, PERFEMU
from tests.end_to_end.test_board_kernels import SCRIPT, said

TIMEOUT_S = 300


def boot(kernel: Path, folder: Path, cpus: int = 1, script: str = SCRIPT, typed: str = "") -> list[str]:
    """The console's lines. Those of the kernel begin with its time."""
    initrd = folder / "initrd"
    initrd.write_bytes(debian_kernel.initramfs(script, architecture="amd64"))
    done = subprocess.run(
        [PERFEMU, "run", "--board", "pc", "--core", "ideal", "--memory", "512M", "--cpus", str(cpus)]
        + ["--initrd", initrd, "--append", "console=ttyS0", kernel],
        input=typed.encode(), capture_output=True, timeout=TIMEOUT_S, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def test_a_kernel_boots_to_user_space(tmp_path: Path) -> None:
    lines = boot(debian_kernel.kernel("", "amd64"), tmp_path)
    running, cpus, answer = said(lines)
    assert re.fullmatch(r"\d+\.\d+\.\d+-\d+-amd64", running)
    assert (cpus, answer) == ("1", "52")
    assert re.search("reboot: Power down", lines[-1])
    assert not [line for line in lines if re.search("Oops|BUG|WARNING", line)]


@pytest.mark.skipif("KERNELS" not in os.environ, reason="takes a minute: make kernels")
def test_trixies_kernel_twice_to_the_same_bytes(tmp_path: Path) -> None:
    kernel = debian_kernel.kernel(TRIXIE, "amd64")
    first = boot(kernel, tmp_path)
    running, cpus, answer = said(first)
    assert re.fullmatch(r"6\.12\..*-amd64", running)
    assert (cpus, answer) == ("1", "52")
    assert boot(kernel, tmp_path) == first
