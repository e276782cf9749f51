"""Followed: the tasks that count because of their ids, from when they appear, and what they start: perf's -p and -t."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.linux.process.task import Task
from perfcore.events.kernel import Linux


@dataclass(frozen=True, slots=True)
class Ids:
    """Of processes, with all of their threads, and of threads alone."""

    pids: frozenset[int] = frozenset()
    tids: frozenset[int] = frozenset()

    def __contains__(self, task: Task) -> bool:
        return task.pid in self.pids or task.tid in self.tids


class Followed:
    """Make it before tasks run. With `inherit`, what a task starts that is followed is followed, too."""

    def __init__(self, kernel: Linux, ids: Ids, first: Task, *, inherit: bool) -> None:
        self.seen: set[int] = {first.tid}  # of all tasks, followed or not
        self._ids, self._inherit = ids, inherit
        self._tasks: set[Task] = {first} if first in ids else set()
        kernel.tracepoints.task_fork.subscribe(self._task_fork)
        kernel.tracepoints.task_exit.subscribe(self._tasks.discard)

    def __contains__(self, task: Task) -> bool:
        return task in self._tasks

    def on_moved(self, moved: Callable[[Task], None]) -> None:
        """None ever does: each begins as it goes on."""

    def _task_fork(self, parent: Task, child: Task) -> None:
        self.seen.add(child.tid)
        if child in self._ids or (self._inherit and parent in self._tasks):
            self._tasks.add(child)

    @property
    def missing(self) -> list[int]:
        """Those of the ids that no task had."""
        return sorted((self._ids.pids | self._ids.tids) - self.seen)
