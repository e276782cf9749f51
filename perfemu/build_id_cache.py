"""perf's build-id cache, where readers look for code that is in no file: the vDSO's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from emulator.linux.mm.vdso import NAME as VDSO

DIRECTORY = ".debug"  # in HOME
FILE = "vdso"


def keep_vdso(image: Path, build_id: bytes) -> str | None:
    """In the user's cache, as perf record keeps its own machine's (build_id_cache__add); without a HOME nowhere.

    Without, perf takes its own machine's for the one that a program had, and cannot follow a trace through it. Returns
    why it is not kept.
    """
    home = os.environ.get("HOME", "")
    if not os.path.isdir(home):
        return None
    try:
        _keep(image.read_bytes(), build_id.hex(), home)
    except OSError as error:
        return f"no vDSO is kept in {home}/{DIRECTORY}, and perf will take another for it: {error.strerror}"
    return None


def _keep(image: bytes, name: str, home: str) -> None:
    with _directory(home, DIRECTORY, VDSO, name) as place:
        _write_once(place, image)
    with _directory(home, DIRECTORY, ".build-id", name[:2]) as place, suppress(FileExistsError):
        os.symlink(f"../../{VDSO}/{name}", name[2:], dir_fd=place)


@contextmanager
def _directory(home: str, *names: str) -> Iterator[int]:
    """The last one's descriptor. None of them is a symbolic link, which a guest may have put there."""
    opened = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in names:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=opened)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened)
            os.close(opened)
            opened = inner
        yield opened
    finally:
        os.close(opened)


def _write_once(place: int, data: bytes) -> None:
    """Whole, or not at all; what is there is the same."""
    with suppress(FileNotFoundError):
        os.stat(FILE, dir_fd=place, follow_symlinks=False)
        return
    beside = f".{FILE}.{os.getpid()}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=place)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.rename(beside, FILE, src_dir_fd=place, dst_dir_fd=place)
    except BaseException:
        os.unlink(beside, dir_fd=place)
        raise
