"""locate: which file a program's name means, as a shell would find it; below the sysroot first."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfemu.errors import PerfemuError

NOT_EXECUTABLE_STATUS = 126  # as the shell's
NOT_FOUND_STATUS = 127
_LINKS_LIMIT = 40  # MAXSYMLINKS


@dataclass(frozen=True, slots=True)
class Located:
    """A program file: `guest_path` is what the guest calls it, `host_path` where its bytes are."""

    guest_path: str
    host_path: str


def locate(name: str, search: Sequence[str], sysroot: str | None = None) -> Located:
    """`name` with a slash is a path; without, it is looked for in the `search` directories.

    Raises PerfemuError with the shell's exit status.
    """
    if not name:
        raise PerfemuError("the program's name is empty", NOT_FOUND_STATUS)
    candidates = [name] if "/" in name else [f"{directory.rstrip('/')}/{name}" for directory in search]
    unfit = None
    for found in _existing(candidates, sysroot):
        try:
            _check_executable(found.host_path, found.guest_path)
        except PerfemuError as problem:
            unfit = unfit or problem
            continue
        return found
    if unfit is not None:
        raise unfit
    if "/" in name:
        _explain_way(name)
    what = "no such file" if "/" in name else f"not found in {':'.join(search)}"
    where = f" (nor below {sysroot})" if sysroot else ""
    raise PerfemuError(f"{name}: {what}{where}", NOT_FOUND_STATUS)


def on_host(path: str, sysroot: str | None) -> str:
    """Where on the host the guest's `path` is, or would be."""
    below = resolve(path, sysroot) if sysroot is not None and path.startswith("/") else None
    return path if below is None else below


def _explain_way(path: str) -> None:
    """Raise for what hides a file that may be there, as a shell distinguishes it from one that is not."""
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise PerfemuError(f"{path}: {reason}", NOT_EXECUTABLE_STATUS) from None


def _existing(candidates: Iterable[str], sysroot: str | None) -> Iterable[Located]:
    candidates = list(candidates)
    if sysroot is not None:
        for candidate in candidates:
            host_path = resolve(candidate, sysroot) if candidate.startswith("/") else None
            if host_path is not None:
                yield Located(candidate, host_path)
    for candidate in candidates:
        if os.path.exists(candidate):
            yield Located(candidate, candidate)


def resolve(path: str, sysroot: str) -> str | None:
    """The host path of the guest's `path` below `sysroot`, its absolute links kept inside; None if there is none."""
    pending = [part for part in path.split("/") if part not in ("", ".")][::-1]
    here: list[str] = []
    links = 0
    while pending:
        part = pending.pop()
        if part == "..":
            here = here[:-1]
            continue
        host_path = os.path.join(sysroot, *here, part)
        if os.path.islink(host_path):
            links += 1
            if links > _LINKS_LIMIT:
                return None
            target = os.readlink(host_path)
            if target.startswith("/"):
                here = []
            pending += [part for part in target.split("/") if part not in ("", ".")][::-1]
        else:
            here.append(part)
    found = os.path.join(sysroot, *here)
    return found if os.path.exists(found) else None


def _check_executable(host_path: str, shown: str) -> None:
    try:
        mode = os.stat(host_path).st_mode
    except OSError as error:
        raise PerfemuError(f"{shown}: {error.strerror}", NOT_EXECUTABLE_STATUS) from None
    if stat.S_ISDIR(mode):
        raise PerfemuError(f"{shown}: is a directory", NOT_EXECUTABLE_STATUS)
    if not stat.S_ISREG(mode):
        raise PerfemuError(f"{shown}: not a regular file", NOT_EXECUTABLE_STATUS)
    if not mode & 0o111:
        raise PerfemuError(f"{shown}: permission denied (chmod +x makes it executable)", NOT_EXECUTABLE_STATUS)
    if not os.access(host_path, os.R_OK):
        raise PerfemuError(f"{shown}: permission denied (it must be readable to be emulated)", NOT_EXECUTABLE_STATUS)
