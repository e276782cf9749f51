"""locate: which file a program's name means, as a shell would find it; below the sysroot first."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfemu.errors import PerfemuError
from perfemu.namespace import Namespace, resolve

NOT_EXECUTABLE_STATUS = 126  # as the shell's
NOT_FOUND_STATUS = 127


@dataclass(frozen=True, slots=True)
class Located:
    """A program file: `guest_path` is what the guest calls it, `host_path` where its bytes are."""

    guest_path: str
    host_path: str
    not_below_sysroot: bool = False  # it was looked for there, and is the host's

    def is_below(self, directory: str) -> bool:
        return os.path.realpath(self.host_path).startswith(os.path.realpath(directory).rstrip("/") + "/")


def locate(name: str, search: Sequence[str], space: Namespace | None = None, directory: str = "/") -> Located:
    """`name` with a slash is a path; without, it is looked for in the `search` directories.

    `directory` is the guest's current one. Raises PerfemuError with the shell's exit status.
    """
    space = Namespace() if space is None else space
    if not name:
        raise PerfemuError("the program's name is empty", NOT_FOUND_STATUS)
    candidates = [name] if "/" in name else [f"{directory.rstrip('/')}/{name}" for directory in search]
    unfit = None
    for found in _existing(candidates, space, directory):
        try:
            _check_executable(found.host_path, found.guest_path)
        except PerfemuError as problem:
            unfit = unfit or problem
            continue
        return found
    if unfit is not None:
        raise unfit
    if "/" in name and space.is_plain:
        _explain_way(name)
    what = "no such file" if "/" in name else f"not found in {':'.join(search)}"
    where = f" (nor below {space.sysroot})" if space.sysroot else ""
    where += " (where --bind and --isolate leave something)" if not space.is_plain else ""
    raise PerfemuError(f"{name}: {what}{where}", NOT_FOUND_STATUS)


def _explain_way(path: str) -> None:
    """Raise for what hides a file that may be there, as a shell distinguishes it from one that is not."""
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise PerfemuError(f"{path}: {reason}", NOT_EXECUTABLE_STATUS) from None


def _existing(candidates: Iterable[str], space: Namespace, directory: str) -> Iterable[Located]:
    candidates = list(candidates)
    if space.sysroot is not None:
        for candidate in candidates:
            below = space.below_sysroot(candidate) if candidate.startswith("/") else None
            if below is not None:
                yield Located(candidate, below)
    for candidate in candidates:
        if space.is_plain:
            if os.path.exists(candidate):
                yield Located(candidate, candidate, space.sysroot is not None and candidate.startswith("/"))
        elif (found := resolve(f"{directory}/{candidate}" if candidate[:1] != "/" else candidate, space)) is not None:
            yield Located(candidate, found)


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
