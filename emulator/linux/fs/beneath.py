"""Beneath: opens directories of the host below one that is open, and never through a symbolic link.

What a path was a moment ago says nothing where others may rename: a directory becomes a link between the look and the
use. So the host's kernel resolves, and refuses links itself: openat2(2), or where a kernel has none (before Linux 5.6,
or behind a filter) one component after the other, each below the descriptor of the one before.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable

SYS_openat2 = 437  # on every architecture
RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH = 4, 8  # uapi/linux/openat2.h
DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

OpenBeneath = Callable[[int, str], int]  # (descriptor of a directory, relative path) -> descriptor, or OSError

_libc = ctypes.CDLL(None, use_errno=True)
_openat2 = _libc.syscall
_openat2.restype = ctypes.c_long
_openat2.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
_HOW = struct.pack("<3Q", DIRECTORY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)  # struct open_how: flags mode resolve


def by_openat2(above: int, path: str) -> int:
    """In one call."""
    while (descriptor := _openat2(SYS_openat2, above, os.fsencode(path), _HOW, len(_HOW))) < 0:
        code = ctypes.get_errno()
        if code not in (errno.EINTR, errno.EAGAIN):  # EAGAIN: something was renamed meanwhile
            raise OSError(code, os.strerror(code), path)
    return int(descriptor)


def by_components(above: int, path: str) -> int:
    """In a call for each component. `path` has no `..`, so none leads up."""
    opened = -1
    for name in path.split("/"):
        assert name not in ("", ".", ".."), f"{path!r}: {name!r} names no directory below"
        try:
            below = os.open(name, DIRECTORY, dir_fd=opened if opened >= 0 else above)
        finally:
            if opened >= 0:
                os.close(opened)
        opened = below
    return opened


def best_way() -> OpenBeneath:
    """openat2 if this kernel has it and lets us."""
    root = os.open("/", DIRECTORY)
    try:
        os.close(by_openat2(root, "."))
    except OSError:
        return by_components
    finally:
        os.close(root)
    return by_openat2
