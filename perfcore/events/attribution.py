"""Attribution: which instruction of which task made which events. Exact, from the core's ledger, without an interrupt.

Where a sample would say that an event was here, this says how many were. The cores keep accounts, one for each task;
an account is closed, and its rows delivered, before anything changes that says what its addresses mean.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from emulator.cpu import Cpu
from emulator.linux.mm.mapping import PROT_EXEC, Mapping
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.task import Task
from perfcore.events.kernel import Linux
from perfcore.events.within import Within

_NOBODY = 0


@dataclass(frozen=True, slots=True)
class Attributed:
    """What `task` has done on `cpu` since its account there was opened."""

    task: Task
    cpu: Cpu
    time_ns: int  # until then
    addresses: NDArray[np.uint64]  # of instructions, ascending
    counts: NDArray[np.uint64]  # [instruction, column]


Deliver = Callable[[Attributed], None]


class Attribution:
    """Attributes what tasks do from now on. Make it after the events are open and before tasks run."""

    def __init__(
        self,
        kernel: Linux,
        columns: Sequence[int],
        deliver: Deliver,
        *,
        cpus: Container[int],
        task: Task | None = None,
        within: Within | None = None,
    ) -> None:
        """`columns`: what each counts, as `CounterBank.connect` takes it. Only on `cpus`; `task`: None is all of them;
        `within`: only who is within that.
        """
        self._kernel = kernel
        self._row_words = 1 + len(columns)
        self._deliver = deliver
        self._task = task
        self._within = within
        self._cpus = [cpu for cpu in kernel.cpus if cpu.number in cpus]
        self._accounts: dict[Task, int] = {}
        self._opened = _NOBODY
        self._code: WeakKeyDictionary[MemoryMap, _Ranges] = WeakKeyDictionary()
        for cpu in self._cpus:
            cpu.core.attribute(columns)
        if within is not None:
            within.on_moved(self._moved)
        tracepoints = kernel.tracepoints
        tracepoints.sched_in.subscribe(self._sched_in)
        tracepoints.sched_out.subscribe(self._sched_out)
        # Before the records that change what addresses mean.
        tracepoints.task_exit.subscribe(self._task_exit, first=True)
        tracepoints.task_exec.subscribe(self.close, first=True)
        tracepoints.task_comm.subscribe(self._task_comm, first=True)
        tracepoints.mmap.subscribe(self._mmap, first=True)
        for cpu in self._cpus:
            current = kernel.current(cpu)
            if current is not None:
                self._sched_in(current, cpu)

    def finish(self) -> None:
        """Close the accounts of all who have not ended."""
        for task in list(self._accounts):
            self.close(task)

    def close(self, task: Task) -> None:
        """Deliver what `task` has come to, and begin anew."""
        account = self._accounts.get(task)
        if account is None:
            return
        for cpu in self._cpus:
            rows = np.frombuffer(cpu.core.take_attribution(account), np.uint64).reshape(-1, self._row_words)
            if len(rows):
                self._deliver(Attributed(task, cpu, self._kernel.clock.monotonic_ns(), rows[:, 0], rows[:, 1:]))

    def _sched_in(self, task: Task, cpu: Cpu) -> None:
        if cpu in self._cpus and self._counts(task):
            account = self._accounts.get(task)
            if account is None:
                self._opened += 1
                account = self._accounts[task] = self._opened
            cpu.core.attribute_to(account)

    def _sched_out(self, task: Task, cpu: Cpu, following: Task | None) -> None:
        if cpu in self._cpus:
            cpu.core.attribute_to(_NOBODY)

    def _moved(self, task: Task) -> None:
        """It has come inside a region, or left it."""
        if self._kernel.current(task.cpu) is not task:
            return
        if self._counts(task):
            self._sched_in(task, task.cpu)
        else:
            self._sched_out(task, task.cpu, None)

    def _counts(self, task: Task) -> bool:
        return self._task in (None, task) and (self._within is None or task in self._within)

    def _task_exit(self, task: Task) -> None:
        self.close(task)
        self._accounts.pop(task, None)

    def _task_comm(self, task: Task, by_exec: bool) -> None:
        self.close(task)

    def _mmap(self, task: Task, mapping: Mapping) -> None:
        """Code comes where code of the process has been before: what has been executed there was the other."""
        if not mapping.protection & PROT_EXEC:
            return
        ranges = self._code.setdefault(task.mm, _Ranges())
        if ranges.add(mapping.start, mapping.start + mapping.length):
            for other in list(self._accounts):
                if other.mm is task.mm:
                    self.close(other)


class _Ranges:
    """Addresses at which a process has had code, as disjoint ranges in ascending order."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> bool:
        """Whether some of them were there before."""
        first = bisect_left(self._ends, start)  # ranges from here on end at `start` or behind it
        last = bisect_right(self._starts, end)  # ranges before here start at `end` or before it
        touched = range(first, last)
        overlap = any(self._starts[i] < end and start < self._ends[i] for i in touched)
        if touched:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]
        return overlap
