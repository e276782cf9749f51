"""OutputFile: a file that a command writes: nameless while the guest runs, and at its name once it is whole.

So the guest does not see it, cannot reach it, and finds its directory as without us; a run that fails leaves what was
there before. Devices and FIFOs are written through.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from types import TracebackType
from typing import BinaryIO, Protocol, TextIO

from perfemu.errors import PerfemuError
from perfemu.output_place import Place, opened_directory

_BUFFER_BYTES = 1 << 20
_NO_NAMELESS = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)  # of open(2), where there is no O_TMPFILE
_NOT_OURS_TO_CHANGE = (errno.EACCES, errno.EPERM, errno.EROFS)
_MODE = 0o666  # less the umask


class OutputFile(Protocol):
    """What `open_output` gives. `file` is open for bytes until `publish` or `discard`."""

    file: BinaryIO
    is_stream: bool  # written through: there is no way back in it

    def publish(self) -> str:
        """All is written: the path at which it now is, another than was asked for if the guest has spoilt that."""

    def discard(self) -> None:
        """Forget it; what was there before stays as it is."""


@contextmanager
def _one_line(path: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # whoever read it has gone
    except OSError as error:
        raise PerfemuError(f"cannot write {path}: {error.strerror}") from None


def open_output(path: str, *, keeps_old: bool = False, appends: bool = False) -> OutputFile:
    """Before the program runs, so that a wrong name is no wasted run. PerfemuError if it cannot be written.

    With `keeps_old` what is there becomes FILE.old, as perf has it, unless it is empty. A symbolic link is not
    followed, for a guest may have left it, but in the host's /dev and /proc (/dev/stdout): it is replaced.
    """
    with _one_line(path):
        directory, name = os.path.split(path)
        if not path:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        if name in ("", ".", ".."):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        place = Place(path, opened_directory(directory), name)
        try:
            found = place.status()
            follows = found is not None and stat.S_ISLNK(found.st_mode) and place.is_the_hosts_own
            if follows:
                found = os.stat(name, dir_fd=place.directory)
            if found is not None and stat.S_ISDIR(found.st_mode):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
            if found is not None and (follows or not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode))):
                return _Through(place, found.st_mode, os.O_NOFOLLOW if not follows else 0)
            if appends and found is not None and stat.S_ISREG(found.st_mode):
                return _Appended(place)
            return _Replacement(place, found, keeps_old)
        except OSError:
            place.close()
            raise


def write_file(path: str, contents: bytes) -> str:
    """All at once; the path at which it is. Raises PerfemuError."""
    output = open_output(path)
    try:
        with _one_line(path):
            output.file.write(contents)
            output.file.flush()
    except BaseException:
        output.discard()
        raise
    return output.publish()


def _nameless(place: Place) -> int:
    """A file in the directory that has no name there, or has none any more."""
    try:
        return os.open(".", os.O_TMPFILE | os.O_RDWR, _MODE, dir_fd=place.directory)
    except OSError as error:
        if error.errno not in _NO_NAMELESS:
            raise
    descriptor, name = _fresh(place)
    os.unlink(name, dir_fd=place.directory)
    return descriptor


def _free_names(name: str) -> Iterator[str]:
    yield f"{name}.new"
    yield from (f"{name}.new{number}" for number in count(1))


def _fresh(place: Place) -> tuple[int, str]:
    for name in _free_names(place.name):
        try:
            flags = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR
            return os.open(name, flags, _MODE, dir_fd=place.directory), name
        except FileExistsError:
            continue
    raise AssertionError("there is always another name")


def _copy(source: int, destination: int) -> None:
    offset = 0
    while copied := os.sendfile(destination, source, offset, _BUFFER_BYTES):
        offset += copied


def _named(place: Place, descriptor: int) -> str:
    """Give the nameless file a name that nothing has; that name."""
    for name in _free_names(place.name):
        try:
            here = f"/proc/self/fd/{descriptor}"
            os.link(here, name, dst_dir_fd=place.directory, follow_symlinks=True)
            return name
        except FileExistsError:
            continue
        except OSError:
            break  # it had a name once, or comes from another file system
    copy, name = _fresh(place)
    try:
        _copy(descriptor, copy)
    except OSError:
        os.unlink(name, dir_fd=place.directory)
        raise
    finally:
        os.close(copy)
    return name


class _Nameless:
    """What writes a file that cannot be seen; `_descriptor` is another one of it, for the end."""

    is_stream = False

    def __init__(self, place: Place, descriptor: int) -> None:
        self._place = place
        self._descriptor = descriptor
        self.file: BinaryIO = open(os.dup(descriptor), "wb", buffering=_BUFFER_BYTES)  # noqa: SIM115  # until the end

    def _close(self) -> None:
        """Without another try to write what could not be written."""
        if isinstance(self.file, io.BufferedWriter):
            self.file.raw.close()
        os.close(self._descriptor)
        self._place.close()


class _Replacement(_Nameless):
    """A regular file, new or in the place of an old one."""

    def __init__(self, place: Place, old: os.stat_result | None, keeps_old: bool) -> None:
        self._keeps_old = keeps_old
        self._in_place = -1  # the old file, where it may be written and its directory may not
        regular = old is not None and stat.S_ISREG(old.st_mode)
        if regular and not (keeps_old and old is not None and old.st_size):
            self._in_place = os.open(place.name, os.O_WRONLY | os.O_NOFOLLOW, dir_fd=place.directory)
        if keeps_old:
            backup = place.status(f"{place.name}.old")
            if backup is not None and stat.S_ISDIR(backup.st_mode):
                raise OSError(errno.EISDIR, f"{place.name}.old is a directory, and what is there becomes that")
        try:
            descriptor = _nameless(place)
            self._only_in_place = False
        except OSError as error:
            if self._in_place < 0 or error.errno not in _NOT_OURS_TO_CHANGE:
                raise
            with tempfile.TemporaryFile() as elsewhere:
                descriptor = os.dup(elsewhere.fileno())
            self._only_in_place = True
        if regular and old is not None and not keeps_old:
            with suppress(OSError):
                os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
        super().__init__(place, descriptor)

    def publish(self) -> str:
        with _one_line(self._place.path):
            try:
                if not self.file.closed:  # by whoever salvaged what is there
                    self.file.flush()
                return self._publish()
            finally:
                self.discard()

    def _publish(self) -> str:
        if self._only_in_place:
            return self._written_in_place()
        try:
            name = _named(self._place, self._descriptor)
        except FileNotFoundError:
            self._place.use_parent()
            name = _named(self._place, self._descriptor)
            return self._place.shown(name)
        try:
            if self._keeps_old:
                self._make_old()
            directory = self._place.directory
            os.rename(name, self._place.name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError as error:
            if error.errno == errno.EBUSY and self._in_place >= 0:  # mounted there
                os.unlink(name, dir_fd=self._place.directory)
                return self._written_in_place()
            return self._place.shown(name)
        return self._place.shown(self._place.name)

    def _make_old(self) -> None:
        old = self._place.status()
        if old is None or stat.S_ISDIR(old.st_mode) or (stat.S_ISREG(old.st_mode) and not old.st_size):
            return
        directory, name = self._place.directory, self._place.name
        os.rename(name, f"{name}.old", src_dir_fd=directory, dst_dir_fd=directory)

    def _written_in_place(self) -> str:
        os.ftruncate(self._in_place, 0)
        _copy(self._descriptor, self._in_place)
        return self._place.path

    def discard(self) -> None:
        if self._in_place >= 0:
            os.close(self._in_place)
        self._close()


class _Appended(_Nameless):
    """More for a regular file that is there: it comes to its end in one piece."""

    def __init__(self, place: Place) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
        self._old = os.open(place.name, flags, dir_fd=place.directory)
        with tempfile.TemporaryFile() as elsewhere:
            descriptor = os.dup(elsewhere.fileno())
        super().__init__(place, descriptor)

    def publish(self) -> str:
        with _one_line(self._place.path):
            try:
                self.file.flush()
                os.lseek(self._descriptor, 0, os.SEEK_SET)
                more = os.read(self._descriptor, os.fstat(self._descriptor).st_size)
                now = self._place.status()
                if now is not None and os.path.samestat(now, os.fstat(self._old)):
                    _write_all(self._old, more)
                    return self._place.shown(self._place.name)
                name = _named(self._place, self._descriptor)  # the guest has taken the file away
                return self._place.shown(name)
            finally:
                self.discard()

    def discard(self) -> None:
        os.close(self._old)
        self._close()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


class _Through:
    """A device or FIFO, or what /dev/stdout is."""

    is_stream = True

    def __init__(self, place: Place, mode: int, flags: int) -> None:
        descriptor = os.open(place.name, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | flags, dir_fd=place.directory)
        if stat.S_IFMT(os.fstat(descriptor).st_mode) != stat.S_IFMT(mode):
            os.close(descriptor)
            raise OSError(errno.EBUSY, "it was exchanged for another file just now")
        self._path = place.path
        place.close()
        self.file: BinaryIO = open(descriptor, "wb", buffering=_BUFFER_BYTES)  # noqa: SIM115  # until the end

    def publish(self) -> str:
        with _one_line(self._path):
            try:
                self.file.flush()
            finally:
                self.discard()
        return self._path

    def discard(self) -> None:
        if isinstance(self.file, io.BufferedWriter):
            self.file.raw.close()


class OutputText:
    """The same for text, as a context: published at its end, and discarded if that is an error."""

    def __init__(self, path: str, *, appends: bool = False) -> None:
        self._path = path
        self._output = open_output(path, appends=appends)
        self.stream: TextIO = io.TextIOWrapper(
            self._output.file, encoding="utf-8", errors="surrogateescape", line_buffering=self._output.is_stream
        )
        self.path = path  # where it is, in the end

    def __enter__(self) -> OutputText:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self._output.discard()
            if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                raise PerfemuError(f"cannot write {self._path}: {error.strerror}") from None
            return
        try:
            with _one_line(self._path):
                self.stream.flush()
        except PerfemuError:
            self._output.discard()
            raise
        self.path = self._output.publish()
