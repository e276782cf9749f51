"""--bind and --isolate as their user gives them: a Debian system at the root, one's own directory beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import require
from debian import ARCHITECTURES
from end_to_end.assembled import exits, program
from end_to_end.command import complaint, perfemu

SCRIPT = "pwd; cat input; echo new > output; ls /etc/passwd; ls -d /tmp/*; echo x > /etc/new"


@pytest.mark.parametrize("isa", ARCHITECTURES)
def test_a_debian_system_at_the_root(isa: str, tmp_path: Path) -> None:
    root = require.debian_tree(ARCHITECTURES[isa], "bash", "coreutils")
    (tmp_path / "input").write_text("mine\n")
    binds = ("--bind", f"{root}:/", "--bind", f"{tmp_path}:/work:rw")
    done = perfemu("run", *binds, "--", "bash", "-c", SCRIPT, cwd=tmp_path)
    assert done.stdout.decode().splitlines() == ["/work", "mine"]
    errors = done.stderr.decode()
    assert "/etc/passwd': No such file" in errors  # the host has one; this system is unpacked, and not configured
    assert "/tmp/*': No such file" in errors
    assert "/etc/new: the guest may not write here (EROFS); --bind HOST:GUEST:rw allows it" in errors
    assert (tmp_path / "output").read_text() == "new\n"


@pytest.mark.parametrize("command", ["run", "stat", "trace"])
def test_every_command_takes_them(command: str, tmp_path: Path) -> None:
    program(tmp_path / "seven", "x86_64", exits("x86_64", 7))
    assert perfemu(command, "--isolate", "--bind", f"{tmp_path}:/bin", "--", "seven").returncode == 7
    assert perfemu(command, "--bind", f"{tmp_path}:/opt/mine", "--", "/opt/mine/seven").returncode == 7
    assert perfemu(command, "--isolate", "--bind", str(tmp_path), "--", "./seven", cwd=tmp_path).returncode == 7


def test_build_ids_are_of_the_files_that_the_guest_had(tmp_path: Path) -> None:
    root = require.debian_tree("arm64", "bash", "coreutils")
    record = ("record", "-e", "instructions", "-c", "100000", "-o", tmp_path / "data")
    assert perfemu(*record, "--bind", f"{root}:/", "--", "bash", "-c", ":", cwd=tmp_path).returncode == 0
    shown = perfemu("report", "--stdio", "-g", "none", "--symfs", root, "-i", tmp_path / "data")
    assert b"bash" in shown.stdout
    assert b"ld-linux-aarch64.so.1" in shown.stdout
    assert b"build id" not in shown.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--bind", "/nowhere:/x"), "--bind /nowhere:/x: /nowhere: no such file or directory"),
        (("--bind", "/usr:x"), "--bind /usr:x: /usr:x: no such file or directory; HOST:GUEST wants GUEST to"),
        (("--bind", "/proc:/x"), "--bind /proc:/x: /proc is the host's kernel, not a file"),
        (("--bind", "/dev/null:/x"), "--bind /dev/null:/x: /dev/null is neither a file nor a directory"),
        (("--bind", "/usr:/proc/x"), "--bind /usr:/proc/x: /proc/x is the machine's own"),
        (("--bind", "/usr:/x/../y"), "--bind /usr:/x/../y: /x/../y goes up: name the path without .."),
        (("--bind", "/etc/passwd:/"), "--bind /etc/passwd:/: /etc/passwd is not a directory: it cannot be the root"),
        (("--bind", "/usr:/x", "--bind", "/etc:/x"), "--bind /etc:/x: /x is bound twice"),
        (("--bind", "/etc/passwd:/f", "--bind", "/usr:/f/g"), "--bind: /f is not a directory"),
        (("--isolate", "--rw", "/tmp"), "--rw /tmp: only what is bound is there; --bind /tmp:rw"),
        (("--isolate", "--sysroot", "/usr"), "--sysroot /usr: only what is bound is there; --bind /usr:/ makes"),
        (("--isolate",), "ls: not found in /usr/local/bin:/usr/bin:/bin (where --bind and --isolate leave something)"),
    ],
)  # fmt: skip
def test_what_cannot_be_bound_is_one_line(options: Sequence[str], message: str, tmp_path: Path) -> None:
    program(tmp_path / "true", "x86_64", exits("x86_64", 0))
    guest = "ls" if options == ("--isolate",) else "/y/true"
    done = perfemu("run", *options, *(() if guest == "ls" else ("--bind", f"{tmp_path}/true:/y/true")), "--", guest)
    assert complaint(done).startswith(message)
    assert done.returncode != 0
