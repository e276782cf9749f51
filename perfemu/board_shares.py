"""Directories of the host that a board's guest may see: --bind HOST:TAG, and what the host says of them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from emulator.board.ninep.share import Share
from emulator.linux.fs.beneath import best_way
from emulator.linux.fs.host_files import kernel_devices
from emulator.linux.fs.host_places import Anchor, Place
from perfemu.errors import UsageError

MODES = {":ro": False, ":rw": True}
MOST_TAG_BYTES = 31  # of a mount tag


def shares(texts: Iterable[str], most_written_bytes: int) -> dict[str, Share]:
    """By tag. Raises UsageError."""
    found: dict[str, Share] = {}
    for text in texts:
        rest, writable = (text[:-3], MODES[text[-3:]]) if text[-3:] in MODES else (text, False)
        host, _, tag = rest.rpartition(":")
        if not host or not tag or "/" in tag or len(os.fsencode(tag)) > MOST_TAG_BYTES:
            raise UsageError(
                f"--bind {text}: a board wants HOST:TAG, and :rw behind it if the guest may write; "
                f"a tag is a name of at most {MOST_TAG_BYTES} bytes to mount it by"
            )
        if tag in found:
            raise UsageError(f"--bind {text}: the tag {tag} is another's")
        found[tag] = _share(text, host, writable, most_written_bytes)
    return found


def _share(text: str, host: str, writable: bool, most_written_bytes: int) -> Share:
    real, of_the_kernel = os.path.realpath(host), kernel_devices()
    if not os.path.isdir(real):
        raise UsageError(f"--bind {text}: {host} is no directory")
    if os.lstat(real).st_dev in of_the_kernel:
        raise UsageError(f"--bind {text}: {host} is the host's kernel, not a directory")
    try:
        root = Place(Anchor(real, best_way()))
        os.close(root.open(os.O_RDONLY | os.O_DIRECTORY))
    except OSError as problem:
        raise UsageError(f"--bind {text}: {os.strerror(problem.errno or 0)}") from None
    return Share(root, writable, most_written_bytes, hidden=lambda status: status.st_dev in of_the_kernel)
