"""--gdb on the board pc: Debian's unmodified gdb says of it what it says of QEMU's PC, register for register and step
for step; and what is counted is what is counted without it."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from pathlib import Path

import pytest

import require
from board_images import pc_image, pc_program
from tests.end_to_end.command import ENVIRONMENT, PERFEMU, TIMEOUT_S, perfemu
from tests.unit.board.pc.images import assembled

BOARD = ("--board", "pc", "--core", "ideal", "--memory", "128M", "--cmdline", "image")
# Up to where COM1 is used: how long that takes is a device's. Then through IRET to ring 3, and into a fault.
SESSION = """
hbreak main
continue
backtrace
printf "%#lx %#lx %#lx\\n", $rip, $rsp, $cs
info registers ss ds es fs_base gs_base
printf "%#lx %#lx %#lx %#lx %#x\\n", $cr0, $cr3, $cr4, $efer, $mxcsr
x/4gx $rsp
x/3i $pc
stepi
x/i $pc
delete
break try if $rsi == 1
continue
printf "user %#lx of %#lx\\n", $rsi, $rdi
delete
set $steps = 0
while ($cs & 3) != 3
stepi
set $steps = $steps + 1
end
printf "in ring 3 after %d steps\\n", $steps
info registers cs ss rip rsp
while ($cs & 3) == 3
stepi
set $steps = $steps + 1
printf "%#lx\\n", $rip
end
printf "in ring 0 after %d steps\\n", $steps
info registers cs ss rip rsp
x/2gx $rsp
set $rax = 0x1234
print/x $rax
info registers fctrl fstat
set var *(int *)0x300000 = 77
print *(int *)0x300000
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With its symbols beside it."""
    folder = tmp_path_factory.mktemp("gdb")
    pc_program(64, folder).rename(folder / "symbols")
    (folder / "image").write_bytes(pc_image(64))
    return folder / "image"


def gdb(place: object, image: Path, commands: str) -> str:
    """What it says."""
    command = require.command("gdb-multiarch", "gdb-multiarch")
    script = image.with_name("commands")
    script.write_text(f"set pagination off\nset confirm off\ntarget remote {place}\n{commands}")
    done = subprocess.run(
        [command, "-q", "-nx", "-batch", "-x", script, image.with_name("symbols")],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S,
        check=False,
    )  # fmt: skip
    return done.stdout


def start(place: Path, *arguments: str | Path) -> subprocess.Popen[bytes]:
    """A board that waits for a debugger there."""
    process = subprocess.Popen(
        [PERFEMU, *arguments[:-1], "--gdb", place, arguments[-1]],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT,
    )  # fmt: skip
    assert process.stderr is not None
    waits = process.stderr.readline()
    assert waits == f"perfemu: gdb: nothing runs until a debugger says so: target remote {place}\n".encode()
    return process


def on_qemu(image: Path, commands: str) -> str:
    command = require.command("qemu-system-x86_64", package="qemu-system-x86")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    machine = subprocess.Popen(
        [command, "-nodefaults", "-m", "128", "-display", "none", "-no-reboot", "-S", "-gdb", f"tcp:127.0.0.1:{port}"]
        + ["-serial", "null", "-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-append", "image", "-kernel", image],
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        return gdb(f"127.0.0.1:{port}", image, "set architecture i386:x86-64\n" + commands + "kill\n")
    finally:
        machine.kill()
        machine.wait()


def behind_the_start(text: str) -> list[str]:
    """... up to the end, which has the stub's own words."""
    return text[text.index("Breakpoint 1, ") :].splitlines()[:-1]


def test_gdb_says_what_it_says_of_qemus_pc(image: Path, tmp_path: Path) -> None:
    place = tmp_path / "socket"
    board = start(place, "run", *BOARD, image)
    ours = gdb(place, image, SESSION + "kill\n")
    board.communicate(timeout=TIMEOUT_S)
    theirs = on_qemu(image, SESSION)
    assert behind_the_start(ours) == behind_the_start(theirs)
    assert re.search(r"in ring 3 after \d+ steps\n", ours)


@pytest.mark.parametrize("core", ["ideal", "skylake"])
def test_looking_changes_nothing(core: str, image: Path, tmp_path: Path) -> None:
    """At forty stops of two CPUs, among which the second steps."""
    options = ("stat", "-x,", "-A", "-e", "instructions:u,instructions:k,cycles,branches", *BOARD, "--cpus", "2")
    options = tuple(core if each == "ideal" else each for each in options)
    place = tmp_path / "socket"
    commands = "break check\n" + "continue\ninfo registers rip\nstepi\n" * 20
    commands += "delete\nbreak works\ncontinue\ninfo threads\nstepi\nstepi\ndelete\n"
    commands += 'eval "awatch *(long *)%#lx", $rsp - 8\n' + "continue\ninfo registers rip\n" * 20 + "delete\ncontinue\n"
    board = start(place, *options, "-o", tmp_path / "counts", image)
    said = gdb(place, image, commands)
    output, _ = board.communicate(timeout=TIMEOUT_S)
    plain = perfemu(*options, "-o", tmp_path / "plain", image)
    assert said.count(" hit Hardware access (read/write) watchpoint") == 20
    assert re.search(r"\* 2 +Thread 2 \(CPU 1: executes, CPL 0\)", said), said
    assert (board.returncode, output) == (plain.returncode, plain.stdout)
    assert (tmp_path / "counts").read_text() == (tmp_path / "plain").read_text()


# What `watch` has is stored, in part, too, then its neighbour, and it is loaded. What `rwatch` has is loaded, stored
# across and loaded across; what `awatch` has is updated, pushed and popped. Then a string goes through all of them.
ACCESSES = """
main:   movl    $1, 0x300000
        movb    $2, 0x300003
        movl    $3, 0x300004
        mov     0x300000, %eax
        mov     0x300010, %al
        movq    $5, 0x300009
        mov     0x30000C, %rax
        lock addq $1, 0x300020
        mov     $0x300028, %ecx
        xchg    %rcx, %rsp
        push    %rdi
        pop     %rdi
        xchg    %rcx, %rsp
        mov     $0x2FFFF8, %edi
        mov     $13, %ecx
        xor     %eax, %eax
        rep     stosl
        xor     %eax, %eax
        ret
"""
STOPS = 10
WATCHING = (
    "set architecture i386:x86-64\nwatch *(int *)0x300000\nrwatch *(char *)0x300010\nawatch *(long *)0x300020\n"
    + 'continue\nprintf "%#lx %#lx %#lx\\n", $rip, $rcx, $rsp\n' * STOPS
)


def test_watchpoints_stop_where_qemus_do(tmp_path: Path) -> None:
    image, place = tmp_path / "image", tmp_path / "socket"
    image.write_bytes(assembled(ACCESSES))
    board = start(place, "run", *BOARD, image)
    ours = gdb(place, image, WATCHING + "kill\n")
    board.communicate(timeout=TIMEOUT_S)
    theirs = on_qemu(image, WATCHING)
    begin = "Hardware watchpoint 1: *(int *)0x300000\n"
    stops = [text[text.index(begin) :].splitlines()[:-1] for text in (ours, theirs)]
    assert stops[0] == stops[1]
    assert "Hardware read watchpoint 2: *(char *)0x300010" in ours
    assert "Hardware access (read/write) watchpoint 3: *(long *)0x300020" in ours
