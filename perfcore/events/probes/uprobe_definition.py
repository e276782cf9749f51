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
from perfcore.events.kstrtox import unsigned
from perfcore.events.probes.error_log import TracingError
from perfcore.events.probes.fetch_args import Argument, is_name, parse_arguments
from perfcore.events.probes.fetch_values import Where
from perfcore.events.probes.uprobes import Place

GROUP = "uprobes"  # where nothing is said
_MOST_LETTERS = 64  # MAX_EVENT_NAME_LEN
_GROUP_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_UP_TO = re.compile(r"[^.\-_]*")


class ProbedFile(NamedTuple):
    """A regular file."""

    inode: int
    size: int


class NotRegular(LinuxError):
    """There is something else."""


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
    file = _found(path, find_file)
    at = len(path) + 1
    where, semaphore = _parse_semaphore(where, at)
    number, percent, suffix = where.partition("%")
    if percent and suffix != "return":
        why = f"{target}: %{suffix} is not %return"
        raise TracingError(EINVAL, "Invalid probed address suffix", 1, at + len(number), why)
    offset = unsigned(number)
    if offset is None:
        raise TracingError(EINVAL, "Invalid uprobe offset", 1, at, f"{target}: {number} is no offset")
    returns = head[0] == "r" or bool(percent)
    group, event = parse_name(head[2:], GROUP, 2) if head[1:2] == ":" else (GROUP, "")
    if not event:
        name = _UP_TO.match(path.rpartition("/")[2])
        event = f"p_{name[0] if name else ''}_0x{offset:x}"[: _MOST_LETTERS - 1]
    arguments = parse_arguments(words[2:], Where(architecture, returns))
    return UprobeDefinition(group, event, returns, path, file, offset, semaphore, arguments)


def _found(path: str, find_file: FindFile) -> ProbedFile:
    try:
        return find_file(path)
    except LinuxError as error:
        told = "Not a regular file" if isinstance(error, NotRegular) else "Failed to find the given file"
        raise TracingError(error.code, told, 1, 0, error.why) from None


def _parse_semaphore(where: str, at: int) -> tuple[str, int]:
    """What stands before it, and it. `at`: where in its word."""
    before, opened, behind = where.partition("(")
    if not opened:
        return where, 0
    at += len(before) + 1
    number, closed, rest = behind.partition(")")
    why = f"({behind}: a semaphore is written (OFFSET), and is the last"
    if not closed:
        raise TracingError(EINVAL, "Reference counter brace is not closed", 1, at + len(number), why)
    if rest:
        raise TracingError(EINVAL, "Reference counter has wrong suffix", 1, at + len(number) + 1, why)
    semaphore = unsigned(number)
    if semaphore is None:
        raise TracingError(EINVAL, "Invalid reference counter offset", 1, at, why)
    return before, semaphore


def parse_name(text: str, default: str, at: int) -> tuple[str, str]:
    """Group and event; the latter may be left out behind a group. `at`: where in the first word."""
    slash = re.search("/", text) or re.search(r"\.", text)
    group = text[: slash.start()] if slash else default
    if slash:
        _check_name(text, "Group", group, at, bool(_GROUP_NAME.fullmatch(group)))
        at += slash.end()
    event = text[slash.end() :] if slash else text
    if event or not slash:
        _check_name(text, "Event", event, at, is_name(event))
    return group, event


def _check_name(text: str, whose: str, name: str, at: int, is_good: bool) -> None:
    """traceprobe_parse_event_name()"""
    if name and len(name) < _MOST_LETTERS and is_good:
        return
    told = "name must follow the same rules as C identifiers"
    if not name or len(name) >= _MOST_LETTERS:
        told = "name is too long" if name else "name is not specified"
    raise TracingError(EINVAL, f"{whose} {told}", 0, at, f"{text}: {name!r} is no name")
