"""Host places: where the host keeps what the guest sees, and all that is done there, by descriptors.

A place is a name in a directory of the host. The directory is opened below the `Anchor`, which is held open from the
start, and never through a symbolic link (beneath.py); the name is then used in that very directory, and no call follows
a link there. So nobody who renames beside us leads a call elsewhere, and a directory that was moved
away is not there any more. Paths are for messages, and for what may be read anywhere anyway (`Everywhere`).

This is the only file of the machine's in which the host's file system is asked by names.
"""

from __future__ import annotations

import errno
import os
import stat as file_mode
from typing import Protocol

from emulator.linux.fs.beneath import DIRECTORY, OpenBeneath

# O_NONBLOCK: should the file have become a FIFO meanwhile, the open does not wait.
OPEN_SAFELY = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
DIRECTORIES_OPEN = 16  # below each anchor, at least two
NOT_THE_WAY_IT_WAS = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EXDEV})  # a link or a file stands in the way now


class Start(Protocol):
    """Where the ways to places begin."""

    @property
    def path(self) -> str: ...

    def way(self, below: str, *, again: bool = False, above: os.stat_result | None = None) -> tuple[int | None, str]:
        """A descriptor of the directory that holds `below`, or None for the host's root; and the name there.

        `below` is a relative path, or "" for the start itself. The descriptor is good until two other ways were asked.
        Neither the way nor what is on it need be looked at twice in one call of the guest's: `again`, if this very way
        has been asked in it; `above`, the status of the directory if that has been.
        """


class Anchor:
    """A directory of the host, held open: everything below it, and nothing else."""

    __slots__ = ("_descriptor", "_known", "_open_beneath", "path")

    def __init__(self, path: str, open_beneath: OpenBeneath) -> None:
        """`path` is absolute and real. OSError if it is no directory, or has become another one."""
        self._descriptor = -1
        self._known: dict[str, tuple[int, int, int]] = {}  # path below -> descriptor, st_dev, st_ino; the latest last
        self.path = path
        self._open_beneath = open_beneath
        root = os.open("/", DIRECTORY)
        try:
            self._descriptor = open_beneath(root, path[1:]) if path != "/" else os.dup(root)
        finally:
            os.close(root)

    def __del__(self) -> None:
        for descriptor, _, _ in self._known.values():
            os.close(descriptor)
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def way(self, below: str, *, again: bool = False, above: os.stat_result | None = None) -> tuple[int | None, str]:
        directory, _, name = below.rpartition("/")
        if not directory:
            return self._descriptor, name or "."
        known = self._known.pop(directory, None)
        if known is not None and (again or self._is_there(directory, known, above)):
            self._known[directory] = known
            return known[0], name
        if known is not None:
            os.close(known[0])
        return self._open(directory), name

    def _is_there(self, directory: str, known: tuple[int, int, int], seen: os.stat_result | None) -> bool:
        """Whether a directory that is open is still the one at its path: others see the guest's files where it does.

        Nothing depends on the answer but which directory is meant. Whatever comes to stand there: what is open has been
        reached without a link, and while it is open its number is no other's. `seen`: what stood there in this call.
        """
        try:
            status = os.stat(directory, dir_fd=self._descriptor, follow_symlinks=False) if seen is None else seen
        except OSError:
            return False
        return status.st_ino == known[2] and status.st_dev == known[1]

    def _open(self, above: str) -> int:
        try:
            descriptor = self._open_beneath(self._descriptor, above)
        except OSError as error:
            raise _gone(error, f"{self.path}/{above}") from error
        status = os.fstat(descriptor)
        self._known[above] = descriptor, status.st_dev, status.st_ino
        if len(self._known) > DIRECTORIES_OPEN:
            oldest = next(iter(self._known))
            os.close(self._known.pop(oldest)[0])
        return descriptor


class Everywhere:
    """The whole host by its paths, for looking and reading only: a guest that may read all that its user may."""

    path = "/"

    def way(self, below: str, *, again: bool = False, above: os.stat_result | None = None) -> tuple[int | None, str]:
        return None, "/" + below


def _gone(error: OSError, path: str) -> OSError:
    """What it means that something cannot be opened as what it has been."""
    if error.errno not in NOT_THE_WAY_IT_WAS:
        return error
    return FileNotFoundError(errno.ENOENT, f"{path} has been moved away or replaced while it was open")


