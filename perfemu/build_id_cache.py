"""perf's build-id cache, where readers look for code that is in no file: the vDSO's."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from emulator.linux.mm.vdso import NAME as VDSO

DIRECTORY = ".debug"  # in HOME


def keep_vdso(image: Path, build_id: bytes) -> str | None:
    """In the user's cache, as perf record keeps its own machine's (build_id_cache__add); without a HOME nowhere.

    Without, perf takes its own machine's for the one that a program had, and cannot follow a trace through it. Returns
    why it is not kept.
    """
    home = os.environ.get("HOME", "")
    if not os.path.isdir(home):
        return None
    try:
        _keep(image.read_bytes(), build_id.hex(), Path(home, DIRECTORY))
    except OSError as error:
        return f"no vDSO is kept in {home}/{DIRECTORY}, and perf will take another for it: {error}"
    return None


def _keep(image: bytes, name: str, cache: Path) -> None:
    place = cache / VDSO / name
    place.mkdir(parents=True, exist_ok=True)
    _write_once(place / "vdso", image)
    links = cache / ".build-id" / name[:2]
    links.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (links / name[2:]).symlink_to(Path("..", "..", VDSO, name))


def _write_once(path: Path, data: bytes) -> None:
    """Whole, or not at all; what is there is the same."""
    if path.exists():
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        beside.rename(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
