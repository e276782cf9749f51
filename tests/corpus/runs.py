"""A case on this host's Linux and on the emulated one, and what came of it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.corpus import CHANGED_S, write_files
from corpus.cases import Case
from corpus.debian_machine import STATUS, command

PERFEMU = Path(sys.executable).with_name("perfemu")
INPUTS = Path(__file__).with_name("inputs")
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "LC_ALL": "C",
    "TERM": "dumb",
    "TZ": "UTC",
    "PYTHONDONTWRITEBYTECODE": "1",
}
GUEST_PORT = 8000  # nobody else is there
PORTS = 4
NOT_THE_PROGRAM_S = re.compile(rb"^(perfemu|proot warning|proot info|qemu: uncaught target signal).*\n", re.MULTILINE)
DEATH = re.compile(rb"^[^\n]+: [A-Z][^\n:]+\n\Z", re.MULTILINE)  # what perfemu says when a signal has killed a program
COMPLAINT = re.compile(rb"^perfemu: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did. `status` as a shell says it; None if it took too long."""

    status: int | None
    stdout: bytes
    stderr: bytes

    def __str__(self) -> str:
        return f"status {self.status}\n{_text(self.stdout)}--- stderr\n{_text(self.stderr)}"


@dataclass(frozen=True, slots=True)
class Run:
    outcome: Outcome
    complaints: tuple[str, ...]  # of perfemu


def run_here(case: Case, root: Path, place: Path) -> Run:
    """On the emulated machine. `place` becomes the working directory."""
    make_files(case, place)
    settings = [f"--env={name}={value}" for name, value in ENVIRONMENT.items()] + [f"--env=PORT={GUEST_PORT}"]
    argv = [str(PERFEMU), "run", "--core", "ideal", "--sysroot", str(root), *settings, "--", *case.argv]
    run = _run(argv, case, place, {"PATH": os.environ.get("PATH", "")})
    stderr = DEATH.sub(b"", run.outcome.stderr) if (run.outcome.status or 0) > 128 else run.outcome.stderr
    return replace(run, outcome=replace(run.outcome, stderr=stderr))


def run_on_linux(case: Case, isa: str, root: Path, place: Path) -> Run:
    """On the host's kernel, the program for `isa`. `place` becomes the working directory."""
    make_files(case, place)
    temporary = place.with_name(f"{place.name}.tmp")
    temporary.mkdir()
    argv = command(isa, root, place, temporary, case.argv)
    run = _run(argv, case, place, {**ENVIRONMENT, "PORT": str(free_ports())})
    told = temporary / STATUS
    if run.outcome.status is not None:
        run = replace(run, outcome=replace(run.outcome, status=int(told.read_text()) if told.exists() else -1))
    shutil.rmtree(temporary)
    return run


def make_files(case: Case, directory: Path) -> None:
    write_files(directory)
    for name, text in case.files:
        (directory / name).write_text(text.removeprefix("\n"), encoding="utf-8")
    for name in case.inputs:
        shutil.copy(INPUTS / name, directory)
    for path in (*directory.iterdir(), directory):
        os.utime(path, (CHANGED_S, CHANGED_S))  # before the guest's time begins


def free_ports() -> int:
    """The first of PORTS ports that nobody has now."""
    while True:
        with ExitStack() as stack:
            first = stack.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            try:
                for number in range(port + 1, port + PORTS):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", number))
            except (OSError, OverflowError):
                continue
            return port


def _run(argv: Sequence[str], case: Case, directory: Path, environment: Mapping[str, str]) -> Run:
    out, err = directory.with_name(f"{directory.name}.out"), directory.with_name(f"{directory.name}.err")
    stdin = directory / case.stdin if case.stdin else Path(os.devnull)
    with stdin.open("rb") as standard_input, out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            argv,
            stdin=standard_input,
            stdout=stdout,
            stderr=stderr,
            env=dict(environment),
            cwd=directory,
            start_new_session=True,
        )
        try:
            status: int | None = process.wait(case.timeout_s)
        except subprocess.TimeoutExpired:
            status = None
            process.send_signal(signal.SIGTERM)  # proot then ends what it runs
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if status is not None and status < 0:
        status = 128 - status
    stderr_text = err.read_bytes()
    complaints = tuple(line.decode(errors="replace") for line in COMPLAINT.findall(stderr_text))
    return Run(Outcome(status, out.read_bytes(), NOT_THE_PROGRAM_S.sub(b"", stderr_text)), complaints)


def _text(output: bytes, limit: int = 4000) -> str:
    text = output.decode(errors="backslashreplace")
    if len(text) > limit:
        text = f"{text[:limit]}\n[{len(text):,} characters]"
    return text if not text or text.endswith("\n") else f"{text}\n"
