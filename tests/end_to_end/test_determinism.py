"""Two runs of a command give the same bytes: elsewhere, for another user, with another shell, on a busy host."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import require
from end_to_end.command import ENVIRONMENT, PERFEMU, perfemu
from end_to_end.hosts import Host, everywhere, hosts_of, idle_and_busy
from guests import DIRECTORY, ISAS


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs below /tmp, which the guest sees as its own /tmp or as its current directory."""
    made = tmp_path_factory.mktemp("programs")
    (made / "below").mkdir()
    for isa in ISAS:
        shutil.copy(DIRECTORY / "sort" / f"{isa}.elf", made / f"{isa}.elf")
    (made / "text").write_text("b\na\n" * 500)
    return made


@pytest.fixture(scope="module")
def hosts(directory: Path) -> list[Host]:
    return hosts_of(directory)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("command", ["run", "stat", "stat -x,", "stat -j", "stat -r 3 -e instructions,page-faults"])
def test_counting(command: str, isa: str, directory: Path, hosts: list[Host]) -> None:
    everywhere(hosts, *command.split(), directory / f"{isa}.elf")


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("options", ["-c 20011 -e instructions", "", "-g -e cycles,cpu-clock"])
def test_recording_and_reporting(options: str, isa: str, directory: Path, hosts: list[Host], tmp_path: Path) -> None:
    data = tmp_path / "perf.data"
    everywhere(hosts, "record", "-o", data, *options.split(), directory / f"{isa}.elf", data=data)
    everywhere(hosts, "report", "--header", "-i", data)


def test_a_profile_through_a_pipe(directory: Path, hosts: list[Host]) -> None:
    done = everywhere(hosts, "record", "-g", "-c", "10007", "-o", "-", directory / "x86_64.elf")
    assert done.stdout.startswith(b"PERFILE2")


def test_listing(hosts: list[Host]) -> None:
    everywhere(hosts, "list", "--details")


def test_dynamic_programs_and_what_they_see(hosts: list[Host], directory: Path, tmp_path: Path) -> None:
    """Device and inode numbers of libraries and of files below /tmp are in the records and in what programs print."""
    data = tmp_path / "perf.data"
    for program in ("/bin/ls", "/usr/bin/sort", "/usr/bin/stat"):
        if not os.path.exists(program):
            require.missing(f"package coreutils is not installed ({program} not found)")
    everywhere(hosts, "record", "-c", "5003", "-o", data, "/bin/ls", "-lain", directory, directory / "below", data=data)
    everywhere(hosts, "record", "-c", "5003", "-o", data, "/usr/bin/sort", directory / "text", data=data)
    text = str(directory / "text")
    everywhere(hosts, "run", "/usr/bin/stat", "--printf=%n %d %i %h %b %f %u %g %s %x %y %z\n", text, "/bin")
    everywhere(hosts, "run", "/usr/bin/stat", "-f", text, "/")


def test_a_busy_host(directory: Path, tmp_path: Path) -> None:
    hosts, data = idle_and_busy(directory), tmp_path / "perf.data"
    everywhere(hosts, "record", "-o", data, directory / "aarch64.elf", data=data)
    everywhere(hosts, "stat", directory / "x86_64.elf")


def test_how_a_pipe_delivers() -> None:
    cat = require.command("cat", package="coreutils")
    text = b"".join(b"%d\n" % number for number in range(20_000))
    whole = perfemu("stat", cat, stdin=text)
    process = subprocess.Popen(
        [PERFEMU, "stat", "--core", "ideal", cat],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", env=ENVIRONMENT,
    )  # fmt: skip
    assert process.stdin is not None
    for part in (text[:7], text[7:5000]):
        process.stdin.write(part)
        process.stdin.flush()
        time.sleep(0.3)
    out, err = process.communicate(text[5000:])
    assert out == whole.stdout == text
    assert err == whole.stderr


def test_where_the_output_goes(directory: Path, tmp_path: Path) -> None:
    """To a pipe, a file or nowhere: what is counted and recorded is the same."""
    data = tmp_path / "perf.data"
    seen = set()
    for number, target in enumerate(("pipe", tmp_path / "out", os.devnull)):
        command = [PERFEMU, "record", "-c", "1009", "-o", data, "/usr/bin/sort", directory / "text"]
        if target == "pipe":
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, cwd="/", check=True)
        else:
            with open(target, "wb") as out, open(tmp_path / "input", "w+b") as source:
                subprocess.run(command, stdin=source, stdout=out, stderr=out, cwd="/", check=True)
        if number < 2:  # a program may ask a character device whether it is a terminal
            seen.add(data.read_bytes())
    assert len(seen) == 1


def test_only_what_was_typed_differs(directory: Path, tmp_path: Path) -> None:
    """The command line is in perf.data as it was typed, and nothing else of two ways to name a program is."""
    program = directory / "aarch64.elf"
    seen = []
    for name in ("perf.data1", "perf.data2"):
        perfemu("record", "-c", "5003", "-o", tmp_path / name, program)
        seen.append((tmp_path / name).read_bytes().replace(name.encode(), b"NAME"))
    assert seen[0] == seen[1]


@pytest.mark.skipif(not str(PERFEMU).isascii(), reason="Python does not find what is installed: .pth files are text")
def test_bytes_in_another_locale(tmp_path: Path) -> None:
    """Arguments and names that are no text of the user's locale."""
    localedef = require.command("localedef", package="libc-bin")
    if not os.path.exists("/usr/share/i18n/charmaps"):
        require.missing("package locales is not installed (/usr/share/i18n not found)")
    made = subprocess.run(
        [localedef, "-i", "en_US", "-f", "ISO-8859-1", "--no-archive", tmp_path / "en_US.ISO-8859-1"],
        capture_output=True,
        check=False,
    )
    assert (tmp_path / "en_US.ISO-8859-1").exists(), made.stderr
    other = {**ENVIRONMENT, "LOCPATH": str(tmp_path), "LC_ALL": "en_US.ISO-8859-1"}
    for argument in ("ä€", os.fsdecode(b"\xe4\xff")):
        plain = perfemu("run", "/bin/echo", argument)
        assert plain.stdout == os.fsencode(argument) + b"\n"
        assert perfemu("run", "/bin/echo", argument, environment=other).stdout == plain.stdout
