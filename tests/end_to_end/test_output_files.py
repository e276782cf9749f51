"""Where commands write: whole or not at all, never what was not theirs, whatever the guest does to the directory."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import threading
from pathlib import Path

import pytest

import require
from end_to_end.assembled import SPIN, program
from end_to_end.command import complaint, perfemu, start
from guests import DIRECTORY
from perfcore.perfdata.reader import open_perf_data

GOOD = str(DIRECTORY / "loop_1k" / "x86_64.elf")
LOOP_SAMPLES = 20  # 2004 instructions (expected.toml), -c 100
WRITERS = {  # a command, the name it writes, and how what it writes begins
    "record": (("record", "-q", "-e", "instructions", "-c", "100", "-o", "out"), b"PERFILE2"),
    "stat": (("stat", "-e", "instructions", "-o", "out"), b"\n Performance counter stats"),
    "stat --append": (("stat", "-e", "instructions", "--append", "-o", "out"), b"\n Performance counter stats"),
    "trace": (("trace", "-o", "out"), b""),
}
FULL, NULL = os.makedev(1, 7), os.makedev(1, 3)  # Linux's /dev/full and /dev/null, as nodes of our own

writers = pytest.mark.parametrize("command", WRITERS)
kinds = pytest.mark.parametrize("command", ["record", "stat", "stat --append"])  # trace writes as stat does


def arguments(command: str) -> tuple[str, ...]:
    return WRITERS[command][0]


def guest(command: str, script: str, directory: Path) -> subprocess.CompletedProcess[bytes]:
    """`command` with a shell as its guest, which does `script` in the directory of the output."""
    busybox = require.command("busybox", package="busybox-static")
    done = perfemu(*arguments(command), busybox, "sh", "-c", script, cwd=directory)
    assert done.returncode == 0, done.stderr
    return done


def is_whole(command: str, path: Path) -> bool:
    assert path.read_bytes().startswith(WRITERS[command][1])
    if command != "record":
        return b"execve" in path.read_bytes() or b"instructions:u" in path.read_bytes()
    with open_perf_data(str(path)) as file:
        return bool(file.features.events) and sum(record.type == 9 for record in file.records()) >= LOOP_SAMPLES


def node(path: Path, device: int) -> Path:
    """A device of our own: never the machine's, which root could lose. Users who may make none have less to lose."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, device)
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        os.mkfifo(path)  # is no file of the command's either
    return path


@writers
def test_a_program_that_cannot_start_costs_no_file(command: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(Path(GOOD).read_bytes()[:100])
    broken.chmod(0o755)
    (tmp_path / "out").write_bytes(b"precious")
    complaint(perfemu(*arguments(command), broken, cwd=tmp_path))
    assert (tmp_path / "out").read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "out"]


@writers
def test_devices_are_written_through(command: str, tmp_path: Path) -> None:
    for script in (GOOD, "/no/such/program"):
        path = node(tmp_path / "out", NULL)
        if not path.is_fifo():
            perfemu(*arguments(command), script, cwd=tmp_path)
            assert stat.S_ISCHR(path.stat().st_mode)
            assert path.stat().st_rdev == NULL
        path.unlink()
    path = node(tmp_path / "out", FULL)
    if not path.is_fifo():
        done = perfemu(*arguments(command), GOOD, cwd=tmp_path)
        assert complaint(done) == "cannot write out: No space left on device"
        assert done.returncode == 1
        assert path.stat().st_rdev == FULL
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@writers
def test_fifos_are_written_through(command: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "out")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "out").read_bytes()), daemon=True)
    reader.start()
    done = perfemu(*arguments(command), GOOD, cwd=tmp_path)
    reader.join(10)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").is_fifo()
    copy = tmp_path / "copy"
    copy.write_bytes(read[0])
    if command == "record":  # perf's pipe format, which has no table of features
        assert read[0][8:16] == (16).to_bytes(8, "little")
        with open_perf_data(str(copy)) as file:
            assert sum(record.type == 9 for record in file.records()) == LOOP_SAMPLES
    else:
        assert is_whole(command, copy)


def test_a_fifo_has_each_line_at_once(tmp_path: Path) -> None:
    """Before the guest ends: it waits for its input."""
    busybox = require.command("busybox", package="busybox-static")
    os.mkfifo(tmp_path / "out")
    process = start(["trace", "-o", "out", busybox, "cat"], tmp_path)
    with open(tmp_path / "out", "rb") as fifo:
        assert b"execve" in fifo.readline()
        process.communicate(b"", timeout=300)
        assert b"exited with 0" in fifo.read()
    assert process.returncode == 0


def test_dev_stdout_is_followed(tmp_path: Path) -> None:
    assert b"2,004" in perfemu("stat", "-e", "instructions", "-o", "/dev/stdout", GOOD, cwd=tmp_path).stdout
    assert perfemu("record", "-q", "-o", "/dev/stdout", GOOD, cwd=tmp_path).stdout[:8] == b"PERFILE2"


