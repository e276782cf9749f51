"""perfemu trace against strace: the same program natively, line for line; and what its options do."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import require
from debian import ARCHITECTURES
from end_to_end.assembled import exits, program
from end_to_end.command import complaint, perfemu
from perfemu.guest import Guest
from perfemu.session import Session
from perfemu.tracing.selection import Selection
from perfemu.tracing.tracer import Style, Tracer

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/", "LC_ALL": "C", "TERM": "dumb"}  # docs/guests.md

# What may differ: addresses, random bytes, ids, and the kernel's name.
MASKS = (
    (re.compile(r"0x[0-9a-f]+"), "ADDRESS"),
    (re.compile(r"getrandom\(\"[^\"]*\""), 'getrandom("..."'),
    (re.compile(r"ADDRESS /\* 4 vars \*/"), "/* 4 vars */"),
    (re.compile(r"(uname\(\{sysname=\"Linux\", nodename=)\"[^\"]*\""), r"\1..."),
    (re.compile(r"(getppid\(\)|set_tid_address\(ADDRESS\)) *= \d+"), r"\1 = ..."),
    (re.compile(r"(st_size|si_[us]time|stx_size)=\d+"), r"\1=..."),
)


def busybox(isa: str) -> str:
    return str(require.debian_tree(ARCHITECTURES[isa], "busybox-static") / "bin" / "busybox")


VDSO = ("time(", "clock_gettime(", "gettimeofday(")  # no system calls where the kernel's own page answers them


def by_process(text: str) -> list[list[str]]:
    """The lines of each process, first come first; calls that were cut put together again, what may differ masked."""
    processes: dict[str, list[str]] = {}
    open_calls: dict[str, str] = {}
    for line in text.splitlines():
        pid, _, rest = line.partition(" ")
        rest = rest.strip()
        if rest.endswith("<unfinished ...>"):
            open_calls[pid] = rest.removesuffix("<unfinished ...>").rstrip(" ")
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", rest)
        if resumed is not None:
            start = open_calls.pop(pid)
            rest = f"{start} {resumed[1]}" if start.endswith(",") and resumed[1][:1] not in ",)" else start + resumed[1]
        if not rest.startswith(VDSO):
            processes.setdefault(pid, []).append(rest)
    names = {pid: f"PID{index}" for index, pid in enumerate(processes)}
    return [[_masked(line, names) for line in lines] for lines in processes.values()]


def _masked(line: str, pids: dict[str, str]) -> str:
    for pattern, replacement in MASKS:
        line = pattern.sub(replacement, line)
    line = re.sub(r"\d+", lambda match: pids.get(match[0], match[0]), line)
    return re.sub(r" +=", " =", line)


def native(argv: Sequence[str], directory: Path) -> str:
    if platform.machine() != "x86_64":
        require.missing("an x86-64 host is needed: the program runs natively, too")
    strace = require.command("strace", package="strace")
    output = directory / "native"
    done = subprocess.run(
        [strace, "-f", "-o", output, *argv],
        capture_output=True,
        env=ENVIRONMENT,
        cwd=directory,
        timeout=300,
        check=False,
    )
    if b"ptrace" in done.stderr:
        require.missing(f"strace may not trace here: {done.stderr.decode()}")
    return output.read_text(encoding="utf-8")


def traced(argv: Sequence[str], directory: Path, *options: str) -> str:
    output = directory / "ours"
    perfemu("trace", *options, "-o", output, "--", *argv, cwd=directory)
    return output.read_text(encoding="utf-8", errors="surrogateescape")


SCRIPTS = {
    "builtins and a handler": "trap 'echo caught' USR1; echo hi; cd /; test -e /nowhere; umask 077; "
    "kill -USR1 $$; exit 3",
    "files": "echo text > file; mkdir d; cat < file > d/copy; ls -l d > list; "
    "ln -s copy link; readlink link; mv d e; rm -r e; :",
    "killed": "kill -TERM $$",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_lines_are_those_of_strace(name: str, tmp_path: Path) -> None:
    argv = [busybox("x86_64"), "sh", "-c", SCRIPTS[name]]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    expected, ours = (
        by_process(native(argv, tmp_path / "a")),
        by_process(traced(argv, tmp_path / "b", "--no-timestamps")),
    )
    same = [line.replace(str(tmp_path / "a"), str(tmp_path / "b")) for lines in expected for line in lines]
    assert [line for lines in ours for line in lines] == same
    assert len(same) > 25


@pytest.mark.parametrize("isa", ARCHITECTURES)
def test_lines_of_both_isas(isa: str, tmp_path: Path) -> None:
    """Flags whose values differ between the ISAs have the same names."""
    argv = [busybox(isa), "sh", "-c", "ls -d /usr > out; sleep 0.01; :"]
    lines = traced(argv, tmp_path, "-e", "openat,open,rt_sigaction,wait4,nanosleep,clock_nanosleep", "--no-timestamps")
    assert ', "out", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3' in lines
    assert "[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 1001" in lines
    assert "--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=1001, si_uid=0, si_status=0, " in lines
    assert "{tv_sec=0, tv_nsec=10000000}" in lines
    assert "+++ exited with 0 +++" in lines
    assert "write(" not in lines


def test_two_runs_write_the_same(tmp_path: Path) -> None:
    argv = [busybox("x86_64"), "sh", "-c", "echo a | cat | wc -c; cat /proc/cpuinfo > /dev/null & wait"]
    first = traced(argv, tmp_path, "--cpus", "2", "-y", "-T")
    assert first == traced(argv, tmp_path, "--cpus", "2", "-y", "-T")
    assert "<unfinished ...>" in first
    assert "resumed>" in first


def test_being_watched_changes_nothing(tmp_path: Path) -> None:
    """Not even which pages have been touched: strings are only peeked at."""

    def run(*, watched: bool) -> tuple[int, int, int, int]:
        session = Session(
            Guest((busybox("x86_64"), "sh", "-c", "ls -la . > /dev/null; :"), core="ideal", cwd=str(tmp_path))
        )
        kernel = session.machine.kernel
        lines: list[str] = []
        if watched:
            style = Style(names_files=True, longest=200)
            program = session.program.path, session.program.argv, 4
            Tracer(kernel, lines.append, Selection(), style, program).listen(kernel.tracepoints)
        session.run()
        assert bool(lines) == watched
        usage = kernel.lifecycle.first.process.ended_usage + kernel.lifecycle.first.process.waited_usage
        return session.instructions(), kernel.clock.elapsed_ns(), usage.minor_faults, usage.major_faults

    assert run(watched=False) == run(watched=True)


def test_the_table_counts_calls_and_errors() -> None:
    done = perfemu("trace", "-c", busybox("x86_64"), "sh", "-c", "cd /nowhere; cd /nowhere; cd /; sleep 1")
    rows = {line.split()[-1]: line.split() for line in done.stderr.decode().splitlines() if line[:1] in " 1"}
    assert rows["chdir"][3:] == ["3", "2", "chdir"]
    assert rows["chdir"][1] == "0.000000"
    sleeping = rows.get("wait4") or rows["clock_nanosleep"]
    assert 1.0 <= float(sleeping[1]) < 1.01
    assert int(rows["total"][3]) == sum(int(row[3]) for name, row in rows.items() if name != "total")


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ((), r"  0\.000000\d\d\d exit\(3\)"),
        (("-t",), r"22:13:20 exit"),
        (("-tt",), r"22:13:20\.00000\d exit"),
        (("-ttt",), r"1700000000\.00000\d exit"),
        (("-r",), r"    0\.00000\d exit"),
        (("--no-timestamps",), r"exit"),
        (("--no-timestamps", "-n"), r"\[  60\] exit"),
    ],
)
def test_times_are_simulated(options: Sequence[str], pattern: str, tmp_path: Path) -> None:
    done = perfemu("trace", *options, "-q", program(tmp_path / "exits", "x86_64", exits("x86_64", 3)))
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 3
    assert re.match(pattern, lines[-1]), lines
    assert lines[-1].endswith("= ?")


def test_a_selection_shows_only_what_is_in_it(tmp_path: Path) -> None:
    argv = [busybox("x86_64"), "sh", "-c", "cat /etc/hostname /nowhere; kill -USR1 $$"]
    network = traced(argv, tmp_path, "-e", "trace=%network", "-e", "signal=none", "-q")
    assert network == ""
    failed = traced(argv, tmp_path, "-Z", "-e", "%file", "-e", "signal=USR1", "--no-timestamps", "-q")
    signal = "--- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_USER, si_pid=1000, si_uid=0} ---"
    assert [line.split(" ", 1)[1].split("(")[0] for line in failed.splitlines()] == ["openat", signal]
    assert "= -1 ENOENT (No such file or directory)" in failed
    named = traced(argv, tmp_path, "-y", "-e", "/^(read|sendfile)", "--no-timestamps", "-q")
    assert "</etc/hostname>" in named


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-e", "opne"), "trace -e opne: no such system call or class; did you mean open"),
        (("-e", "trace=%fiel"), "trace -e %fiel: no such system call or class; did you mean %file"),
        (("-e", "signal=SIGFOO"), "trace -e signal=SIGFOO: no such signal"),
        (("-e", "inject=all"), "trace -e inject=all: there is trace=SET, signal=SET and status=failed or =successful"),
        (("-o", "/nowhere/file"), "cannot write /nowhere/file: No such file or directory"),
        (("-p", "1"), "trace -p (a running process) is not modelled yet"),
        (("-z", "-Z"), "trace: -z and -Z exclude each other"),
    ],
)
def test_wrong_options_are_one_line(options: Sequence[str], message: str, tmp_path: Path) -> None:
    done = perfemu("trace", *options, "--", program(tmp_path / "exits", "x86_64", exits("x86_64", 0)))
    assert complaint(done).startswith(message)
    assert done.returncode != 0
