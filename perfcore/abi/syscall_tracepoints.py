"""The tracepoints of an ISA: those of its kernel, and two for each of its system calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from emulator.linux.syscalls.table import Syscall, load
from perfcore.abi.kernel_tracepoints import KERNEL_TRACEPOINTS
from perfcore.abi.syscall_types import parameter_type
from perfcore.abi.tracepoints import TracepointEvent, enter_event, exit_event

# Where SYSCALL_DEFINE has another name than the call.
_DEFINED_AS = {
    "fstat": "newfstat",
    "lstat": "newlstat",
    "sendfile": "sendfile64",
    "stat": "newstat",
    "umount2": "umount",
    "uname": "newuname",
}

_ALSO_DEFINED_AS = {"aarch64": {"fadvise64": "fadvise64_64", "personality": "arm64_personality"}}

# clone(2): the two ISAs have the last two in another order (CONFIG_CLONE_BACKWARDS).
_CLONE_ENDS = {"aarch64": ("tls", "child_tidptr"), "x86_64": ("child_tidptr", "tls")}


def defined_name(row: Syscall, isa: str) -> str:
    """That of its SYSCALL_DEFINE."""
    return _ALSO_DEFINED_AS.get(isa, {}).get(row.name) or _DEFINED_AS.get(row.name, row.name)


def _parameters(row: Syscall, name: str, isa: str) -> tuple[tuple[str, str], ...]:
    """Type and name of each, as Linux has them; `name` is the tracepoints'."""
    names = tuple(parameter.name for parameter in row.parameters())
    if row.name == "clone":
        names = (*names[:-2], *_CLONE_ENDS[isa])
    return tuple((parameter_type(name, parameter), parameter) for parameter in names)


@cache
def tracepoints_of(isa: str) -> Mapping[str, TracepointEvent]:
    """By full name, in alphabetical order."""
    events = list(KERNEL_TRACEPOINTS[isa])
    for row in load():
        number = row.number(isa)
        if number is not None:
            name = defined_name(row, isa)
            events += (enter_event(name, number, _parameters(row, name, isa)), exit_event(name, number))
    return {event.full_name: event for event in sorted(events, key=lambda event: event.full_name)}


@cache
def tracepoints_by_id(isa: str) -> Mapping[int, TracepointEvent]:
    """By attr.config."""
    return {event.id: event for event in tracepoints_of(isa).values()}
