"""Checkpoints: the files of boards that have booted, in a directory of the user's cache: found by key, few and bounded.

Names are ours, and everything goes by the directory's descriptor: what a guest may write elsewhere does not choose
where a file comes to lie.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from emulator import _native
from perfemu.version import VERSION

MOST_FILES, MOST_BYTES = 8, 2 << 30
SUFFIX, UNFINISHED = ".checkpoint", ".unfinished"
KEY_DIGITS = 40  # of a name
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
PACKAGES = ("emulator", "pmu", "perfcore", "perfemu", "unicorn")  # what a run depends on
KINDS = (".py", ".so", ".2", ".toml")  # of files there


class Checkpoints:
    """Below `home`, which is made if need be."""

    def __init__(self, home: Path) -> None:
        self.path = home / "checkpoints"

    @contextmanager
    def opened(self, key: str) -> Iterator[int | None]:
        """A descriptor of that key's file; None if there is none of the user's own."""
        with self._directory(make=False) as directory:
            descriptor = None if directory is None else _open(_name(key), directory)
        try:
            yield descriptor
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def keep(self, key: str, write: Callable[[int], None]) -> None:
        """`write` fills a file by its descriptor. Raises OSError: nothing has changed then."""
        with self._directory(make=True) as directory:
            assert directory is not None, "it is made"
            name = _name(key)
            unfinished = f"{name}.{os.getpid()}{UNFINISHED}"
            _unlink(unfinished, directory)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(unfinished, flags, 0o600, dir_fd=directory)
            try:
                write(descriptor)
                os.rename(unfinished, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                _unlink(unfinished, directory)
                raise
            finally:
                os.close(descriptor)
            _remove_oldest(directory, name)

    @contextmanager
    def _directory(self, *, make: bool) -> Iterator[int | None]:
        if make:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                self.path.mkdir(mode=0o700)
        try:
            directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            if make:
                raise
            yield None
            return
        try:
            yield directory
        finally:
            os.close(directory)


def key_of(facts: Iterable[object], files: Iterable[Path]) -> str:
    """Of all that a boot depends on: `facts` by what they say, and `files`, this program and its libraries by what the
    host says of them, which is something else as soon as somebody has written there."""
    digest = hashlib.sha256(f"{VERSION} {platform.machine()} {platform.python_version()}\n".encode())
    for fact in facts:
        digest.update(f"{fact!r}\n".encode())
    for path in [*files, *_own_files()]:
        status = path.stat()
        identity = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        digest.update(f"{path} {identity}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _own_files() -> Iterator[Path]:
    yield Path(_native.__file__)
    for package in PACKAGES:
        spec = find_spec(package)
        for location in () if spec is None else spec.submodule_search_locations or ():
            for directory, _, names in sorted(os.walk(location)):
                yield from (Path(directory, name) for name in sorted(names) if name.endswith(KINDS))


def _name(key: str) -> str:
    return key[:KEY_DIGITS] + SUFFIX


def _open(name: str, directory: int) -> int | None:
    """One that has been used last is the last to be removed."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return None
    if not _is_ours(descriptor):
        os.close(descriptor)
        return None
    with contextlib.suppress(OSError):
        os.utime(descriptor)
    return descriptor


def _is_ours(descriptor: int) -> bool:
    """A file that the user has written, and nobody else can have: its digest would be as good as its contents."""
    status = os.fstat(descriptor)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & WRITABLE_BY_OTHERS


def _remove_oldest(directory: int, newest: str) -> None:
    """Also what was left unfinished by somebody who is no more."""
    found: list[tuple[int, int, str]] = []
    for name in os.listdir(directory):
        if name.endswith((SUFFIX, UNFINISHED)):
            with contextlib.suppress(OSError):
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                found.append((status.st_mtime_ns, status.st_blocks * 512, name))
    found.sort(key=lambda each: (each[2] != newest, -each[0]))
    total = 0
    for number, (_, size, name) in enumerate(found):
        total += size
        if number and (number >= MOST_FILES or total > MOST_BYTES):
            _unlink(name, directory)


def _unlink(name: str, directory: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=directory)
