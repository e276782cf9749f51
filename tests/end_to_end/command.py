"""The installed command `perfemu`, run as its user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ideal import on_ideal

PERFEMU = Path(sys.executable).with_name("perfemu")
TIMEOUT_S = 300
ENOUGH_S = 5.0  # from a signal to the end: 0.1 s on an idle host, and the rest for a busy one
STARTED_S = 2.5  # of CPU time: by then the guest runs, on however busy or slow a host
LINE = b"." * 65535 + b"\n"  # fills a read from a pipe
ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}


def perfemu(
    *arguments: str | Path,
    cwd: Path | str = "/",
    environment: Mapping[str, str] = ENVIRONMENT,
    stdin: bytes = b"",
    before: Callable[[], None] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> subprocess.CompletedProcess[bytes]:
    """Run it to its end, on the ideal core. `before` runs in the new process before the command."""
    return subprocess.run(
        [PERFEMU, *on_ideal(arguments)], input=stdin, capture_output=True, cwd=cwd, env=environment, preexec_fn=before,
        timeout=timeout_s, check=False,
    )  # fmt: skip


def start(
    arguments: Sequence[str | Path], cwd: Path | str, before: Callable[[], None] | None = None
) -> subprocess.Popen[bytes]:
    """Start it with a pipe as its input."""
    return subprocess.Popen(
        [PERFEMU, *on_ideal(arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
        env=ENVIRONMENT, preexec_fn=before,
    )  # fmt: skip


def wait_for_guest(process: subprocess.Popen[Any], echoes: bool = False) -> None:
    """Until the guest has answered a line and reads again, or uses the CPU for good."""
    if echoes:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(LINE)
        process.stdin.flush()
        assert process.stdout.readline() == LINE
        return
    while cpu_seconds(process.pid) < STARTED_S:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def cpu_seconds(pid: int) -> float:
    """Those of a process that has not been waited for: utime and stime of proc(5)'s stat."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sleeps(pid: int) -> bool:
    """It has nothing to do; one that has, and waits for a CPU, does not sleep."""
    return _stat(pid)[0] == "S"


def _stat(pid: int) -> list[str]:
    """The fields of proc(5)'s stat, from the state on."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    """The one line on stderr that says what is wrong."""
    text = done.stderr.decode()
    assert text.startswith("perfemu: "), text
    assert text.count("\n") == 1, text
    assert "internal error" not in text
    assert "Traceback" not in text
    return text.removeprefix("perfemu: ").rstrip("\n")


def killed_by(status: int) -> signal.Signals | None:
    """The signal that ended a process whose returncode is `status`."""
    return signal.Signals(-status) if status < 0 else None
