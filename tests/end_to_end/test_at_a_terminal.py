"""A shell at a prompt, as somebody who types sees it: signal keys, jobs, and no progress in between."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import require
from end_to_end.command import ENVIRONMENT, PERFEMU, TIMEOUT_S


class Typist:
    """Types into a terminal on which `perfemu run` runs a shell, and reads what appears."""

    def __init__(self, pid: int, controller: int) -> None:
        self.pid = pid
        self.controller = controller

    def type(self, text: str) -> None:
        os.write(self.controller, text.encode())

    def until(self, pattern: str) -> str:
        """What appears, until it matches at its end."""
        shown, end = "", time.monotonic() + TIMEOUT_S
        while not re.search(pattern + r"\Z", shown):
            assert time.monotonic() < end, shown
            if select.select([self.controller], [], [], 0.1)[0]:
                shown += os.read(self.controller, 4096).decode()
        return shown

    def silence(self) -> None:
        """Time for the shell to come to where it loops, or reads."""
        time.sleep(1.5)


@pytest.fixture(params=["amd64", "arm64"])
def typist(request: pytest.FixtureRequest) -> Iterator[Typist]:
    shell = require.debian_tree(request.param, "busybox-static") / "bin/busybox"
    pid, controller = pty.fork()
    if pid == 0:
        os.chdir(Path("/"))
        os.execve(PERFEMU, [PERFEMU, "run", "--core", "ideal", shell, "sh"], {**ENVIRONMENT, "PS1": "> "})
    yield Typist(pid, controller)
    os.kill(pid, signal.SIGKILL)
    os.close(controller)
    os.waitpid(pid, 0)


def test_ctrl_c_ends_what_is_in_the_foreground_and_not_the_shell(typist: Typist) -> None:
    typist.until("# ")
    typist.type("while :; do :; done\n")
    typist.silence()
    typist.type("\x03")
    typist.until("# ")
    typist.type("echo status $?\n")
    assert "status 130" in typist.until("# ")
    typist.type("half a li")
    typist.silence()
    typist.type("\x03")
    typist.until("# ")
    typist.type("cat\n")
    typist.silence()
    typist.type("\x03")
    assert "perfemu:" not in typist.until("# ")
    typist.type("trap 'echo trapped' INT; while :; do :; done\n")
    typist.silence()
    typist.type("\x03")
    typist.until("trapped\r\n")


def test_who_reads_in_the_background_is_stopped(typist: Typist) -> None:
    typist.until("# ")
    typist.type("cat &\n")
    typist.until("# ")
    typist.type("sleep 1; jobs\n")  # who reads a terminal lets no time pass
    assert "Stopped" in typist.until("# ")
    typist.type("fg\n")
    typist.until("cat\r\n")
    typist.type("a line\n")
    typist.until("a line\r\na line\r\n")
