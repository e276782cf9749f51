"""Hosts between which a run may not differ: other directories, users, environments, limits, and other work."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from end_to_end.command import ENVIRONMENT, PERFEMU, perfemu

OTHER_ENVIRONMENT = {
    "PATH": ENVIRONMENT["PATH"], "HOME": "/nonexistent", "USER": "somebody", "LOGNAME": "somebody", "LANG": "C",
    "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "1", "COLUMNS": "40", "TERM": "xterm", "FILLER": "x" * 5000,
    "PYTHONIOENCODING": "latin-1", "XDG_CACHE_HOME": "/nonexistent",
}  # fmt: skip
if str(PERFEMU).isascii():  # otherwise Python itself does not start so
    OTHER_ENVIRONMENT |= {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@dataclass(frozen=True)
class Host:
    """What may differ between two runs."""

    name: str
    cwd: str = "/"
    environment: dict[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))
    before: Callable[[], None] | None = None
    beside: Callable[[], AbstractContextManager[None]] = nullcontext  # while the run lasts


def _other_limits() -> None:
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)


def hosts_of(directory: Path) -> list[Host]:
    return [
        Host("plain"),
        Host("in the program's directory", str(directory), OTHER_ENVIRONMENT),
        Host("above it", str(directory.parent), {**ENVIRONMENT, "PYTHONHASHSEED": "77"}, _other_limits),
    ]


def idle_and_busy(directory: Path) -> list[Host]:
    idle, other, _ = hosts_of(directory)
    return [idle, replace(other, name="on a busy host", beside=_other_work)]


def everywhere(
    hosts: list[Host], *arguments: str | Path, data: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command on all hosts; all that comes out must be the same."""
    results = []
    for host in hosts:
        if data is not None:
            data.unlink(missing_ok=True)
        with host.beside():
            done = perfemu(*arguments, cwd=host.cwd, environment=host.environment, before=host.before)
        results.append((done.returncode, done.stdout, done.stderr, data.read_bytes() if data is not None else b""))
    for host, result in zip(hosts[1:], results[1:], strict=True):
        for what, one, other in zip(("status", "stdout", "stderr", "perf.data"), results[0], result, strict=True):
            assert one == other, f"{what} differs {host.name}"
    assert results[0][0] == 0, results[0][2]
    return done


@contextmanager
def _other_work() -> Iterator[None]:
    """Two processes that take all the CPU they can get."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
