"""Standard input of `perfemu run --board`: pipes, and a terminal, which is given back as it was."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.end_to_end.command import ENVIRONMENT, PERFEMU, TIMEOUT_S
from tests.unit.board.booted import OFF, START
from tests.unit.board.test_serial_input import ECHO
from tests.unit.native.bare import assemble

PROMPT = "mov w1, #'>'\nstrb w1, [x20]\n"


@pytest.fixture
def command(tmp_path: Path) -> list[str | Path]:
    image = tmp_path / "image"
    image.write_bytes(assemble("aarch64", START + PROMPT + ECHO + OFF, tmp_path))
    return [PERFEMU, "run", "--board", "virt", "--core", "ideal", "--memory", "16M", image]


def test_a_pipe(command: list[str | Path]) -> None:
    done = subprocess.run(
        command, input=b"some words\nto end.", capture_output=True, timeout=TIMEOUT_S, env=ENVIRONMENT, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b">some words\nto end.", b"")


def test_a_pipe_that_is_slow_gives_the_same(command: list[str | Path]) -> None:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        assert started.stdout.read(1) == b">"  # it can be seen before it waits
        started.stdin.write(b"a word.")
        started.stdin.close()
        assert (started.stdout.read(), started.wait(TIMEOUT_S)) == (b"a word.", 0)


@pytest.mark.parametrize(
    ("typed", "shown", "status"),
    [
        (b"a\x03\x01\x01.", b">a\x03\x01.", 0),  # Ctrl-C is the guest's, and so is Ctrl-A after another
        (b"a\x01x", b">", 128 + signal.SIGINT),
    ],
)
def test_a_terminal(typed: bytes, shown: bytes, status: int, command: list[str | Path]) -> None:
    controller, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    pid = os.fork()
    if pid == 0:  # a session of its own, whose terminal this is
        os.login_tty(terminal)
        os.execve(command[0], [os.fspath(word) for word in command], dict(ENVIRONMENT))
    output = b""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        if select.select([controller], [], [], 0.05)[0]:
            output += os.read(controller, 1024)
            if output == b">":
                os.write(controller, typed)
        ended, how = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
    while select.select([controller], [], [], 0)[0]:
        output += os.read(controller, 1024)
    assert ended, f"it has not ended; it has shown {output!r}"
    assert output.startswith(shown)
    assert os.waitstatus_to_exitcode(how) == status
    assert termios.tcgetattr(terminal) == before
    os.close(controller)
    os.close(terminal)
