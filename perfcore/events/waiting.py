"""Waiting: what is enabled and did not fit, in the order in which it goes on when there is room."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Generic, TypeVar

Group = TypeVar("Group")
Place = tuple[
    bool, bool, int
]  # pinned ones first, the CPU's own before its task's, older before newer: no two are equal


class Waiting(Generic[Group]):
    """Groups by their places."""

    def __init__(self) -> None:
        self._places: dict[Group, Place] = {}
        self._in_order: list[tuple[Place, Group]] = []

    def __len__(self) -> int:
        return len(self._in_order)

    def groups(self) -> list[Group]:
        return [group for _, group in self._in_order]

    def add(self, group: Group, place: Place) -> None:
        if group not in self._places:
            self._places[group] = place
            insort(self._in_order, (place, group))

    def discard(self, group: Group) -> None:
        place = self._places.pop(group, None)
        if place is not None:
            del self._in_order[bisect_left(self._in_order, (place,))]
