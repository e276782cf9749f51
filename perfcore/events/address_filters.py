"""Address filters of events that trace: what PERF_EVENT_IOC_SET_FILTER says of them, and where that is in a task's
memory. As kernel/events/core.c, perf_event_parse_addr_filter() and around, Linux 6.12."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from emulator.linux.errors import EINVAL, EOPNOTSUPP, LinuxError
from emulator.linux.mm.mapping import PROT_EXEC, Mapping
from perfcore.events.kstrtox import unsigned


class Action(Enum):
    """What becomes of the trace at a place."""

    FILTER = "filter"  # there is one in such ranges alone
    START = "start"
    STOP = "stop"


class AddressFilter(NamedTuple):
    """One. `offset` is in the file, in bytes; so is `size`, 0 for a single address."""

    action: Action
    offset: int
    size: int
    inode: int


class AddressRange(NamedTuple):
    """Of addresses, up to before `end`. Where nothing is mapped both are 0."""

    start: int
    end: int


_ACTIONS = {action.value: action for action in Action}
_NOWHERE = AddressRange(0, 0)
_SOURCE = re.compile(r"(?P<offset>\w+)(?:/(?P<size>\w+))?(?:@(?P<path>.+))?", re.ASCII)

FindFile = Callable[[str], int]
"""The inode of a regular file, by its path. Raises LinuxError."""


def parse_address_filters(text: str, *, of_task: bool, find_file: FindFile) -> tuple[AddressFilter, ...]:
    """'ACTION OFFSET[/SIZE]@PATH', any number of them, between spaces, commas or line ends. `of_task`: the event is of
    a task, rather than of all that a CPU does. Raises LinuxError."""
    filters: list[AddressFilter] = []
    action: Action | None = None
    for word in filter(None, re.split("[ ,\n]", text)):
        if action is None:
            action = _ACTIONS.get(word)
            if action is None:
                raise LinuxError(EINVAL, f"'{word}' is none of filter, start and stop")
        else:
            filters.append(_placed(action, word, of_task, find_file))
            action = None
    if action is not None:
        raise LinuxError(EINVAL, f"behind '{action.value}' there is no place: OFFSET/SIZE@PATH")
    return tuple(filters)


def _placed(action: Action, word: str, of_task: bool, find_file: FindFile) -> AddressFilter:
    found = _SOURCE.fullmatch(word)
    offset, size = (None, None) if found is None else (unsigned(found["offset"]), unsigned(found["size"] or "0"))
    if found is None or offset is None or size is None:
        raise LinuxError(EINVAL, f"'{word}' is no place: OFFSET/SIZE@PATH")
    if action is Action.FILTER and not size:
        raise LinuxError(EINVAL, f"'{word}': what is traced alone has a size: OFFSET/SIZE@PATH")
    if found["path"] is None:
        raise LinuxError(EINVAL, f"'{word}' is the kernel's, which the event excludes: OFFSET/SIZE@PATH")
    if not of_task:
        raise LinuxError(EOPNOTSUPP, "only events of tasks have filters of files")
    return AddressFilter(action, offset, size, find_file(found["path"]))


def range_of(filter: AddressFilter, mappings: Iterable[Mapping]) -> AddressRange:
    """Where its code is among them. perf_addr_filter_vma_adjust()"""
    for mapping in mappings:
        if mapping.file is None or mapping.file.inode != filter.inode or not mapping.protection & PROT_EXEC:
            continue
        start = max(filter.offset, mapping.offset)
        end = min(filter.offset + filter.size, mapping.offset + mapping.length)
        if start < end:
            return AddressRange(mapping.start + start - mapping.offset, mapping.start + end - mapping.offset)
    return _NOWHERE
