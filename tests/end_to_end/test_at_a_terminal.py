"""A shell at a prompt, as somebody who types sees it: signal keys, jobs, and no progress in between."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import require
from c_programs import build
from debian import ARCHITECTURES
from end_to_end.command import ENVIRONMENT, PERFEMU, STARTED_S, TIMEOUT_S, cpu_seconds, sleeps
from guests import ISAS
from same_as_linux import HOST_ISA

PAUSE_S = 0.05  # between two looks at the emulator


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

    def until_it_loops(self) -> None:
        """The guest has computed for so long that nothing else is left."""
        enough = cpu_seconds(self.pid) + STARTED_S
        self._until(lambda: cpu_seconds(self.pid) >= enough)

    def until_it_reads(self) -> None:
        """All of the guest waits for what is typed: the emulator sleeps whenever one looks."""
        self._until(lambda: sleeps(self.pid), times=3)

    def _until(self, reached: Callable[[], bool], times: int = 1) -> None:
        """It holds so many times in a row."""
        end, held = time.monotonic() + TIMEOUT_S, 0
        while held < times:
            assert time.monotonic() < end
            time.sleep(PAUSE_S)
            held = held + 1 if reached() else 0


@pytest.fixture(params=ARCHITECTURES.values())
def typist(request: pytest.FixtureRequest) -> Iterator[Typist]:
    shell = require.debian_tree(request.param, "busybox-static") / "bin/busybox"
    pid, controller = pty.fork()
    if pid == 0:
        os.chdir(Path("/"))
        os.execve(PERFEMU, [PERFEMU, "run", "--core", "ideal", shell, "sh"], ENVIRONMENT)
    yield Typist(pid, controller)
    os.kill(pid, signal.SIGKILL)
    os.close(controller)
    os.waitpid(pid, 0)


def test_ctrl_c_ends_what_is_in_the_foreground_and_not_the_shell(typist: Typist) -> None:
    typist.until("# ")
    typist.type("while :; do :; done\n")
    typist.until_it_loops()
    typist.type("\x03")
    typist.until("# ")
    typist.type("echo status $?\n")
    assert "status 130" in typist.until("# ")
    typist.type("half a li")
    typist.until("half a li")
    typist.until_it_reads()
    typist.type("\x03")
    typist.until("# ")
    typist.type("cat\n")
    typist.until("cat\r\n")
    typist.until_it_reads()
    typist.type("\x03")
    assert "perfemu:" not in typist.until("# ")
    typist.type("trap 'echo trapped' INT; while :; do :; done\n")
    typist.until_it_loops()
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


def printed_at_a_terminal(*command: str | Path) -> list[str]:
    """What a command prints that has a terminal of its own, until it ends."""
    pid, controller = pty.fork()
    if pid == 0:
        os.execve(command[0], list(command), ENVIRONMENT)
    shown, end = b"", time.monotonic() + TIMEOUT_S
    with contextlib.suppress(OSError):  # EIO: nobody has the terminal open any more
        while select.select([controller], [], [], max(end - time.monotonic(), 0))[0]:
            shown += os.read(controller, 4096)
    os.close(controller)
    if time.monotonic() >= end:
        os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == 0, shown
    return shown.decode().splitlines()


@pytest.mark.parametrize("isa", ISAS)
def test_the_user_s_terminal_knows_its_session_and_groups(isa: str, tmp_path: Path) -> None:
    source = Path(__file__).with_name("job_control.c")
    native, guest = build(source, HOST_ISA, tmp_path / "native"), build(source, isa, tmp_path / "guest")
    expected = printed_at_a_terminal("/bin/sh", "-c", f"{native}; exit")
    assert len(expected) > 25
    assert printed_at_a_terminal(PERFEMU, "run", "--core", "ideal", guest) == expected
