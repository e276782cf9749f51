"""The installed command `perfemu`, run as its user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PERFEMU = Path(sys.executable).with_name("perfemu")
TIMEOUT_S = 60
ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}


def perfemu(
    *arguments: str | Path,
    cwd: Path | str = "/",
    environment: Mapping[str, str] = ENVIRONMENT,
    stdin: bytes = b"",
    before: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run it to its end. `before` runs in the new process before the command."""
    return subprocess.run(
        [PERFEMU, *arguments], input=stdin, capture_output=True, cwd=cwd, env=environment, preexec_fn=before,
        timeout=TIMEOUT_S, check=False,
    )  # fmt: skip


def start(
    arguments: Sequence[str | Path], cwd: Path | str, before: Callable[[], None] | None = None
) -> subprocess.Popen[bytes]:
    """Start it with a pipe as its input."""
    return subprocess.Popen(
        [PERFEMU, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
        env=ENVIRONMENT, preexec_fn=before,
    )  # fmt: skip


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
