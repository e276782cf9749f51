"""perfemu linux --board pc: a command in Debian's own amd64 kernel, in the current directory, and its status."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import debian_kernel
import perfemu as perfemu_api
import require
from debian import TRIXIE
from end_to_end.command import ENVIRONMENT, PERFEMU
from guests import guest

TIMEOUT_S = 600
SLOW = pytest.mark.skipif("KERNELS" not in os.environ, reason="takes a minute: make kernels")


def linux(
    *arguments: str | Path, cwd: Path, release: str = "", typed: bytes = b"", tree: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    tree = tree or debian_kernel.tree(release, "amd64")
    return subprocess.run(
        [PERFEMU, "linux", "--memory", "512M", "--kernel", tree, *arguments],
        input=typed, capture_output=True, cwd=cwd, timeout=TIMEOUT_S, check=False,
        env={**ENVIRONMENT, "XDG_CACHE_HOME": str(cwd / "cache")},
    )  # fmt: skip


def unpacked(folder: Path) -> Path:
    """Debian's tree, with a kernel that has not to unpack itself."""
    tree = debian_kernel.tree("", "amd64")
    (folder / "boot").mkdir(parents=True)
    (folder / "boot" / debian_kernel.kernel("", "amd64").name).symlink_to(debian_kernel.vmlinux("", "amd64"))
    for name in ("bin", "lib", "usr"):
        if (tree / name).exists():
            (folder / name).symlink_to(tree / name)
    return folder


def test_a_shell_in_your_directory_does_the_same_from_a_checkpoint(tmp_path: Path) -> None:
    """What is typed is the command's, not the kernel's that boots. What it prints has times and counts."""
    work = tmp_path / "it's here"
    work.mkdir()
    (work / "given").write_text("a file\n")
    script = "uname -m; pwd; cat given /proc/uptime /proc/interrupts; head -c 9 /dev/hwrng | md5sum; read it"
    command = ["--board", "pc", "--core", "ideal", "--", "sh", "-c", f"{script}; echo $it > made; exit 3"]
    said = set()
    tree = unpacked(tmp_path / "unpacked")
    for _ in range(2):
        done = linux(*command, cwd=work, typed=b"typed\n", tree=tree)
        assert (done.returncode, done.stderr) == (3, b"")
        assert done.stdout.decode().startswith(f"x86_64\n{work}\na file\n")
        assert (work / "made").read_text() == "typed\n"
        (work / "made").unlink()
        said.add(done.stdout)
        (checkpoint,) = (work / "cache/perfemu/checkpoints").iterdir()
        said.add(str(checkpoint.stat().st_ino).encode())
    assert len(said) == 2


@SLOW
def test_a_core_that_executes_x86_64_alone_is_a_pcs(tmp_path: Path) -> None:
    machine = "--core", "zen5", "--untimed", "--cpus", "2"
    done = linux(*machine, "--", "sh", "-c", "uname -rm; nproc", cwd=tmp_path, release=TRIXIE)
    assert (done.returncode, done.stderr) == (0, b"")
    running, cpus = done.stdout.decode().splitlines()
    assert running.startswith("6.12.")
    assert running.endswith("-amd64 x86_64")
    assert cpus == "2"


@SLOW
def test_perf_of_another_system_counts_as_the_modelled_linux_does(tmp_path: Path) -> None:
    root = require.debian_tree("amd64", "linux-perf")
    program = tmp_path / "sort"
    program.write_bytes(guest("sort", "x86_64").path.read_bytes())
    program.chmod(0o755)
    stat = ["perf", "stat", "-x,", "-o", "counts", "-e", "instructions:u", "./sort"]
    done = linux("--board", "pc", "--core", "ideal", "--root", root, "--", *stat, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    (row,) = [line for line in (tmp_path / "counts").read_text().splitlines() if "instructions" in line]
    ours = perfemu_api.stat(perfemu_api.Guest([program], core="ideal"), ["instructions:u"])
    assert int(row.split(",")[0]) == ours["instructions:u"]


@SLOW
def test_a_root_on_a_disk(tmp_path: Path) -> None:
    files, image = tmp_path / "files", tmp_path / "disk.img"
    (files / "etc").mkdir(parents=True)
    (files / "etc/issue").write_text("a system of its own\n")
    make = require.command("mke2fs", package="e2fsprogs")
    subprocess.run([make, "-q", "-t", "ext4", "-d", files, image, "16M"], check=True, capture_output=True)
    command: list[str | Path] = ["--disk", image, "--", "sh", "-c", "/.perfemu/busybox cat /etc/issue; exit 5"]
    done = linux("--board", "pc", "--core", "ideal", *command, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (5, b"a system of its own\n", b"")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--board", "mainframe", "true"], "linux --board mainframe: there is virt, pc"),
        (["--board", "pc", "true"], "'perfemu linux --board pc --fetch' fetches Debian's"),
        (["--core", "zen5", "true"], "'perfemu linux --board pc --fetch' fetches Debian's"),
        (["--board", "virt", "true"], "'perfemu linux --fetch' fetches Debian's"),
    ],
)
def test_one_line_for_what_is_wrong(arguments: list[str], says: str, tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "XDG_CACHE_HOME": str(tmp_path)}
    command = [PERFEMU, "linux", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode != 0
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
