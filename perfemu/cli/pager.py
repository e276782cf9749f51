"""paged: what a command prints on a terminal, through the user's pager; elsewhere as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from perfemu.errors import PerfemuError

_VARIABLES = ("PERF_PAGER", "PAGER")  # perf's, in its order
_USUAL = ("pager", "less")  # Debian's alternative first
_LESS = "FRSX"  # what perf sets: quit if it fits, colours, long lines cut off, nothing cleared
_NOT_THERE = (126, 127)  # a shell's status of what it cannot run


def pager() -> str:
    """The command, by perf's variables; empty if there is to be none."""
    for variable in _VARIABLES:
        if variable in os.environ:
            return "" if os.environ[variable] == "cat" else os.environ[variable]
    return next((name for name in _USUAL if shutil.which(name)), "")


def is_terminal() -> bool:
    return sys.stdout.isatty()


def shows_colours() -> bool:
    """Whether standard output is a terminal that has them."""
    return is_terminal() and os.environ.get("TERM", "dumb") != "dumb"


@contextmanager
def paged() -> Iterator[None]:
    """Standard output goes to the pager until the end, and its end is waited for. Raises PerfemuError."""
    command = pager() if is_terminal() else ""
    if not command:
        yield
        return
    sys.stdout.flush()
    terminal = os.dup(sys.stdout.fileno())
    environment = {"LESS": _LESS, **os.environ}
    with subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None, "it was asked for"
        os.dup2(process.stdin.fileno(), sys.stdout.fileno())
        process.stdin.close()
        try:
            with suppress(BrokenPipeError, KeyboardInterrupt):  # the user has seen enough
                yield
                sys.stdout.flush()
        finally:
            _give_back(terminal)
            _wait(process)
    if process.returncode in _NOT_THERE:
        raise PerfemuError(f"the pager '{command}' cannot be run: PERF_PAGER or PAGER names it, cat is none")


def _give_back(terminal: int) -> None:
    """What is left in the buffer is for a pager that has gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    descriptor = sys.stdout.fileno()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(nowhere, descriptor)
        sys.stdout.flush()
    os.close(nowhere)
    os.dup2(terminal, descriptor)
    os.close(terminal)


def _wait(process: subprocess.Popen[bytes]) -> None:
    """A pager has its own idea of what Ctrl-C means."""
    while True:
        with suppress(KeyboardInterrupt):
            process.wait()
            return