def _joined(path: str, below: str) -> str:
    return f"{path.rstrip('/')}/{below}" if below else path


class Place:
    """A name in a directory of the host. Every method is one look or one change; OSError says what the host refuses.

    `again`: its status was asked in this very call of the guest's.
    """

    __slots__ = ("_below", "_start", "path")

    def __init__(self, start: Start, below: str = "", path: str | None = None) -> None:
        """`path`: what is in messages, if it is known already."""
        self._start = start
        self._below = below
        self.path = _joined(start.path, below) if path is None else path

    def child(self, name: str) -> Place:
        assert name not in ("", ".", ".."), f"{name!r} names no entry"
        assert "/" not in name, f"{name!r} is not one name"
        if not self._below:
            return Place(self._start, name)
        return Place(self._start, f"{self._below}/{name}", f"{self.path}/{name}")

    # ---- looks

    def status(self, above: os.stat_result | None = None) -> os.stat_result:
        """lstat. `above`: that of the directory, if it was asked in this very call of the guest's."""
        directory, name = self._start.way(self._below, above=above)
        return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def permits(self, wanted: int, *, again: bool = False) -> bool:
        """Whether the host's user may: access(2)."""
        directory, name = self._start.way(self._below, again=again)
        return os.access(name, wanted, dir_fd=directory, follow_symlinks=False)

    def target(self, *, again: bool = False) -> str:
        """What the symbolic link says."""
        directory, name = self._start.way(self._below, again=again)
        return os.readlink(name, dir_fd=directory)

    def names(self) -> dict[str, os.stat_result]:
        """What the directory holds, in the host's order."""
        found = {}
        descriptor = self.open(os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(descriptor) as scan:
                for entry in scan:
                    try:
                        found[entry.name] = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # somebody has removed it meanwhile
                        continue
        finally:
            os.close(descriptor)
        return found

    # ---- opens

    def open(self, flags: int, permissions: int = 0, *, again: bool = False) -> int:
        """A descriptor of what is there now. What it is, its owner looks at by that descriptor."""
        directory, name = self._start.way(self._below, again=again)
        try:
            return os.open(name, flags | OPEN_SAFELY, permissions, dir_fd=directory)
        except OSError as error:
            raise _gone(error, self.path) from error

    # ---- changes

    def set_mode(self, permissions: int) -> None:
        descriptor = self.open(os.O_PATH)
        try:
            if file_mode.S_ISLNK(os.fstat(descriptor).st_mode):
                raise FileNotFoundError(errno.ENOENT, f"{self.path} has been replaced by a symbolic link")
            os.chmod(f"/proc/self/fd/{descriptor}", permissions)  # fchmod takes no O_PATH
        finally:
            os.close(descriptor)

    def set_times(self, times_ns: tuple[int, int] | None) -> None:
        """When it was accessed and modified; None for now."""
        directory, name = self._start.way(self._below)
        if times_ns is None:
            os.utime(name, dir_fd=directory, follow_symlinks=False)
        else:
            os.utime(name, ns=times_ns, dir_fd=directory, follow_symlinks=False)

    def make_directory(self) -> None:
        """For the user alone, until `set_mode` says otherwise."""
        directory, name = self._start.way(self._below)
        os.mkdir(name, 0o700, dir_fd=directory)

    def make_symlink(self, target: str) -> None:
        directory, name = self._start.way(self._below)
        os.symlink(target, name, dir_fd=directory)

    def make_link(self, source: Place) -> None:
        """One more name, here, of what is at `source`."""
        directory, name = self._start.way(self._below)
        source_directory, source_name = source._start.way(source._below)
        os.link(
            source_name, name, src_dir_fd=source_directory, dst_dir_fd=directory, follow_symlinks=False
        )  # fmt: skip

    def remove(self) -> None:
        directory, name = self._start.way(self._below)
        os.unlink(name, dir_fd=directory)

    def remove_directory(self) -> None:
        directory, name = self._start.way(self._below)
        os.rmdir(name, dir_fd=directory)

    def rename(self, target: Place) -> None:
        directory, name = self._start.way(self._below)
        target_directory, target_name = target._start.way(target._below)
        os.rename(name, target_name, src_dir_fd=directory, dst_dir_fd=target_directory)
