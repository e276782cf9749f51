"""Debian's unmodified strace, gdb and ltrace as guests: what they say of a program is what they say of it on Linux.

For x86-64 that is asked of this host; for AArch64 the same is expected, since nothing that they print is an ISA's own.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import debian
import require
from c_programs import COMPILERS, build
from corpus.debian_machine import machine
from end_to_end.command import ENVIRONMENT, PERFEMU
from guests import ISAS
from same_as_linux import HOST_ISA

SOURCE = Path(__file__).with_name("debugged.c")
FLAGS = ("-g", "-O0", "-static", "-pthread", "-w", "-fno-pie", "-no-pie", "-fno-stack-protector")
TIMEOUT_S = 300
STRACE = ("strace", "-f", "-qq", "-o", "trace", "-e", "trace=write,wait4,exit_group,exit,tgkill", "./debugged")
GDB = (
    "gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set startup-with-shell off",
    "-x", "commands", "./debugged",
)  # fmt: skip
COMMANDS = """
set pagination off
set confirm off
set print address off
set can-use-hw-watchpoints 0
break factorial if n == 2
run
bt
finish
stepi
delete
break change
continue
watch watched
continue
delete
handle SIGUSR1 stop print
continue
set follow-fork-mode parent
break other
continue
info threads
next
bt
print finished
delete
continue
"""
# of threads and processes, and where they are; how far the main thread has come is nobody's promise
NUMBERS = (
    (re.compile(r"^( *1 +Thread .* \"debugged\") .*", re.MULTILINE), r"\1"),
    (re.compile(r"0x[0-9a-f]+"), "ADDRESS"),
    (re.compile(r"(LWP|process) \d+"), r"\1"),
)


class Debugged:
    """The program, built for one ISA in a directory of its own, and a machine of that ISA with the debuggers.

    `compiled` is a directory for the Python that gdb has: what one compiles of its library, the next need not.
    """

    def __init__(self, isa: str, directory: Path, *packages: str, compiled: Path | None = None) -> None:
        command = require.command(*COMPILERS[isa])
        (directory / SOURCE.name).write_bytes(SOURCE.read_bytes())
        subprocess.run([command, *FLAGS, "-o", "debugged", SOURCE.name], cwd=directory, check=True)
        (directory / "commands").write_text(COMMANDS)
        self._directory = directory
        self._compiled = compiled
        self._root = machine(isa, packages)

    def ours(self, *command: str) -> str:
        """What it prints as a guest."""
        options: tuple[str | Path, ...] = ("--core", "ideal", "--sysroot", self._root, "--rw", self._directory)
        if self._compiled is not None:
            options += ("--rw", self._compiled, "--env", f"PYTHONPYCACHEPREFIX={self._compiled}")
        return self._run(PERFEMU, "run", *options, "--", *command)

    def natively(self, *command: str) -> str:
        """... and on this host."""
        require.command(command[0], command[0])
        return self._run(*command)

    def _run(self, *command: str | Path) -> str:
        done = subprocess.run(
            command, cwd=self._directory, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        return done.stdout

    def trace(self) -> list[str]:
        """The file that strace has written, with processes by the order in which they come."""
        known: dict[str, str] = {}
        lines = (self._directory / "trace").read_text()
        pids = dict.fromkeys(re.findall(r"^(\d+) ", lines, re.MULTILINE))
        known.update((pid, f"P{place}") for place, pid in enumerate(pids))
        text = re.sub(r"\b\d+\b", lambda number: known.get(number[0], number[0]), lines)
        text = re.sub(r"0x[0-9a-f]+", "ADDRESS", text)
        text = re.sub(r"(si_utime|si_stime)=\d+[^,}]*", r"\1=TIME", text)
        return sorted(
            re.sub(r" +", " ", line) for line in text.splitlines() if not re.search("unfinished|resumed", line)
        )


EXPECTED_CALLS = [
    "atoi(ADDRESS, ADDRESS, ADDRESS, ADDRESS) = -7",
    "abs(-7) = 7",
    'getenv("none") = nil',
    "+++ exited (status 7) +++",
]
EXPECTED_TRACE = [
    'P0 write(1, "handled\\n", 8) = 8',
    "P0 --- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_TKILL, si_pid=P0, si_uid=0} ---",
    "P0 tgkill(P0, P0, SIGUSR1) = 0",
    'P0 write(1, "end\\n", 4) = 4',
    "P0 exit_group(4) = ?",
    'P1 write(1, "child\\n", 6) = 6',
    "P1 exit_group(3) = ?",
    "P2 exit(0) = ?",
]
THREADS_END = EXPECTED_TRACE[-1]


@pytest.mark.parametrize("isa", ISAS)
def test_strace_says_what_it_says_on_linux(isa: str, tmp_path: Path) -> None:
    program = Debugged(isa, tmp_path, "strace")
    program.ours(*STRACE)
    found = program.trace()
    assert set(EXPECTED_TRACE) <= set(found)
    if isa == HOST_ISA:
        program.natively(*STRACE)
        # The thread's end may be unfinished there when the process ends: then strace has no line of it.
        theirs = program.trace()
        assert [line for line in found if line != THREADS_END] == [line for line in theirs if line != THREADS_END]


PRINTED = ["handled", "child", "end"]  # by the program, some time between gdb's own lines


def neutral(printed: str) -> tuple[list[str], list[str]]:
    """gdb's lines, and the program's."""
    for pattern, shown in NUMBERS:
        printed = pattern.sub(shown, printed)
    lines = [re.sub(" +", " ", line) for line in printed.splitlines() if line and "libthread_db" not in line]
    return [line for line in lines if line not in PRINTED], [line for line in lines if line in PRINTED]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


@pytest.mark.parametrize("isa", ISAS)
def test_gdb_says_what_it_says_on_linux(isa: str, tmp_path: Path, compiled: Path) -> None:
    """Breakpoints, a condition, backtraces, finish, stepi, a watched variable by single steps, signals, threads."""
    program = Debugged(isa, tmp_path, "gdb", compiled=compiled)
    found, printed = neutral(program.ours(*GDB))
    assert "#3 factorial (n=5) at debugged.c:12" in found
    assert {"Old value = 0", "New value = 2", "Program received signal SIGUSR1, User defined signal 1."} <= set(found)
    assert found[-1].endswith("exited with code 04]")
    assert printed == PRINTED
    if isa == HOST_ISA:
        assert found == neutral(program.natively(*GDB))[0]


@pytest.mark.parametrize("isa", ISAS)
def test_gdb_watches_by_hardware_as_on_linux(isa: str, tmp_path: Path, compiled: Path) -> None:
    """By DR0 and DR7, or the register sets of AArch64: gdb says so itself, and stops where it stops natively."""
    program = Debugged(isa, tmp_path, "gdb", compiled=compiled)
    by_hardware = COMMANDS.replace("set can-use-hw-watchpoints 0\n", "").replace("break change", "hbreak change")
    (tmp_path / "commands").write_text(by_hardware)
    found = neutral(program.ours(*GDB))[0]
    assert any(line.startswith("Hardware watchpoint") for line in found)
    assert any(line.startswith("Hardware assisted breakpoint") for line in found)
    assert {"Old value = 0", "New value = 2"} <= set(found)
    if HOST_ISA == isa:
        assert found == neutral(program.natively(*GDB))[0]


@pytest.mark.parametrize("isa", ISAS)
def test_ltrace_says_what_it_says_on_linux(isa: str, tmp_path: Path) -> None:
    """Of library functions. Its breakpoint on AArch64 is UDF, and is written where it has read the program as data."""
    root = require.debian_tree(debian.ARCHITECTURES[isa], "ltrace", release=debian.TRIXIE)  # Debian 12's knows no arm64
    source = tmp_path / "calls.c"
    source.write_text('#include <stdlib.h>\nint main(void) { return abs(atoi("-7")) + (getenv("none") != 0); }\n')
    subprocess.run(
        [require.command(*COMPILERS[isa]), "-O0", "-fno-builtin", "-o", tmp_path / "calls", source], check=True
    )
    options = ("--core", "ideal", "--sysroot", root, "--rw", tmp_path)
    command = (PERFEMU, "run", *options, "--", "ltrace", "-o", "calls.trace", "./calls")
    subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, stdin=subprocess.DEVNULL, check=False)
    lines = [re.sub(" +", " ", line) for line in (tmp_path / "calls.trace").read_text().splitlines()]
    own = [line for line in lines if not line.startswith("__")]  # the C runtime calls by the PLT on AArch64 alone
    assert [re.sub("0x[0-9a-f]+", "ADDRESS", line) for line in own] == EXPECTED_CALLS


@pytest.mark.parametrize("isa", ISAS)
def test_a_step_is_one_instruction(isa: str, tmp_path: Path) -> None:
    """stepped.c has the child's instructions counted: one more after each step, and as many as without steps."""
    program = build(SOURCE.with_name("stepped.c"), isa, tmp_path / "stepped", "-w")
    for core in ("ideal", "neoverse-n1" if isa == "aarch64" else "zen5"):
        done = subprocess.run([PERFEMU, "run", "--core", core, program], capture_output=True, text=True, check=True)
        assert done.stdout == "1 1 1\n"
