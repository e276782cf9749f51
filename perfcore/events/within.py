"""Within: which tasks count at the moment, of those that have events. Outside, it is as if they were on no CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from emulator.linux.process.task import Task


class Within(Protocol):
    """Who decides that: a region of the code, or a choice of tasks."""

    def __contains__(self, task: Task) -> bool:
        """Whether it counts."""

    def on_moved(self, moved: Callable[[Task], None]) -> None:
        """Call `moved` with each task on a CPU of which that has changed, before it executes anything."""


class WithinAll:
    """Only who is within all of several."""

    def __init__(self, parts: Sequence[Within]) -> None:
        self._parts = parts

    def __contains__(self, task: Task) -> bool:
        return all(task in part for part in self._parts)

    def on_moved(self, moved: Callable[[Task], None]) -> None:
        for part in self._parts:
            part.on_moved(moved)
