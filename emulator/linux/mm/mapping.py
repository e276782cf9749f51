"""Mapping: one range of a process's memory, and the file behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

PAGE_SIZE = 4096  # bytes, on both ISAs
PAGE_SHIFT = 12

READ, WRITE, EXECUTE = 1, 2, 4  # what a page allows (AddressSpace), and the access of a fault

# uapi/asm-generic/mman-common.h: protection
PROT_NONE = 0
PROT_READ = 1
PROT_WRITE = 2
PROT_EXEC = 4
PROT_GROWSDOWN = 0x01000000
PROT_GROWSUP = 0x02000000

# uapi/linux/mman.h, uapi/asm-generic/mman*.h: flags
MAP_SHARED = 0x01
MAP_PRIVATE = 0x02
MAP_SHARED_VALIDATE = 0x03
MAP_TYPE = 0x0F
MAP_FIXED = 0x10
MAP_ANONYMOUS = 0x20
MAP_32BIT = 0x40  # x86 only
MAP_GROWSDOWN = 0x0100
MAP_DENYWRITE = 0x0800
MAP_EXECUTABLE = 0x1000
MAP_LOCKED = 0x2000
MAP_NORESERVE = 0x4000
MAP_POPULATE = 0x8000
MAP_STACK = 0x20000
MAP_HUGETLB = 0x40000
MAP_FIXED_NOREPLACE = 0x100000


def page_down(address: int) -> int:
    return address & -PAGE_SIZE


def page_up(address: int) -> int:
    return (address + PAGE_SIZE - 1) & -PAGE_SIZE


@dataclass(frozen=True, slots=True)
class MappedFile:
    """Which file a mapping shows, as PERF_RECORD_MMAP2 and /proc/PID/maps name it."""

    path: str  # as the guest sees it
    major: int
    minor: int
    inode: int
    generation: int = 0


class FileContent(Protocol):
    """The bytes of a file that can be mapped, whoever holds it open. The same file always gives an equal `identity`."""

    @property
    def identity(self) -> MappedFile: ...

    def size(self) -> int: ...

    def read_at(self, offset: int, size: int) -> bytes:
        """At most `size` bytes; fewer only at the end of the file."""

    def write_at(self, offset: int, data: bytes) -> int: ...


class Holder(Protocol):
    """What lives as long as a mapping of it does: an open file whose frames are mapped."""

    @property
    def may_be_split(self) -> bool:
        """Whether a part of the mapping may go, or become other than the rest."""

    def mapped(self) -> None:
        """A process has mapped it."""

    def unmapped(self) -> None:
        """No part of it is mapped any more in a process that had it."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """Pages [start, end) with one protection (PROT_*), one set of flags (MAP_*) and one origin."""

    start: int
    end: int
    protection: int
    flags: int
    offset: int = 0  # bytes into the file
    file: MappedFile | None = None
    name: str = ""  # for what has no file: "[heap]", "[stack]", or empty
    content: FileContent | None = None  # where pages come from; None for anonymous memory and devices
    holder: Holder | None = None  # of device frames
    may_write: bool = True  # VM_MAYWRITE: not a shared mapping of a file that is not open for writing
    may_execute: bool = True  # VM_MAYEXEC

    def part(self, start: int, end: int) -> Mapping:
        """The pages [start, end) of it, or of what it would be if it reached there."""
        offset = self.offset + start - self.start if self.file is not None else self.offset
        return Mapping(
            start,
            end,
            self.protection,
            self.flags,
            offset,
            self.file,
            self.name,
            self.content,
            self.holder,
            self.may_write,
            self.may_execute,
        )

    def with_protection(self, protection: int) -> Mapping:
        return replace(self, protection=protection)

    def with_flags(self, flags: int) -> Mapping:
        return replace(self, flags=flags) if flags != self.flags else self

    def moved(self, start: int, end: int) -> Mapping:
        """The same bytes at another address."""
        return replace(self, start=start, end=end)

    @property
    def length(self) -> int:
        return self.end - self.start

    @property
    def shared(self) -> bool:
        return bool(self.flags & MAP_SHARED)

    @property
    def grows_down(self) -> bool:
        return bool(self.flags & MAP_GROWSDOWN)

    @property
    def path(self) -> str:
        """The last column of /proc/PID/maps."""
        return self.file.path if self.file is not None else self.name

    @property
    def page_protection(self) -> int:
        """READ, WRITE and EXECUTE as a page may have them: what can be written or executed can be read."""
        return self.protection & 7 | (READ if self.protection & (PROT_WRITE | PROT_EXEC) else 0)
