"""Two runs of a command give the same bytes: elsewhere, for another user, with another shell, on a busy host."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import require
from end_to_end.command import ENVIRONMENT, PERFEMU, perfemu
from guests import DIRECTORY, ISAS

OTHER_ENVIRONMENT = {
    "PATH": ENVIRONMENT["PATH"], "HOME": "/nonexistent", "USER": "somebody", "LOGNAME": "somebody", "LANG": "C",
    "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "1", "COLUMNS": "40", "TERM": "xterm", "FILLER": "x" * 5000,
    "PYTHONIOENCODING": "latin-1", "XDG_CACHE_HOME": "/nonexistent",
}  # fmt: skip
if str(PERFEMU).isascii():  # otherwise Python itself does not start so
    OTHER_ENVIRONMENT |= {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@dataclass(frozen=True)
class Host:
    """What may differ between two runs."""

    name: str
    cwd: str = "/"
    environment: dict[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))
    before: Callable[[], None] | None = None


def _other_limits() -> None:
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)


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
    return [
        Host("plain"),
        Host("in the program's directory", str(directory), OTHER_ENVIRONMENT),
        Host("above it", str(directory.parent), {**ENVIRONMENT, "PYTHONHASHSEED": "77"}, _other_limits),
    ]


def everywhere(
    hosts: list[Host], *arguments: str | Path, data: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command on all hosts; all that comes out must be the same."""
    results = []
    for host in hosts:
        if data is not None:
            data.unlink(missing_ok=True)
        done = perfemu(*arguments, cwd=host.cwd, environment=host.environment, before=host.before)
        results.append((done.returncode, done.stdout, done.stderr, data.read_bytes() if data is not None else b""))
    for host, result in zip(hosts[1:], results[1:], strict=True):
        for what, one, other in zip(("status", "stdout", "stderr", "perf.data"), results[0], result, strict=True):
            assert one == other, f"{what} differs {host.name}"
    assert results[0][0] == 0, results[0][2]
    return done


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


def test_a_busy_host(directory: Path, hosts: list[Host], busy: None, tmp_path: Path) -> None:
    data = tmp_path / "perf.data"
    everywhere(hosts[:2], "record", "-o", data, directory / "aarch64.elf", data=data)
    everywhere(hosts[:2], "stat", directory / "x86_64.elf")


@pytest.fixture
def busy() -> Iterator[None]:
    """Two processes that take all the CPU they can get."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for process in processes:
        process.kill()
        process.wait()


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
