"""perfemu linux: a command in Debian's own kernel, in the current directory, and its status."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import debian_kernel
import require
from end_to_end.command import ENVIRONMENT, PERFEMU
from guests import guest
from real_perf import RealPerf
from tests.end_to_end.test_board_kernels import TIMEOUT_S

EVERYTHING = "KERNELS" in os.environ
SLOW = pytest.mark.skipif(not EVERYTHING, reason="takes half a minute: make kernels")
RECORD = "perf record -q -e instructions:u -c 10007 ./sort"


Linux = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all tests here, so that the first of them boots, and the others go on from its checkpoint."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def linux(cache: Path) -> Linux:
    def run(*arguments: str | Path, cwd: Path, typed: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [PERFEMU, "linux", "--core", "ideal", "--memory", "1G", "--kernel", debian_kernel.tree(), *arguments],
            input=typed, capture_output=True, cwd=cwd, timeout=TIMEOUT_S, check=False,
            env={**ENVIRONMENT, "XDG_CACHE_HOME": str(cache)},
        )  # fmt: skip

    return run


def kept(cache: Path) -> list[Path]:
    return sorted((cache / "perfemu/checkpoints").iterdir())


def test_a_command_does_the_same_from_a_checkpoint(linux: Linux, cache: Path, tmp_path: Path) -> None:
    """Up to each cycle that it can measure: what it prints has times and counts. A file that is not whole is made
    anew, in one line."""
    script = "cat /proc/uptime /proc/interrupts; head -c 9 /dev/hwrng | md5sum; read it; echo $it"

    def run() -> subprocess.CompletedProcess[bytes]:
        return linux("--", "sh", "-c", script, cwd=tmp_path, typed=b"typed\n")

    booted = run()
    assert (booted.returncode, booted.stderr) == (0, b"")
    assert booted.stdout.endswith(b"typed\n")
    (file,) = kept(cache)
    whole = file.stat().st_size
    os.truncate(file, whole - 1)
    again = run()
    assert (again.stdout, again.returncode) == (booted.stdout, 0)
    assert again.stderr.decode() == (
        f"perfemu: {file.parent}: a checkpoint is not used, and made anew: its RAM is not whole\n"
    )
    (anew,) = kept(cache)
    assert (anew, anew.stat().st_size) == (file, whole)
    resumed = run()
    assert (resumed.stdout, resumed.stderr, resumed.returncode) == (booted.stdout, b"", 0)


def test_a_shell_in_your_directory(linux: Linux, tmp_path: Path) -> None:
    work = tmp_path / "it's here"
    work.mkdir()
    (work / "given").write_text("a file\n")
    done = linux("--", "sh", "-c", "pwd; cat given; echo made > made; echo said >&2; exit 7", cwd=work)
    assert (done.returncode, done.stderr) == (7, b"")
    assert done.stdout.decode() == f"{work}\na file\nsaid\n"
    assert (work / "made").read_text() == "made\n"


def test_perf_of_another_system_writes_here_twice_the_same(linux: Linux, tmp_path: Path) -> None:
    root = require.debian_arm64("linux-perf")
    program = tmp_path / "sort"
    program.write_bytes(guest("sort", "aarch64").path.read_bytes())
    program.chmod(0o755)
    recorded = []
    for booting in (["--no-checkpoint"] * EVERYTHING, []):
        (tmp_path / "perf.data").unlink(missing_ok=True)
        done = linux(*booting, "--root", root, "--", *RECORD.split(), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, b"")
        recorded.append((tmp_path / "perf.data").read_bytes())
    assert recorded[0] == recorded[1]
    assert "partition" in "".join(RealPerf(tmp_path).report(tmp_path / "perf.data"))
    assert not (root / ".perfemu").exists()


OWN_INIT = """#!/bin/busybox sh
/bin/busybox cat /etc/issue
/bin/busybox sh -c 'echo > /written && echo own init is $$'
exec /bin/busybox poweroff -f
"""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A whole system: busybox, and an init that writes."""
    files = tmp_path / "files"
    for name in ("bin", "sbin", "etc", "proc", "sys", "dev"):
        (files / name).mkdir(parents=True)
    (files / "etc/issue").write_text("a system of its own\n")
    for name, data in (("bin/busybox", debian_kernel.busybox()), ("sbin/init", OWN_INIT.encode())):
        (files / name).write_bytes(data)
        (files / name).chmod(0o755)
    image = tmp_path / "disk.img"
    make = require.command("mke2fs", package="e2fsprogs")
    subprocess.run([make, "-q", "-t", "ext4", "-d", files, image, "16M"], check=True, capture_output=True)
    return image


def test_a_system_on_a_disk_has_a_command(linux: Linux, disk: Path, tmp_path: Path) -> None:
    """Without ,rw nothing of what the guest writes comes to the file."""
    before = hashlib.sha256(disk.read_bytes()).digest()
    command = linux("--disk", disk, "--", "sh", "-c", "cat /etc/issue; ls /written; pwd; exit 5", cwd=tmp_path)
    assert command.returncode == 5
    assert command.stdout.decode() == f"a system of its own\nls: /written: No such file or directory\n{tmp_path}\n"
    assert hashlib.sha256(disk.read_bytes()).digest() == before


@SLOW
def test_a_system_on_a_disk_starts_with_its_own_init(linux: Linux, disk: Path, tmp_path: Path) -> None:
    before = hashlib.sha256(disk.read_bytes()).digest()
    own = linux("--disk", disk, cwd=tmp_path)
    assert (own.returncode, own.stderr) == (0, b"")
    lines = own.stdout.decode().splitlines()
    assert lines[lines.index("a system of its own") + 1].startswith("own init is ")
    assert "reboot: Power down" in lines[-1]
    assert hashlib.sha256(disk.read_bytes()).digest() == before


def test_a_kernel_that_ends_early_is_told(linux: Linux, tmp_path: Path) -> None:
    done = linux("--", "poweroff", "-f", cwd=tmp_path)
    assert done.returncode != 0
    assert done.stderr.decode() == "perfemu: linux: the kernel ended before the command did; --log shows why\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--kernel", "/nonexistent", "--", "true"], "/nonexistent: a kernel should be at boot/vmlinuz-*"),
        (["--bind", "/:x", "--", "true"], "the current directory is there, and --root"),
        ([], "no program to run"),
        (["--disk", "/nonexistent"], "--disk /nonexistent: "),
        (["--disk", "a", "--root", "b", "true"], "each is the command's root"),
    ],
)
def test_one_line_for_what_is_wrong(arguments: list[str], says: str, linux: Linux, tmp_path: Path) -> None:
    done = linux(*arguments, cwd=tmp_path)
    assert done.returncode != 0
    assert done.stderr.decode().count("\n") == 1
    assert says in done.stderr.decode()


def test_without_a_kernel_it_says_how_to_get_one(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([PERFEMU, "linux", "true"], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode != 0
    assert "'perfemu linux --fetch' fetches Debian's" in done.stderr
