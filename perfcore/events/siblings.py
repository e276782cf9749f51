"""Siblings: the events that follow one leader, and what they come to, so that one more costs no look at all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from perfcore.abi.attr import PerfEventAttr


class _Driver(Protocol):
    @property
    def is_software(self) -> bool: ...


class _Member(Protocol):
    @property
    def attr(self) -> PerfEventAttr: ...
    @property
    def driver(self) -> _Driver: ...


Member = TypeVar("Member", bound=_Member)


class Siblings(Generic[Member]):
    """In the order in which they joined."""

    def __init__(self) -> None:
        self.members: dict[Member, None] = {}  # all of them
        self.needing_counters: dict[Member, None] = {}
        self._read_formats: Counter[int] = Counter()

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def read_formats(self) -> set[int]:
        """attr.read_format of all of them."""
        return set(self._read_formats)

    def add(self, event: Member) -> None:
        self.members[event] = None
        self._read_formats[event.attr.read_format] += 1
        if not event.driver.is_software:
            self.needing_counters[event] = None

    def remove(self, event: Member) -> None:
        del self.members[event]
        self.needing_counters.pop(event, None)
        read_format = event.attr.read_format
        self._read_formats[read_format] -= 1
        if not self._read_formats[read_format]:
            del self._read_formats[read_format]
