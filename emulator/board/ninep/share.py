"""Share: a directory of the host's as the guest sees it: what there is of its attributes, and what may be changed.

Whoever assembles a board gives the directory, as a `Place`: its calls go by descriptors, and follow no link out of it.
Times of what the guest has changed are the guest's own, and numbers are given in the order in which files are seen, so
that the same guest sees the same.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol, Self

from emulator.board.ninep.wire import Qid

Names = tuple[str, ...]  # of a path, below the share
MOST_NAME_BYTES = 255
MOST_DEPTH = 256  # names of a path
NEW_FILE_BYTES = 4096  # what a new name counts as: it takes an inode of the host's
DIRECTORY_BYTES = 4096  # as whose size directories are shown
SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID


class Place(Protocol):
    """A name in a directory of the host. OSError says what the host refuses."""

    def child(self, name: str) -> Self: ...

    def status(self) -> os.stat_result: ...

    def target(self) -> str: ...

    def names(self) -> dict[str, os.stat_result]: ...

    def open(self, flags: int, permissions: int = 0) -> int: ...

    def set_mode(self, permissions: int) -> None: ...

    def set_times(self, times_ns: tuple[int, int] | None) -> None: ...

    def make_directory(self) -> None: ...

    def make_symlink(self, target: str) -> None: ...

    def make_link(self, source: Self) -> None: ...

    def remove(self) -> None: ...

    def remove_directory(self) -> None: ...

    def rename(self, target: Self) -> None: ...


@dataclass(frozen=True, slots=True)
class Attributes:
    qid: Qid
    mode: int
    owner: int
    group: int
    links: int
    size: int
    modified_ns: int


def refused(code: int) -> OSError:
    return OSError(code, os.strerror(code))


@dataclass
class Share:
    """`hidden`: of what is there for the host only. Every method may raise OSError."""

    root: Place
    writable: bool
    most_written_bytes: int
    hidden: Callable[[os.stat_result], bool]
    now_ns: Callable[[], int] = lambda: 0  # since 1970; the board's
    _numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    _fresh: Iterator[int] = field(default_factory=lambda: count(1))
    _modified_ns: dict[tuple[int, int], int] = field(default_factory=dict)
    _written: int = 0

    def place(self, names: Names) -> Place:
        if len(names) > MOST_DEPTH:
            raise refused(errno.ENAMETOOLONG)
        place = self.root
        for name in names:
            if name in ("", ".", "..") or "/" in name or "\0" in name:
                raise refused(errno.EINVAL)
            if len(os.fsencode(name)) > MOST_NAME_BYTES:
                raise refused(errno.ENAMETOOLONG)
            place = place.child(name)
        return place

    # ---- looks

    def status(self, names: Names) -> os.stat_result:
        status = self.place(names).status()
        if self.hidden(status):
            raise refused(errno.ENOENT)
        return status

    def qid(self, status: os.stat_result) -> Qid:
        key = status.st_dev, status.st_ino
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = next(self._fresh)
        return Qid(number, status.st_mode)

    def attributes(self, status: os.stat_result) -> Attributes:
        """Files of the host's user are root's: so who that is on the host is not seen."""
        is_directory = stat.S_ISDIR(status.st_mode)
        return Attributes(
            self.qid(status),
            status.st_mode,
            0 if status.st_uid == os.geteuid() else status.st_uid,
            0 if status.st_gid == os.getegid() else status.st_gid,
            2 if is_directory else status.st_nlink,
            DIRECTORY_BYTES if is_directory else status.st_size,
            self._modified_ns.get((status.st_dev, status.st_ino), status.st_mtime_ns),
        )

    def entries(self, names: Names) -> list[tuple[str, Qid]]:
        """In the order of their names, whatever the host's is."""
        self.status(names)
        found = sorted(self.place(names).names().items(), key=lambda entry: os.fsencode(entry[0]))
        return [(name, self.qid(status)) for name, status in found if not self.hidden(status)]

    def target(self, names: Names) -> str:
        self.status(names)
        return self.place(names).target()

    def open(self, names: Names, flags: int) -> int:
        """A descriptor of a file that is one, or of a directory."""
        writes = flags & os.O_ACCMODE != os.O_RDONLY or flags & os.O_TRUNC
        if writes:
            self.check_writable()
        status = self.status(names)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise refused(errno.EPERM)
        descriptor = self.place(names).open(flags & (os.O_ACCMODE | os.O_TRUNC | os.O_DIRECTORY))
        return self._checked(descriptor)

    def _checked(self, descriptor: int) -> int:
        """What it is now: it may have become another."""
        status = os.fstat(descriptor)
        if self.hidden(status) or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            os.close(descriptor)
            raise refused(errno.EPERM)
        return descriptor

    # ---- changes

    def check_writable(self) -> None:
        if not self.writable:
            raise refused(errno.EROFS)

    def spend(self, count: int) -> None:
        """ENOSPC when the guest has written all that it may."""
        if self._written + count > self.most_written_bytes:
            raise refused(errno.ENOSPC)
        self._written += count

    def note_change(self, status: os.stat_result) -> None:
        self._modified_ns[status.st_dev, status.st_ino] = self.now_ns()

    def _note(self, *paths: Names) -> None:
        for names in paths:
            self.note_change(self.status(names))

    def _may_make(self, names: Names, permissions: int = 0) -> Place:
        self.check_writable()
        if not names:
            raise refused(errno.EEXIST)
        if permissions & SPECIAL_BITS:
            raise refused(errno.EPERM)
        self.status(names[:-1])
        self.spend(NEW_FILE_BYTES)
        return self.place(names)

    def create(self, names: Names, flags: int, permissions: int) -> int:
        place = self._may_make(names, permissions)
        kept = flags & (os.O_ACCMODE | os.O_TRUNC | os.O_EXCL)
        descriptor = self._checked(place.open(kept | os.O_CREAT, 0o600))
        os.fchmod(descriptor, permissions & 0o777)
        self._note(names, names[:-1])
        return descriptor

    def make_directory(self, names: Names, permissions: int) -> None:
        place = self._may_make(names, permissions & ~stat.S_ISGID)
        place.make_directory()
        place.set_mode(permissions & 0o1777)
        self._note(names, names[:-1])

    def make_symlink(self, names: Names, target: str) -> None:
        self._may_make(names).make_symlink(target)
        self._note(names, names[:-1])

    def make_link(self, names: Names, source: Names) -> None:
        self.status(source)
        self._may_make(names).make_link(self.place(source))
        self._note(names[:-1])

    def remove(self, names: Names, *, directory: bool) -> None:
        self.check_writable()
        if not names:
            raise refused(errno.EBUSY)
        status = self.status(names)
        if directory:
            self.place(names).remove_directory()
        else:
            self.place(names).remove()
        self.forget_if_gone(status, names_left=1)
        self._note(names[:-1])

    def forget_if_gone(self, status: os.stat_result, *, names_left: int) -> None:
        """It has no name any more if it had so many: the host may give its number to another file."""
        if status.st_nlink == names_left or (names_left and stat.S_ISDIR(status.st_mode)):
            self._numbers.pop((status.st_dev, status.st_ino), None)
            self._modified_ns.pop((status.st_dev, status.st_ino), None)

    def rename(self, source: Names, target: Names) -> None:
        self.check_writable()
        if not source or not target:
            raise refused(errno.EBUSY)
        moved, replaced = self.status(source), None
        with suppress(FileNotFoundError):
            replaced = self.status(target)
        self.status(target[:-1])
        self.spend(NEW_FILE_BYTES)
        self.place(source).rename(self.place(target))
        if replaced is not None and not os.path.samestat(moved, replaced):
            self.forget_if_gone(replaced, names_left=1)
        self._note(source[:-1], target[:-1])

    def set_mode(self, names: Names, permissions: int) -> None:
        self.check_writable()
        self.status(names)
        if permissions & SPECIAL_BITS:
            raise refused(errno.EPERM)
        self.place(names).set_mode(permissions & 0o1777)

    def set_size(self, names: Names, size: int) -> None:
        descriptor = self.open(names, os.O_WRONLY)
        try:
            os.ftruncate(descriptor, size)
            self.note_change(os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def set_modified(self, names: Names, modified_ns: int | None) -> None:
        """None: now."""
        self.check_writable()
        status = self.status(names)
        self.place(names).set_times(None if modified_ns is None else (modified_ns, modified_ns))
        self._modified_ns[status.st_dev, status.st_ino] = self.now_ns() if modified_ns is None else modified_ns
