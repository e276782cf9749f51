"""What is wrong gets one clear line and the right exit status; nothing is left behind."""

from __future__ import annotations

import io
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import require
from end_to_end.assembled import CRASHES, exits, kills_itself, program
from end_to_end.command import ENVIRONMENT, PERFEMU, complaint, perfemu
from guests import DIRECTORY, ISAS
from perfemu.cli.main import main

GOOD = str(DIRECTORY / "loop_1k" / "x86_64.elf")
TRUE = Path("/bin/true")


def patched(position: int, new: bytes) -> bytes:
    data = bytearray(Path(GOOD).read_bytes())
    data[position : position + len(new)] = new
    return bytes(data)


MACHINE_AT, CLASS_AT = 18, 4  # e_machine, e_ident[EI_CLASS]
FILES = {
    "empty": (b"", 126, "empty: an empty file"),
    "text": (b"hello\n", 126, "text: not an ELF executable, nor a script that begins with #!"),
    "elf32": (patched(CLASS_AT, b"\1"), 126, "elf32: a 32-bit ELF file"),
    "riscv": (patched(MACHINE_AT, b"\xf3\0"), 126, "riscv: an ELF file for RISC-V; AArch64 and x86-64 are modelled"),
    "s390": (patched(MACHINE_AT, b"\x16\0"), 126, "s390: an ELF file for s390x; AArch64 and x86-64 are modelled"),
    "big": (patched(5, b"\2"), 126, "big: a big-endian ELF file"),
    "object": (patched(16, b"\1"), 126, "object: an ELF file, but a relocatable object"),
    "script": (b"#!/no/such/interpreter -x\n", 127, "script: its interpreter /no/such/interpreter: no such file"),
    "to-directory": (b"#!/tmp\n", 126, "to-directory: its interpreter /tmp: is a directory"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_no_programs(name: str, tmp_path: Path) -> None:
    data, status, text = FILES[name]
    (tmp_path / name).write_bytes(data)
    (tmp_path / name).chmod(0o755)
    for command in (["run"], ["record", "-o", "out.data"]):
        done = perfemu(*command, f"./{name}", cwd=tmp_path)
        assert complaint(done).startswith(f"./{text}")
        assert done.returncode == status
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o755)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "plain").write_bytes(Path(GOOD).read_bytes())
    cases = {
        "./fifo": (126, "./fifo: not a regular file"),
        "/tmp": (126, "/tmp: is a directory"),
        "./loop": (126, "./loop: too many levels of symbolic links"),
        "./plain": (126, "./plain: permission denied (chmod +x makes it executable)"),
        "./plain/below": (126, "./plain/below: not a directory"),
        "./none": (127, "./none: no such file"),
        "no-such-program": (127, "no-such-program: not found in /usr/local/bin:/usr/bin:/bin"),
        "": (127, "the program's name is empty"),
    }
    for name, (status, text) in cases.items():
        done = perfemu("stat", name, cwd=tmp_path)
        assert (complaint(done), done.returncode) == (text, status)


