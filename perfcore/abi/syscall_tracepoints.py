"""The tracepoints of an ISA: those that every ISA has, and two for each of its system calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from emulator.linux.syscalls.table import Syscall, load
from perfcore.abi.tracepoints import FIXED_TRACEPOINTS, TracepointEvent, enter_event, exit_event

# Where SYSCALL_DEFINE has another name than the call.
_DEFINED_AS = {
    "fstat": "newfstat",
    "lstat": "newlstat",
    "sendfile": "sendfile64",
    "stat": "newstat",
    "umount2": "umount",
    "uname": "newuname",
}


# clone(2): the two ISAs have the last two in another order (CONFIG_CLONE_BACKWARDS).
_CLONE_ENDS = {"aarch64": ("tls", "child_tidptr"), "x86_64": ("child_tidptr", "tls")}


def _arguments(row: Syscall, isa: str) -> tuple[str, ...]:
    """As Linux names them."""
    names = tuple(parameter.name for parameter in row.parameters())
    return names if row.name != "clone" else (*names[:-2], *_CLONE_ENDS[isa])


@cache
def tracepoints_of(isa: str) -> Mapping[str, TracepointEvent]:
    """By full name, in alphabetical order."""
    events = list(FIXED_TRACEPOINTS)
    for row in load():
        number = row.number(isa)
        if number is not None:
            name = _DEFINED_AS.get(row.name, row.name)
            events += (enter_event(name, number, _arguments(row, isa)), exit_event(name, number))
    return {event.full_name: event for event in sorted(events, key=lambda event: event.full_name)}


@cache
def tracepoints_by_id(isa: str) -> Mapping[int, TracepointEvent]:
    """By attr.config."""
    return {event.id: event for event in tracepoints_of(isa).values()}
