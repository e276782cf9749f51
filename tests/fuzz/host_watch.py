"""HostWatch: what of the host the emulator touches, seen from inside its process; and what a directory tree holds."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from pathlib import Path

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# Events of sys.addaudithook (Python's table of audit events), and which of their arguments are paths, each with the
# descriptor of the directory where it begins.
_CHANGES = {
    "os.chmod": ((0, 2),), "os.chown": ((0, 3),), "os.link": ((0, 2), (1, 3)), "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),), "os.rename": ((0, 2), (1, 3)), "os.rmdir": ((0, 1),), "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),), "os.utime": ((0, 3),), "os.setxattr": ((0, None),), "os.removexattr": ((0, None),),
    "os.mkfifo": ((0, 2),), "os.mknod": ((0, 3),), "os.chflags": ((0, None),),
}  # fmt: skip
_HARMLESS = ("ctypes.get_errno",)
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
        self._opening_in: int | None = None  # os.open's event does not tell its dir_fd

    def begin(self) -> None:
        plain_open = os.open

        def watched_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            self._opening_in = dir_fd
            try:
                return plain_open(path, flags, mode, dir_fd=dir_fd)
            finally:
                self._opening_in = None

        os.open = watched_open  # type: ignore[assignment]
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING and not isinstance(path, int):
                self._check(event, path, self._opening_in)
        elif event in _CHANGES:
            for number, directory in _CHANGES[event]:
                path = arguments[number]
                above = arguments[directory] if directory is not None else None
                self._check(event, path if not isinstance(path, int) else f"/proc/self/fd/{path}", above)
        elif event.startswith(_NEVER) and event not in _HARMLESS:
            self._say(f"{event}{arguments}")

    def _check(self, event: str, path: object, above: object = None) -> None:
        """Where the path leads, its last component aside, which is what changes, or is opened without following."""
        assert isinstance(path, str | bytes | os.PathLike)
        text = os.fsdecode(path)
        if text == "/dev/null":
            return
        if isinstance(above, int) and above >= 0:
            directory = os.readlink(f"/proc/self/fd/{above}")
            text = f"{directory}/{text}" if text != "." else directory
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