def test_a_script_of_scripts(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!{script}\n")
    script.chmod(0o755)
    done = perfemu("run", script)
    assert complaint(done).endswith("a script again: more than 5 levels of them")
    assert done.returncode == 126


def test_missing_loader_and_library(tmp_path: Path) -> None:
    data = TRUE.read_bytes()
    loader, library = tmp_path / "loader", tmp_path / "library"
    loader.write_bytes(data.replace(b"/lib64/ld-linux", b"/nolib/ld-linux").replace(b"/lib/ld-linux", b"/nol/ld-linux"))
    library.write_bytes(data.replace(b"libc.so.6\0", b"libX.so.6\0"))
    for path in (loader, library):
        path.chmod(0o755)
    done = perfemu("run", loader)
    assert complaint(done).startswith(f"{loader}: its dynamic loader cannot be opened: /nol")
    assert done.returncode == 127
    done = perfemu("run", library)
    assert b"error while loading shared libraries: libX.so.6" in done.stderr
    assert done.returncode == 127


def in_process(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Status and stderr of a command that is run here, for speed."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the command itself writes the bytes
    status = main(arguments)
    return status, capsys.readouterr().err


@pytest.mark.parametrize("isa", ISAS)
def test_truncated_programs(isa: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At every length the program runs (it needs no section headers), crashes as it would in Linux, or is refused."""
    whole = (DIRECTORY / "loop_1k" / f"{isa}.elf").read_bytes()
    path = tmp_path / "cut"
    refused = 0
    for length in [*range(0, 400, 7), *range(400, len(whole), 211)]:
        path.write_bytes(whole[:length])
        path.chmod(0o755)
        status, err = in_process(capsys, "run", str(path))
        assert "internal error" not in err, (length, err)
        assert status in (0, 126, 128 + signal.SIGSEGV, 128 + signal.SIGBUS, 128 + signal.SIGILL), (length, err)
        if status == 126:
            refused += 1
            assert err.startswith(f"perfemu: {path}: "), err
            assert err.count("\n") == 1, err
    assert refused > 9


USAGE = [
    ("stat -e instrctions PROGRAM", "unknown event 'instrctions', did you mean instructions"),
    ("stat -e rZZ PROGRAM", "unknown event 'rZZ'"),
    ("stat -e {cycles PROGRAM", "'{' without '}'"),
    ("stat -e cycles:q PROGRAM", "unknown modifier 'q'"),
    ("stat --core m1 PROGRAM", "--core m1: no such core; there is "),
    ("stat --sysroot /nonexistent PROGRAM", "--sysroot /nonexistent: no such directory"),
    ("stat --bogus PROGRAM", "unknown option '--bogus'"),
    ("stats PROGRAM", "'stats' is not a perfemu-command. Did you mean stat"),
    ("stat", "no program to run"),
    ("stat -r 0 PROGRAM", "0 is not within 1.."),
    ("stat --log-fd 99 PROGRAM", "--log-fd 99: Bad file descriptor"),
    ("stat --log-fd -3 PROGRAM", "--log-fd -3: a descriptor is 0 or more"),
    ("record -c 0 PROGRAM", "-c/--count: 0 is not within 1.."),
    ("record -c -1 PROGRAM", "-1 is not within 1.."),
    ("record -c 9223372036854775808 PROGRAM", "9223372036854775808 is not within 1..9223372036854775807"),
    ("record -c many PROGRAM", "'many' is not a number"),
    ("record -F 0 PROGRAM", "0 is not within 1.."),
    ("record -F often PROGRAM", "'often' is not a number"),
    ("record -c 5 -F 5 PROGRAM", "-c and -F exclude each other"),
    ("report -s nothing", "unknown sort key 'nothing'; known are comm"),
    ("report --format nothing", "unknown format 'nothing'; known are"),
    ("run --env NOT_SET_ANYWHERE PROGRAM", "--env NOT_SET_ANYWHERE: not set in your environment"),
    ("run --rw /nonexistent PROGRAM", "--rw /nonexistent: no such file or directory"),
]


@pytest.mark.parametrize(("command", "text"), USAGE)
def test_wrong_commands(command: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, err = in_process(capsys, *(GOOD if word == "PROGRAM" else word for word in command.split()))
    assert err.startswith("perfemu: "), err
    assert text in err
    assert err.count("\n") == 1, err
    assert status == 129


def test_a_descriptor_that_is_open_for_reading_gets_no_counts(tmp_path: Path) -> None:
    done = shell(f"{PERFEMU} stat --log-fd 3 {GOOD} 3< /dev/null", tmp_path)
    assert (done.returncode, done.stderr) == (129, b"perfemu: stat --log-fd 3: Bad file descriptor\n")


def test_outputs_that_cannot_be_written(tmp_path: Path) -> None:
    for command in ("record", "stat"):
        for target, reason in (
            (str(tmp_path), "Is a directory"),
            ("/nonexistent/file", "No such file or directory"),
            ("", "No such file or directory"),
            ("sub/", "Is a directory"),
        ):
            done = perfemu(command, "-o", target, GOOD, cwd=tmp_path)
            assert complaint(done) == f"cannot write {target}: {reason}"
            assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []


def shell(text: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """A command line of bash, for which `perfemu` is in the PATH and $GOOD is a program."""
    environment = {"PATH": f"{PERFEMU.parent}:{ENVIRONMENT['PATH']}", "GOOD": GOOD}
    return subprocess.run(["bash", "-c", text], capture_output=True, cwd=cwd, env=environment, timeout=300, check=False)


def test_closed_and_full_streams(tmp_path: Path) -> None:
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        for command in ("run", "stat", "record -o file"):
            done = shell(f'perfemu {command} "$GOOD" {closed}', tmp_path)
            assert done.returncode == 0, (command, closed, done.stderr)
            assert b"error" not in done.stderr
    assert shell("perfemu report -i file >&-", tmp_path).returncode == 0
    for command in ("report -i file", "list"):
        done = shell(f"perfemu {command} > /dev/full", tmp_path)
        assert complaint(done) == "cannot write: No space left on device"
        assert done.returncode == 1
    done = shell('perfemu run "$GOOD" 2>/dev/full && perfemu record -o file "$GOOD" 2>/dev/full', tmp_path)
    assert done.returncode == 0


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    done = shell('perfemu stat -r 2 "$GOOD" 2>&1 | head -1; echo ${PIPESTATUS[0]}', tmp_path)
    assert done.stderr == b""
    assert done.stdout.split()[-1] in (b"0", b"141")
    done = shell("perfemu list | head -1; echo ${PIPESTATUS[0]}", tmp_path)
    assert done.stdout.split() in ([b"0"], [b"141"])  # 0 where all of it fitted into the pipe
    assert done.stderr == b""


@pytest.mark.parametrize("isa", ISAS)
def test_crashes(isa: str, tmp_path: Path) -> None:
    """As the shell would say; counts are printed and files are complete."""
    for name, code in CRASHES[isa].items():
        number = signal.Signals[name]
        path = program(tmp_path / name, isa, code)
        text = f"{path}: {signal.strsignal(number)}\n".encode()
        done = perfemu("run", path)
        *explained, last = done.stderr.splitlines(keepends=True)
        assert (done.returncode, last, done.stdout) == (128 + number, text, b""), name
        assert len(explained) == (name == "SIGILL"), name  # test_undefined_instructions.py
        done = perfemu("stat", "-e", "instructions", path)
        assert done.returncode == 128 + number
        assert text in done.stderr
        assert b"instructions:u" in done.stderr
        data = tmp_path / "data"
        done = perfemu("record", "-o", data, path)
        assert done.returncode == 128 + number
        assert text in done.stderr
        assert perfemu("report", "-i", data).returncode == 0


@pytest.mark.parametrize("isa", ISAS)
def test_signals_to_itself(isa: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (signal.SIGABRT, signal.SIGBUS, signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE, signal.SIGINT):
        path = program(tmp_path / "kills", isa, kills_itself(isa, number))
        status, err = in_process(capsys, "run", str(path))
        assert status == 128 + number
        quiet = number in (signal.SIGPIPE, signal.SIGINT)
        assert err == ("" if quiet else f"{path}: {signal.strsignal(number)}\n")


@pytest.mark.parametrize("isa", ISAS)
def test_exit_statuses(isa: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for status in range(0, 256, 5):
        path = program(tmp_path / "exits", isa, exits(isa, status))
        assert in_process(capsys, "run", str(path)) == (status, "")
    assert perfemu("stat", path).returncode == 255


def test_exceptions_one_after_the_other(tmp_path: Path) -> None:
    """The machine delivers each, and the engine must not add them up to a double and a triple fault."""
    # A handler of SIGFPE that adds 2 to the saved RIP; then four divisions by zero; then exit(7).
    source = """
    #define _GNU_SOURCE
    #include <signal.h>
    #include <ucontext.h>
    static void skip(int n, siginfo_t *i, void *u) { ((ucontext_t *)u)->uc_mcontext.gregs[REG_RIP] += 2; }
    int main(void) {
      struct sigaction a = {.sa_sigaction = skip, .sa_flags = SA_SIGINFO};
      sigaction(SIGFPE, &a, 0);
      for (int i = 0; i < 4; i++) __asm__ volatile("xorl %%ecx, %%ecx; divl %%ecx" ::: "eax", "ecx", "edx");
      return 7;
    }"""
    subprocess.run(
        [require.command("gcc", package="gcc"), "-xc", "-", "-o", tmp_path / "divides"],
        input=source.encode(),
        check=True,
    )
    assert perfemu("run", tmp_path / "divides").returncode == 7
    assert perfemu("record", "-c", "11", "-o", tmp_path / "data", tmp_path / "divides").returncode == 7


def _report(capsys: pytest.CaptureFixture[str], path: Path) -> tuple[int, str]:
    return in_process(capsys, "report", "--header", "-i", str(path))


def test_damaged_recordings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Many lengths, and every second byte flipped, of a small file: a report, or one line."""
    path, damaged = tmp_path / "data", tmp_path / "damaged"
    assert main(["record", "--core", "ideal", "-g", "-c", "700", "-o", str(path), GOOD]) == 0
    whole = path.read_bytes()
    capsys.readouterr()
    changes: list[Callable[[], bytes]] = [lambda n=n: whole[:n] for n in range(0, len(whole), 7)]
    for position in range(0, len(whole), 2):
        bit = 1 << position % 8
        changes.append(
            lambda at=position, bit=bit: whole[:at] + bytes([whole[at] ^ (0xFF if at % 4 else bit)]) + whole[at + 1 :]
        )
    for change in changes:
        damaged.write_bytes(change())
        status, err = _report(capsys, damaged)
        assert status in (0, 1)
        assert "internal error" not in err, err
        assert all(line.startswith("perfemu: ") for line in err.splitlines()), err


def test_what_is_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    for path, text in (
        (str(tmp_path / "none"), f"cannot read {tmp_path}/none: No such file or directory"),
        (str(tmp_path), f"{tmp_path}: a directory"),
        (str(empty), f"{empty}: the file is empty"),
        (GOOD, f"{GOOD}: not a perf.data file"),
    ):
        status, err = in_process(capsys, "report", "-i", path)
        assert status == 1
        assert err.startswith(f"perfemu: {text}")
        assert err.count("\n") == 1


def test_a_directory_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = shell('cd gone && rmdir ../gone && perfemu run "$GOOD"', tmp_path)
    # In front of it stands what sh says of that, where a space in its path makes perfemu a script of sh.
    assert done.stderr.endswith(b"perfemu: the current directory has been removed: cd to one that exists\n")
    assert done.returncode == 1


def test_little_address_space(tmp_path: Path) -> None:
    """ulimit -v: a machine that fits runs, one that does not is named, and so is too little for the program itself."""

    def within(size: int) -> Callable[[], None]:
        return lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))

    assert perfemu("run", "--memory", "64M", GOOD, before=within(1 << 30)).returncode == 0
    for size in (1024, *range(50, 270, 60)):
        memory = ("--memory", "64M") if size < 1024 else ()
        done = perfemu("record", *memory, "-o", "out", GOOD, cwd=tmp_path, before=within(size << 20))
        assert f"ulimit -v {size << 10} " in complaint(done)
    assert list(tmp_path.iterdir()) == []
