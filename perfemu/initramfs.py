"""An initramfs: the files that a kernel finds in its first root, as a cpio archive in the format "newc".

The format: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

MAGIC, LAST = b"070701", "TRAILER!!!"
ALIGNMENT = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: `path` is relative to the root."""

    path: str
    mode: int  # with the type, as in st_mode
    data: bytes = b""
    device: tuple[int, int] = (0, 0)  # major, minor


def directory(path: str) -> Entry:
    return Entry(path, stat.S_IFDIR | 0o755)


def file(path: str, data: bytes) -> Entry:
    return Entry(path, stat.S_IFREG | 0o644, data)


def program(path: str, data: bytes) -> Entry:
    return Entry(path, stat.S_IFREG | 0o755, data)


def link(path: str, target: str) -> Entry:
    return Entry(path, stat.S_IFLNK | 0o777, target.encode())


def character_device(path: str, major: int, minor: int) -> Entry:
    return Entry(path, stat.S_IFCHR | 0o600, device=(major, minor))


def archive(entries: Iterable[Entry]) -> bytes:
    """The same bytes for the same entries: no times, owners or numbers of the host's.

    Directories on the way to an entry are made where no entry before it is one.
    """
    made: set[str] = set()
    out = bytearray()
    for entry in _with_parents(entries, made):
        out += _member(entry, len(made))
    return bytes(out + _member(Entry(LAST, 0), 0))


def _with_parents(entries: Iterable[Entry], made: set[str]) -> Iterable[Entry]:
    for entry in entries:
        for parent in reversed(PurePosixPath(entry.path).parents[:-1]):
            if str(parent) not in made:
                made.add(str(parent))
                yield directory(str(parent))
        if not (stat.S_ISDIR(entry.mode) and entry.path in made):
            made.add(entry.path)
            yield entry


def _member(entry: Entry, inode: int) -> bytes:
    name = entry.path.encode() + b"\0"
    major, minor = entry.device
    fields = (inode, entry.mode, 0, 0, 1, 0, len(entry.data), 0, 0, major, minor, len(name), 0)
    head = MAGIC + b"".join(b"%08x" % value for value in fields) + name
    return _padded(head) + _padded(entry.data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % ALIGNMENT)
