"""perfemu linux: a command in Debian's own kernel, in the current directory, and its status."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import debian_kernel
import require
from end_to_end.command import ENVIRONMENT, PERFEMU
from guests import guest
from real_perf import RealPerf
from tests.end_to_end.test_board_kernels import TIMEOUT_S

RECORD = "perf record -q -e instructions:u -c 10007 ./sort"


def linux(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [PERFEMU, "linux", "--core", "ideal", "--memory", "1G", "--kernel", debian_kernel.tree(), *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, cwd=cwd, timeout=TIMEOUT_S, env=ENVIRONMENT, check=False,
    )  # fmt: skip


def test_a_shell_in_your_directory(tmp_path: Path) -> None:
    work = tmp_path / "it's here"
    work.mkdir()
    (work / "given").write_text("a file\n")
    done = linux("--", "sh", "-c", "pwd; cat given; echo made > made; echo said >&2; exit 7", cwd=work)
    assert (done.returncode, done.stderr) == (7, b"")
    assert done.stdout.decode() == f"{work}\na file\nsaid\n"
    assert (work / "made").read_text() == "made\n"


def test_perf_of_another_system_writes_here_twice_the_same(tmp_path: Path) -> None:
    root = require.debian_arm64("linux-perf")
    program = tmp_path / "sort"
    program.write_bytes(guest("sort", "aarch64").path.read_bytes())
    program.chmod(0o755)
    recorded = []
    for _ in range(2):
        (tmp_path / "perf.data").unlink(missing_ok=True)
        done = linux("--root", root, "--", *RECORD.split(), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, b"")
        recorded.append((tmp_path / "perf.data").read_bytes())
    assert recorded[0] == recorded[1]
    assert "partition" in "".join(RealPerf(tmp_path).report(tmp_path / "perf.data"))
    assert not (root / ".perfemu").exists()


def test_a_kernel_that_ends_early_is_told(tmp_path: Path) -> None:
    done = linux("--", "poweroff", "-f", cwd=tmp_path)
    assert done.returncode != 0
    assert done.stderr.decode() == "perfemu: linux: the kernel ended before the command did; --log shows why\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--kernel", "/nonexistent", "--", "true"], "/nonexistent: a kernel should be at boot/vmlinuz-*"),
        (["--bind", "/:x", "--", "true"], "the current directory is there, and --root"),
        ([], "no program to run"),
    ],
)
def test_one_line_for_what_is_wrong(arguments: list[str], says: str, tmp_path: Path) -> None:
    done = linux(*arguments, cwd=tmp_path)
    assert done.returncode != 0
    assert done.stderr.decode().count("\n") == 1
    assert says in done.stderr.decode()


def test_without_a_kernel_it_says_how_to_get_one(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([PERFEMU, "linux", "true"], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode != 0
    assert "'perfemu linux --fetch' fetches Debian's" in done.stderr
