"""Debian's unmodified arm64 kernels boot on the board virt, run busybox, and turn it off."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import debian_kernel
from debian import TRIXIE
from tests.end_to_end.command import ENVIRONMENT, PERFEMU, perfemu

TIMEOUT_S = 300  # 10 s on an idle host
SCRIPT = """
uname -r
grep -c ^processor /proc/cpuinfo
sleep 1
echo $((6 * 7)) | tr 4 5
"""


def boot(kernel: Path, folder: Path, cpus: int = 1, script: str = SCRIPT, typed: str = "") -> list[str]:
    """The console's lines. Those of the kernel begin with its time, in microseconds of the core's own cycles."""
    initrd = folder / "initrd"
    initrd.write_bytes(debian_kernel.initramfs(script))
    done = subprocess.run(
        [PERFEMU, "run", "--board", "virt", "--core", "ideal", "--memory", "512M", "--cpus", str(cpus)]
        + ["--initrd", initrd, "--append", "console=ttyAMA0", kernel],
        input=typed.encode(), capture_output=True, timeout=TIMEOUT_S, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def said(lines: list[str]) -> list[str]:
    """What is not the kernel's."""
    return [line for line in lines if not re.match(r"\[ *\d", line)]


@pytest.mark.parametrize(("release", "version"), [("", r"\d+\.\d+\.\d+-\d+-arm64"), (TRIXIE, r"6\.12\..*-arm64")])
def test_a_kernel_boots_to_user_space(release: str, version: str, tmp_path: Path) -> None:
    lines = boot(debian_kernel.kernel(release), tmp_path)
    running, cpus, answer = said(lines)
    assert re.fullmatch(version, running)
    assert (cpus, answer) == ("1", "52")
    assert re.match(r"\[ .*\] Booting Linux on physical CPU 0x0000000000 ", lines[0])
    assert re.match(r"\[ .*\] reboot: Power down", lines[-1])
    # Nothing of it is taken for an error, by the kernel or by us.
    assert not [line for line in lines if re.search("Oops|BUG|WARNING|Unable to handle", line)]


def test_four_cpus_twice_the_same_bytes(tmp_path: Path) -> None:
    kernel = debian_kernel.kernel()
    first = boot(kernel, tmp_path, cpus=4)
    assert said(first)[1:] == ["4", "52"]
    assert boot(kernel, tmp_path, cpus=4) == first


def test_a_shell_is_typed_to(tmp_path: Path) -> None:
    typed = "echo $((6 * 7)) | tr 4 5\nsleep 1\ngrep -c pl011 /proc/interrupts\nexit\n"
    lines = said(boot(debian_kernel.kernel(), tmp_path, script="exec 2>&1 < /dev/console; sh", typed=typed))
    assert "52" in lines
    assert "1" in lines
    assert [line.endswith("sleep 1") for line in lines].count(True) == 1


WHERE = "echo 0 > /proc/sys/kernel/kptr_restrict\ngrep -E ' _(stext|etext)$' /proc/kallsyms\n"
KERNEL_PERIOD = 500_009


def where_it_is(folder: Path, command_line: str) -> tuple[list[int], bytes]:
    """The first address of the kernel's code, and the one behind it, as it says itself; and a recording of its boot."""
    folder.mkdir()
    (folder / "initrd").write_bytes(debian_kernel.initramfs(WHERE))
    done = subprocess.run(
        [PERFEMU, "record", "-q", "-e", "instructions:k", "-c", str(KERNEL_PERIOD), "--board", "virt"]
        + ["--core", "ideal", "--memory", "512M", "--initrd", "initrd", "--cmdline", command_line]
        + [debian_kernel.kernel()],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, env=ENVIRONMENT, check=False, cwd=folder,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    addresses = [int(line.split()[0], 16) for line in said(done.stdout.decode().splitlines())]
    return addresses, (folder / "perf.data").read_bytes()


def test_a_kernel_moves_to_the_same_place_in_every_run(tmp_path: Path) -> None:
    """By kaslr-seed. Its symbols are found there from outside."""
    code, recorded = where_it_is(tmp_path / "first", "console=ttyAMA0")
    as_linked, _ = where_it_is(tmp_path / "linked", "console=ttyAMA0 nokaslr")
    if "KERNELS" in os.environ:
        assert where_it_is(tmp_path / "second", "console=ttyAMA0") == (code, recorded)
    assert code[0] != as_linked[0]
    assert code[1] - code[0] == as_linked[1] - as_linked[0]
    shown = perfemu("script", "-i", tmp_path / "first" / "perf.data", "-F", "ip,sym").stdout.decode()
    rows = [line.split() for line in shown.splitlines() if line]
    within = [symbol for address, symbol, *_ in rows if code[0] <= int(address, 16) < code[1]]
    assert len(within) > 0.9 * len(rows) > 900  # the rest is before it has moved, and in modules
    assert "[unknown]" not in within
