"""HostWatch: what of the host the emulator touches, seen from inside its process; and what a directory tree holds."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from pathlib import Path

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# Events of sys.addaudithook (Python's table of audit events), and which of their arguments are paths.
_CHANGES = {
    "os.chmod": (0,), "os.chown": (0,), "os.link": (0, 1), "os.mkdir": (0,), "os.remove": (0,), "os.rename": (0, 1),
    "os.rmdir": (0,), "os.symlink": (1,), "os.truncate": (0,), "os.utime": (0,), "os.setxattr": (0,),
    "os.removexattr": (0,), "os.mkfifo": (0,), "os.mknod": (0,), "os.chflags": (0,),
}  # fmt: skip
_NEVER = (
    "socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.kill", "os.killpg", "os.chdir",
    "os.fchdir", "os.putenv", "signal.pthread_kill", "ctypes.", "shutil.", "tempfile.", "pty.",
)  # fmt: skip


class Touched(AssertionError):
    """The guest has reached what it may not."""


class HostWatch:
    """From `begin` on the process may change files below `allowed` and nothing else. There is no end: fork before."""

    def __init__(self, allowed: str) -> None:
        self._allowed = os.path.realpath(allowed)
        self.touched: list[str] = []

    def begin(self) -> None:
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING and not isinstance(path, int):
                self._check(event, path)
        elif event in _CHANGES:
            for number in _CHANGES[event]:
                path = arguments[number]
                self._check(event, path if not isinstance(path, int) else f"/proc/self/fd/{path}")
        elif event.startswith(_NEVER):
            self._say(f"{event}{arguments}")

    def _check(self, event: str, path: object) -> None:
        """Where the path leads, its last component aside, which is what changes, or is opened without following."""
        assert isinstance(path, str | bytes | os.PathLike)
        text = os.fsdecode(path)
        if text == "/dev/null":
            return
        if text.startswith("/proc/self/fd/"):
            real = os.path.realpath(text)
        else:
            directory, _, name = text.rpartition("/")
            real = os.path.join(os.path.realpath(directory or "/"), name)
        if real != self._allowed and not real.startswith(self._allowed + "/"):
            self._say(f"{event} of {text}, which is {real}")

    def _say(self, what: str) -> None:
        self.touched.append(what)
        raise Touched(what)


def tree(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything below a directory: kinds, modes, times of change, contents. Access times are no change."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (root, *sorted(root.rglob("*"))):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(status.st_mode) else ""
        found[str(path)] = (
            status.st_mode,
            status.st_uid,
            status.st_nlink,
            status.st_mtime_ns,
            status.st_ctime_ns,
            content,
        )
    return found
