"""Attributes: what Linux tells about a file, and the structures in which statx, statfs and getdents tell it.

``struct stat`` differs between ISAs and is ``Architecture.pack_stat``'s.
"""

from __future__ import annotations

import stat as file_mode
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from emulator.linux.arch.architecture import Stat
from emulator.linux.structures import NANOSECONDS

BLOCK_BYTES = 4096  # st_blksize, and the unit in which space is given out
SECTOR_BYTES = 512  # the unit of st_blocks


@dataclass(slots=True)  # not frozen: that takes longer to make, at each stat
class Attributes:
    """An inode as the guest sees it. Number and device are the machine's own; st_ctime is st_mtime."""

    inode: int
    mode: int  # type and permissions
    size: int = 0
    links: int = 1
    uid: int = 0
    gid: int = 0
    device: tuple[int, int] = (0, 0)  # major, minor of the file system
    special: tuple[int, int] = (0, 0)  # major, minor of a device node
    accessed_ns: int = 0
    modified_ns: int = 0

    @property
    def sectors(self) -> int:
        """st_blocks: whole 4 KiB blocks, so that the host's file system (holes, compression) does not show."""
        if not file_mode.S_ISREG(self.mode):
            return BLOCK_BYTES // SECTOR_BYTES if file_mode.S_ISDIR(self.mode) else 0
        return -(-self.size // BLOCK_BYTES) * (BLOCK_BYTES // SECTOR_BYTES)

    def stat(self) -> Stat:
        """For ``Architecture.pack_stat``."""
        return Stat(
            device=device_number(*self.device),
            inode=self.inode,
            mode=self.mode,
            links=self.links,
            uid=self.uid,
            gid=self.gid,
            special_device=device_number(*self.special),
            size=self.size,
            block_size=BLOCK_BYTES,
            blocks=self.sectors,
            access_ns=self.accessed_ns,
            modify_ns=self.modified_ns,
            change_ns=self.modified_ns,  # no more is known than the modification
        )


def device_number(major: int, minor: int) -> int:
    """linux/kdev_t.h new_encode_dev: the dev_t of struct stat."""
    return minor & 0xFF | major << 8 | (minor & ~0xFF) << 12


_Field = tuple[str, Callable[[Attributes], int] | None]  # struct format; None for padding

STATX_BASIC_STATS = 0x7FF  # uapi/linux/stat.h: everything that struct stat has

STATX_FIELDS: tuple[_Field, ...] = (  # uapi/linux/stat.h, struct statx
    ("I", lambda a: STATX_BASIC_STATS),
    ("I", lambda a: BLOCK_BYTES),
    ("Q", lambda a: 0),  # stx_attributes
    ("I", lambda a: a.links),
    ("I", lambda a: a.uid),
    ("I", lambda a: a.gid),
    ("H", lambda a: a.mode),
    ("2x", None),
    ("Q", lambda a: a.inode),
    ("Q", lambda a: a.size),
    ("Q", lambda a: a.sectors),
    ("Q", lambda a: 0),  # stx_attributes_mask
    ("q", lambda a: a.accessed_ns // NANOSECONDS),
    ("I4x", lambda a: a.accessed_ns % NANOSECONDS),
    ("16x", None),  # stx_btime: not known, and not in the mask
    ("q", lambda a: a.modified_ns // NANOSECONDS),
    ("I4x", lambda a: a.modified_ns % NANOSECONDS),
    ("q", lambda a: a.modified_ns // NANOSECONDS),
    ("I4x", lambda a: a.modified_ns % NANOSECONDS),
    ("I", lambda a: a.special[0]),
    ("I", lambda a: a.special[1]),
    ("I", lambda a: a.device[0]),
    ("I", lambda a: a.device[1]),
    ("112x", None),
)


_STATX = struct.Struct("<" + "".join(code for code, _ in STATX_FIELDS))
_STATX_VALUES = tuple(value for _, value in STATX_FIELDS if value is not None)


def pack_statx(attributes: Attributes) -> bytes:
    return _STATX.pack(*[value(attributes) for value in _STATX_VALUES])


@dataclass(frozen=True, slots=True)
class FileSystemStatistics:
    """struct statfs, the same on both ISAs. Sizes are pinned: the host's free space is not the guest's."""

    magic: int  # f_type, uapi/linux/magic.h
    block_count: int = 0
    free_blocks: int = 0
    name_limit: int = 255
    flags: int = 0

    def pack(self) -> bytes:
        """include/uapi/asm-generic/statfs.h, struct statfs: 120 bytes."""
        files = self.block_count // 4
        return struct.pack(
            "<7q2i3q32x", self.magic, BLOCK_BYTES, self.block_count, self.free_blocks, self.free_blocks, files, files,
            0, 0, self.name_limit, BLOCK_BYTES, self.flags,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One name in a directory. `mode` needs only the file type."""

    inode: int
    mode: int
    name: bytes


def _pack_dirent64(entry: DirectoryEntry, next_position: int) -> bytes:
    """struct linux_dirent64: d_ino, d_off, d_reclen, d_type, then the name and its NUL, padded to 8 bytes."""
    length = (19 + len(entry.name) + 1 + 7) & ~7
    head = struct.pack("<QqHB", entry.inode, next_position, length, entry.mode >> 12 & 15)
    return (head + entry.name).ljust(length, b"\0")


def _pack_dirent(entry: DirectoryEntry, next_position: int) -> bytes:
    """struct linux_dirent: d_ino, d_off, d_reclen, the name and its NUL; d_type is the record's last byte."""
    length = (18 + len(entry.name) + 2 + 7) & ~7
    head = struct.pack("<QqH", entry.inode, next_position, length)
    return (head + entry.name).ljust(length - 1, b"\0") + bytes([entry.mode >> 12 & 15])


def pack_directory(
    entries: Iterable[DirectoryEntry], position: int, size: int, *, old_layout: bool = False
) -> list[bytes]:
    """The records that fit into `size` bytes, the first being number `position`."""
    pack = _pack_dirent if old_layout else _pack_dirent64
    records: list[bytes] = []
    used = 0
    for entry in entries:
        record = pack(entry, position + len(records) + 1)
        if used + len(record) > size:
            break
        records.append(record)
        used += len(record)
    return records