@kinds
def test_a_link_that_a_guest_has_left_is_replaced(command: str, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    for target in ("../precious", "../not-there"):
        (tmp_path / "work" / "out").symlink_to(target)
        assert perfemu(*arguments(command), GOOD, cwd=tmp_path / "work").returncode == 0
        assert not (tmp_path / "work" / "out").is_symlink()
        assert is_whole(command, tmp_path / "work" / "out")
        (tmp_path / "work" / "out").unlink()
    assert precious.read_bytes() == b"precious"
    assert not (tmp_path / "not-there").exists()


def test_a_directory_that_a_guest_has_exchanged_for_a_link(tmp_path: Path) -> None:
    """Out of the current directory none is followed; inside, and where the user says so, links are links."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    for directory in (work, outside, work / "real", work / "real" / "deep"):
        directory.mkdir()
    for name, target in (("up", "../outside"), ("away", str(outside)), ("own", "real/deep"), ("round", "round")):
        (work / name).symlink_to(target)
    for path in ("up/out", "away/out", f"{work}/away/out", "./up/out", "round/out"):
        for command in ("record", "stat", "trace") if path == "up/out" else ("record",):
            said = complaint(perfemu(command, "-o", path, GOOD, cwd=work))
            name = "round" if "round" in path else "up" if "up" in path else "away"
            why = f"{name} is a symbolic link out of the current directory: name where it leads"
            assert said == f"cannot write {path}: {why}"
    assert list(outside.iterdir()) == []
    assert (
        perfemu("record", "-q", "-o", f"{work}/away/out"[1:], GOOD, cwd="/").returncode == 0
    )  # nothing is outside of /
    (outside / "out").unlink()
    for path, found in (("own/out", work / "real" / "deep"), ("../outside/out", outside), (f"{outside}/out", outside)):
        assert perfemu("record", "-q", "-o", path, GOOD, cwd=work).returncode == 0
        assert (found / "out").read_bytes().startswith(b"PERFILE2")
        (found / "out").unlink()


SPOILS = {
    "unlinks": "rm -f out out.*",
    "scribbles": "for name in out out.new; do echo scribble > $name; done",
    "links": "rm -f out; ln -s ../precious out; ln -s ../precious out.old; ln -s ../precious out.new",
    "makes a FIFO": "rm -f out; mknod out p",
    "renames": "mv out elsewhere || true",
}


@kinds
@pytest.mark.parametrize("name", SPOILS)
def test_what_a_guest_does_to_the_name_costs_nothing(command: str, name: str, tmp_path: Path) -> None:
    work, precious = tmp_path / "work", tmp_path / "precious"
    work.mkdir()
    precious.write_bytes(b"precious")
    guest(command, SPOILS[name], work)
    assert is_whole(command, work / "out")
    assert not (work / "out").is_symlink()
    assert precious.read_bytes() == b"precious"


@kinds
def test_a_directory_at_the_name_is_left_alone(command: str, tmp_path: Path) -> None:
    done = guest(command, "mkdir out out.old out.new", tmp_path)
    assert (tmp_path / "out").is_dir()
    assert is_whole(command, tmp_path / "out.new1")
    assert b"perfemu: out could not be replaced; what was written is out.new1\n" in done.stderr


@kinds
def test_a_directory_that_moves_or_goes(command: str, tmp_path: Path) -> None:
    for script, found in (
        ("mv sub moved", "moved/out"),
        ("rmdir sub", "out.new"),
        ("rmdir sub; ln -s . sub", "out.new1"),
    ):
        (tmp_path / "sub").mkdir()
        busybox = require.command("busybox", package="busybox-static")
        done = perfemu(*arguments(command)[:-1], "sub/out", busybox, "sh", "-c", script, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert is_whole(command, tmp_path / found), done.stderr
        assert f"what was written is {tmp_path.resolve()}/{found}\n".encode() in done.stderr


def test_the_guest_does_not_see_it(tmp_path: Path) -> None:
    """Watching changes nothing: not the directory either."""
    for command in WRITERS:
        assert guest(command, "ls -la; stat -c %h:%s .", tmp_path).stdout.count(b"out") == 0
        (tmp_path / "out").unlink()


def test_appending(tmp_path: Path) -> None:
    for _ in range(2):
        assert perfemu(*arguments("stat --append"), GOOD, cwd=tmp_path).returncode == 0
    assert (tmp_path / "out").read_bytes().count(b"2,004") == 2


def test_what_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    for command in ("stat", "trace"):
        (tmp_path / "out").touch(0o640)
        (tmp_path / "out").chmod(0o640)
        guest(command, "true", tmp_path)
        assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def at_most(size: int) -> None:
    """No file larger than this: a write gives EFBIG, as a full disk ENOSPC. (Python ignores SIGXFSZ.)"""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_disk_that_gets_full_leaves_what_is_readable(tmp_path: Path) -> None:
    """Of 4 MiB of samples 2 MiB fit: what was written is read by report; of 1 KiB nothing is left."""
    spin = program(tmp_path / "spin", "x86_64", SPIN["x86_64"])
    command = ("record", "-e", "instructions", "-c", "10", "--max-instructions", "1000000", "-o", "out", spin)
    (tmp_path / "out").write_bytes(b"old")
    for limit, old in ((1 << 10, "out"), (2 << 20, "out.old")):
        done = perfemu(*command, cwd=tmp_path, before=lambda size=limit: at_most(size))
        assert done.returncode == 1
        kept = "" if old == "out" else "; what was recorded before is in it"
        assert complaint(done) == f"cannot write out: File too large{kept}"
        assert (tmp_path / old).read_bytes() == b"old"
    assert (1 << 20) <= (tmp_path / "out").stat().st_size <= (2 << 20)
    done = perfemu("report", "-i", "out", cwd=tmp_path)
    assert done.returncode == 0
    assert b"100.00%" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.old", "spin"]


@pytest.mark.parametrize("command", ["stat", "stat --append", "trace"])
def test_text_that_does_not_fit_leaves_no_file(command: str, tmp_path: Path) -> None:
    done = perfemu(*arguments(command), GOOD, cwd=tmp_path, before=lambda: at_most(16))
    assert complaint(done) == "cannot write out: File too large"
    assert list(tmp_path.iterdir()) == []
