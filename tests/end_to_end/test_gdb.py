"""--gdb: Debian's unmodified gdb debugs bare metal on the board: registers, breakpoints, steps, watchpoints; and what
is counted is what is counted without it."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

import require
from tests.end_to_end.command import ENVIRONMENT, PERFEMU, TIMEOUT_S, perfemu

SOURCE = Path(__file__).with_name("debugged.c")
FLAGS = [
    "-g", "-O0", "-fno-omit-frame-pointer", "-ffreestanding", "-nostdlib", "-static", "-fno-pic", "-no-pie",
    "-mgeneral-regs-only", "-fno-stack-protector", "-mbranch-protection=none", "-fno-asynchronous-unwind-tables",
    "-Wl,-Ttext=0x40080000,--build-id=none",
]  # fmt: skip
COUNTED = ("stat", "-x,", "-A", "-e", "instructions:u,instructions:k,cycles,branches")
SESSION = """
info registers pc cpsr CurrentEL
break sum
continue
backtrace 2
delete
break add if b == 3
continue
finish
next
until
print total
delete
watch shared
continue
continue
delete
break user
continue
delete
info registers cpsr
step
print n
finish
x/i $pc
stepi
break off
continue
print/x $ESR_EL1
print/x $VBAR_EL1
info registers cpsr
continue
"""
# Of each line that gdb says, in this order; the counts are the source's.
SAID = [
    r"pc +0x\w+ +0x\w+ <_start>", r"cpsr +0x3c5 +\[ SP EL=1 F I A D \]", r"CurrentEL +0x4",
    r"Breakpoint 1, sum \(n=10\)", r"#0 +sum \(n=10\)", r"#1 .* in kernel \(\)",
    r"Breakpoint 2, add \(a=3, b=3\)",  # 0 + 1 + 2
    r"Value returned is \$1 = 6", r"\$2 = 45",
    r"Old value = 0", r"New value = 45", r"kernel \(\) at ", r"Old value = 45", r"New value = 46",
    r"Breakpoint 4, user \(\)", r"cpsr +0x0 +\[ EL=0 \]", r"sum \(n=5\) at ", r"\$3 = 5", r"Value returned is \$4 = 10",
    r"=> 0x\w+ <user\+\d+>:", r"Breakpoint 5, off \(\)",
    r"\$5 = 0x56000000", r"\$6 = 0x40080800", r"cpsr +0x3c5", r"exited normally",
]  # fmt: skip


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = require.command("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
    built = tmp_path_factory.mktemp("gdb") / "debugged"
    subprocess.run([compiler, *FLAGS, "-o", built, SOURCE], check=True)
    return built


def start(place: Path, *arguments: str | Path, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A board that waits for a debugger there."""
    process = subprocess.Popen(
        [PERFEMU, *arguments[:-1], "--board", "virt", "--memory", "64M", "--gdb", place, arguments[-1]],
        stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT,
    )  # fmt: skip
    assert process.stderr is not None
    waits = process.stderr.readline()
    assert waits == f"perfemu: gdb: nothing runs until a debugger says so: target remote {place}\n".encode()
    return process


def gdb(place: Path, image: Path, commands: str) -> subprocess.Popen[str]:
    command = require.command("gdb-multiarch", "gdb-multiarch")
    script = image.with_name("commands")
    script.write_text(f"set pagination off\nset confirm off\ntarget remote {place}\n{commands}")
    return subprocess.Popen(
        [command, "-q", "-nx", "-batch", "-x", script, image], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(("core", "cpus"), [("ideal", "1"), ("neoverse-n1", "2")])
def test_a_session(core: str, cpus: str, image: Path, tmp_path: Path) -> None:
    options = (*COUNTED, "--core", core, "--cpus", cpus)
    place, counts = tmp_path / "socket", tmp_path / "counts"
    board = start(place, *options, "-o", counts, image)
    said, _ = gdb(place, image, SESSION).communicate(timeout=TIMEOUT_S)
    assert board.communicate(timeout=TIMEOUT_S) == (b"", b"")
    assert board.returncode == 0
    at = 0
    for each in SAID:
        found = re.compile(each).search(said, at)
        assert found, f"no {each} behind {said[:at][-100:]!r} in\n{said}"
        at = found.end()
    plain = perfemu(*options, "-o", tmp_path / "plain", "--board", "virt", "--memory", "64M", image)
    assert (plain.returncode, plain.stderr) == (0, b"")
    assert counts.read_text() == (tmp_path / "plain").read_text()


def test_an_interruption_by_the_user_and_a_detached_debugger(image: Path, tmp_path: Path) -> None:
    """A board that is busy stops, then goes on by itself until its limit."""
    place = tmp_path / "socket"
    board = start(place, "run", "--core", "ideal", "--max-instructions", "20000000000", image)
    commands = "break sum\ncontinue\ndelete\nset *(int *)$pc = 0x14000000\nset $x9 = 77\n"  # B to itself
    commands += "continue\ninfo registers pc x9\n"
    debugger = gdb(place, image, commands + "info threads\ndetach\n")
    time.sleep(2)
    asked = time.monotonic()
    debugger.send_signal(signal.SIGINT)
    said, _ = debugger.communicate(timeout=TIMEOUT_S)
    assert time.monotonic() - asked < 10, "it is some 20 ms on an idle host"
    assert "received signal SIGINT" in said
    assert re.search(r"x9 +0x4d +77", said)
    assert "CPU 0: executes, EL1" in said
    assert "detached" in said
    board.terminate()
    board.communicate(timeout=TIMEOUT_S)


def test_an_interruption_while_the_board_waits_for_input(image: Path, tmp_path: Path) -> None:
    """It looks at its serial port again and again, and a pipe has nothing for it yet."""
    place = tmp_path / "socket"
    board = start(place, "run", "--core", "ideal", image, stdin=subprocess.PIPE)
    looks = "0x39406020", "0x17ffffff"  # LDRB W0, [X1, #24], the flags; B back
    commands = f"set $x1 = 0x9000000\nset *(int *)$pc = {looks[0]}\nset *((int *)$pc + 1) = {looks[1]}\n"
    debugger = gdb(place, image, commands + "continue\ninfo registers x1\nkill\n")
    time.sleep(2)
    debugger.send_signal(signal.SIGINT)
    said, _ = debugger.communicate(timeout=TIMEOUT_S)
    assert re.search(r"received signal SIGINT.*x1 +0x9000000", said, re.DOTALL), said
    board.communicate(timeout=TIMEOUT_S)
    assert board.returncode == 1


def test_a_debugger_may_kill_the_board(image: Path, tmp_path: Path) -> None:
    place = tmp_path / "socket"
    board = start(place, "run", "--core", "ideal", image)
    gdb(place, image, "stepi\nkill\n").communicate(timeout=TIMEOUT_S)
    assert board.communicate(timeout=TIMEOUT_S) == (b"", b"perfemu: stopped: the debugger has ended the run\n")
    assert board.returncode == 1
    assert not place.exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--board", "virt", "--gdb", "x"], "--gdb x: a port, 0 for any that is free, or the path of a socket"),
        (["--board", "virt", "--gdb", "/nowhere/socket"], "--gdb /nowhere/socket: No such file or directory"),
        (["--gdb", "0"], "--gdb: is a board's"),
    ],
)
def test_what_is_refused(arguments: list[str], says: str, image: Path) -> None:
    done = perfemu("run", *arguments, image)
    assert done.returncode != 0
    assert says in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
