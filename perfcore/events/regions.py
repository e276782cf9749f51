"""Regions: the parts of threads that count: from each entry of one function to its return, or to another's entry.

A thread is inside, or not. Entries within a region do not begin another: the return that ends it is the one to its own
caller, with the stack pointer that this had, so a recursion is counted once. Who leaves the function otherwise, by
longjmp or an exception, is found by the stack pointer, too, on landing: behind a call of setjmp, or where an exception
is caught or thrown on; at the latest where the function is entered again, or the kernel, from further up the stack.

Processes that are forked inside are inside; threads that are made there are not, for they are on another stack. The end
of a thread, or another program in its place, ends its region.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from emulator.cpu import Cpu
from emulator.linux.mm.breakpoints import Listener
from emulator.linux.mm.mapping import MappedFile, Mapping
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.task import Task
from perfcore.events.code_places import CodePlaces
from perfcore.events.kernel import Linux


@dataclass(frozen=True, slots=True)
class Entries:
    """First instructions of functions, as offsets in one file."""

    first: tuple[int, ...] = ()  # where regions begin
    last: tuple[int, ...] = ()  # where they end, if not by a return
    returning_twice: tuple[int, ...] = ()  # setjmp and its like
    catching: tuple[int, ...] = ()  # what code calls that an exception has come to


FindEntries = Callable[[MappedFile], Entries]
"""Of a file that has been mapped."""


@dataclass(frozen=True, slots=True)
class _Inside:
    """A thread's region: how the function returns."""

    memory: MemoryMap
    return_address: int | None = None  # None: it ends otherwise
    stack_pointer: int = 0  # when it has returned

    def is_above(self, other: _Inside) -> bool:
        """Whether it was called further up on the same stack."""
        return self.stack_pointer > other.stack_pointer and self.is_on_stack_of(other)

    def is_on_stack_of(self, other: _Inside) -> bool:
        """Stacks are mappings: signals, coroutines and threads have others."""
        own = self._stack()
        return own is not None and own == other._stack()

    def _stack(self) -> Mapping | None:
        """An empty one ends at its stack pointer."""
        find = self.memory.mappings.find
        return find(self.stack_pointer) or find(self.stack_pointer - 1)


@dataclass(slots=True)
class RegionCounts:
    """What has happened."""

    entered: int = 0
    ended_at_entry: int = 0  # of the other function
    left: int = 0  # neither that nor a return


