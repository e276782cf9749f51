"""A line of uprobe_events, and what it says. As __trace_uprobe_create() in trace_uprobe.c.

``p[:[GROUP/][EVENT]] PATH:OFFSET[%return][(SEMAPHORE)] [ARGUMENTS]``, or ``r`` for the function's return.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from emulator.linux.arch.architecture import Architecture
from emulator.linux.errors import EINVAL, LinuxError
from perfcore.events.c_numbers import unsigned
from perfcore.events.probes.fetch_args import Argument, Where, is_name, parse_arguments
from perfcore.events.probes.uprobes import Place

GROUP = "uprobes"  # where nothing is said
_MOST_LETTERS = 64  # MAX_EVENT_NAME_LEN
_GROUP_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_UP_TO = re.compile(r"[^.\-_]*")


class ProbedFile(NamedTuple):
    """A regular file."""

    inode: int
    size: int


FindFile = Callable[[str], ProbedFile]
"""By its path, as the calling task sees it. Raises LinuxError."""


@dataclass(frozen=True)
class UprobeDefinition:
    """One place, and what is told of it."""

    group: str
    event: str
    returns: bool
    path: str
    file: ProbedFile
    offset: int
    semaphore: int  # its offset in the file; 0: there is none
    arguments: tuple[Argument, ...]

    @property
    def place(self) -> Place:
        return Place(self.file.inode, self.offset)

    @property
    def at(self) -> str:
        """As uprobe_events has it."""
        semaphore = f"(0x{self.semaphore:x})" if self.semaphore else ""
        return f"{self.path}:0x{self.offset:016x}{semaphore}"

    @property
    def line(self) -> str:
        arguments = "".join(f" {argument.name}={argument.text}" for argument in self.arguments)
        return f"{'r' if self.returns else 'p'}:{self.group}/{self.event} {self.at}{arguments}"


def parse_definition(words: Sequence[str], find_file: FindFile, architecture: Architecture) -> UprobeDefinition:
    """Raises LinuxError."""
    head, target = words[0], words[1] if len(words) > 1 else ""
    path, colon, where = target.rpartition(":")
    if head[0] not in "pr" or "/" not in target or not colon or not where[:1].isdecimal():
        raise LinuxError(EINVAL, f"{' '.join(words)!r}: an uprobe is written p[:GROUP/EVENT] PATH:OFFSET [ARGUMENTS]")
    file = find_file(path)
    where, semaphore = _parse_semaphore(where)
    number, percent, suffix = where.partition("%")
    if percent and suffix != "return":
        raise LinuxError(EINVAL, f"{target}: %{suffix} is not %return")
    offset = unsigned(number)
    if offset is None:
        raise LinuxError(EINVAL, f"{target}: {number} is no offset")
    returns = head[0] == "r" or bool(percent)
    group, event = parse_name(head[2:], GROUP) if head[1:2] == ":" else (GROUP, "")
    if not event:
        name = _UP_TO.match(path.rpartition("/")[2])
        event = f"p_{name[0] if name else ''}_0x{offset:x}"[: _MOST_LETTERS - 1]
    arguments = parse_arguments(words[2:], Where(architecture, returns))
    return UprobeDefinition(group, event, returns, path, file, offset, semaphore, arguments)


def _parse_semaphore(where: str) -> tuple[str, int]:
    """What stands before it, and it."""
    before, opened, behind = where.partition("(")
    if not opened:
        return where, 0
    number, closed, rest = behind.partition(")")
    semaphore = unsigned(number)
    if not closed or rest or semaphore is None:
        raise LinuxError(EINVAL, f"({behind}: a semaphore is written (OFFSET), and is the last")
    return before, semaphore


def parse_name(text: str, default: str) -> tuple[str, str]:
    """Group and event; the latter may be left out behind a group."""
    slash = re.search("/", text) or re.search(r"\.", text)
    group = text[: slash.start()] if slash else default
    event = text[slash.end() :] if slash else text
    if len(group) >= _MOST_LETTERS or not _GROUP_NAME.fullmatch(group):
        raise LinuxError(EINVAL, f"{text}: {group!r} is no name of a group")
    if (event or not slash) and (len(event) >= _MOST_LETTERS or not is_name(event)):
        raise LinuxError(EINVAL, f"{text}: {event!r} is no name of an event")
    return group, event