class Regions:
    """Which threads are inside. Make it before tasks run; `moved` is called whenever a thread comes or goes."""

    def __init__(self, kernel: Linux, find: FindEntries, *, to_entry: bool = False) -> None:
        """`to_entry`: regions end at an entry of `Entries.last`, not at the function's return."""
        self.counts = RegionCounts()
        self._kernel = kernel
        self._find = find
        self._to_entry = to_entry
        self._inside: dict[Task, _Inside] = {}
        self._places = CodePlaces(kernel, self._found)
        self._moved: list[Callable[[Task], None]] = []
        tracepoints = kernel.tracepoints
        tracepoints.task_fork.subscribe(self._task_fork)
        tracepoints.task_exec.subscribe(self._end)
        tracepoints.task_exit.subscribe(self._end)
        if not to_entry:
            tracepoints.sys_enter.subscribe(self._sys_enter)

    def __contains__(self, task: Task) -> bool:
        """Whether `task` is inside."""
        return task in self._inside

    def on_moved(self, moved: Callable[[Task], None]) -> None:
        """Call `moved` with each thread that has come inside, or gone, before it executes anything."""
        self._moved.append(moved)

    # where

    def _found(self, mapping: Mapping) -> dict[int, Listener]:
        assert mapping.file is not None, "only files have places"
        return self._listeners(self._find(mapping.file))

    def _listeners(self, entries: Entries) -> dict[int, Listener]:
        """By offset."""
        listeners: dict[int, Listener] = {}
        if not self._to_entry:
            listeners |= dict.fromkeys(entries.returning_twice, self._will_return_twice)
            listeners |= dict.fromkeys(entries.catching, self._caught)
        both = set(entries.first) & set(entries.last)
        listeners |= dict.fromkeys(entries.last, self._last)
        return listeners | {offset: self._renewed if offset in both else self._first for offset in entries.first}

    def _task_fork(self, parent: Task, child: Task) -> None:
        inside = self._inside.get(parent)
        if inside is not None and child.pid != parent.pid:
            self._begin(child, replace(inside, memory=child.mm))

    # who

    def _first(self, cpu: Cpu) -> None:
        """A thread enters the function."""
        task = self._executing(cpu)
        inside = self._inside.get(task)
        if self._to_entry:
            if inside is None:
                self.counts.entered += 1
                self._begin(task, _Inside(task.mm))
            return
        called = self._called(cpu, task)
        if inside is not None:
            same_caller = called.return_address == inside.return_address
            if not called.is_above(inside) and (same_caller or called.stack_pointer != inside.stack_pointer):
                return
            self.counts.left += 1
            self._forget(task)
        self.counts.entered += 1
        self._begin(task, called, moves=inside is None)

    def _called(self, cpu: Cpu, task: Task) -> _Inside:
        """The function whose first instruction comes next."""
        caller, stack_pointer = self._kernel.architecture.caller(cpu.core, task.mm.space)
        return _Inside(task.mm, caller, stack_pointer)

    def _last(self, cpu: Cpu) -> None:
        """A thread enters the function at which regions end."""
        task = self._executing(cpu)
        if task in self._inside:
            self.counts.ended_at_entry += 1
            self._end(task)

    def _renewed(self, cpu: Cpu) -> None:
        """The function at which they begin is that at which they end."""
        self._last(cpu)
        self._first(cpu)

    def _returned(self, cpu: Cpu) -> None:
        """A thread is where some region's function returns to."""
        task = self._executing(cpu)
        inside = self._inside.get(task)
        if inside is None or inside.return_address != cpu.core.pc:
            return
        if self._stack_pointer(task) >= inside.stack_pointer:
            self._end(task)

    def _will_return_twice(self, cpu: Cpu) -> None:
        """What is behind this call may be where a longjmp lands."""
        task = self._executing(cpu)
        caller = self._called(cpu, task).return_address
        if caller is not None and not self._places.is_set(task.mm, caller):
            self._places.set(task.mm, caller, self._landed)

    def _landed(self, cpu: Cpu) -> None:
        self._end_if_left(self._executing(cpu), self._stack_pointer(self._executing(cpu)))

    def _caught(self, cpu: Cpu) -> None:
        task = self._executing(cpu)
        self._end_if_left(task, self._called(cpu, task).stack_pointer)

    def _sys_enter(self, task: Task, number: int, arguments: tuple[int, ...]) -> None:
        self._end_if_left(task, self._stack_pointer(task) - 1)

    def _end_if_left(self, task: Task, stack_pointer: int) -> None:
        """If a frame with this stack pointer is the top one, the region's function has none any more."""
        inside = self._inside.get(task)
        if inside is None or stack_pointer < inside.stack_pointer:
            return
        if _Inside(task.mm, None, stack_pointer).is_on_stack_of(inside):
            self.counts.left += 1
            self._end(task)

    def _executing(self, cpu: Cpu) -> Task:
        task = self._kernel.current(cpu)
        assert task is not None, "an idle CPU comes to no breakpoint"
        return task

    def _stack_pointer(self, task: Task) -> int:
        return task.cpu.core.read_register(self._kernel.architecture.sp)

    def _begin(self, task: Task, inside: _Inside, moves: bool = True) -> None:
        self._inside[task] = inside
        if inside.return_address is not None:
            inside.memory.breakpoints.set(inside.return_address, self._returned)
        if moves:
            self._tell(task)

    def _end(self, task: Task) -> None:
        if task in self._inside:
            self._forget(task)
            self._tell(task)

    def _forget(self, task: Task) -> None:
        inside = self._inside.pop(task)
        if inside.return_address is not None:
            inside.memory.breakpoints.clear(inside.return_address, self._returned)

    def _tell(self, task: Task) -> None:
        for moved in self._moved:
            moved(task)
