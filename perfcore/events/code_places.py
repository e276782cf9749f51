"""CodePlaces: listeners at instructions of the code that processes map, wherever each of them has mapped it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from weakref import WeakKeyDictionary

from emulator.linux.mm import mapping
from emulator.linux.mm.breakpoints import Listener
from emulator.linux.mm.mapping import PROT_EXEC
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.task import Task
from perfcore.events.kernel import Linux

FindPlaces = Callable[[mapping.Mapping], Mapping[int, Listener]]
"""By offset in the file of which something has been mapped as code; not all of them need be in that mapping."""


class CodePlaces:
    """Make it before tasks run."""

    def __init__(self, kernel: Linux, find: FindPlaces) -> None:
        self._find = find
        self._places: WeakKeyDictionary[MemoryMap, dict[int, Listener]] = WeakKeyDictionary()
        kernel.tracepoints.mmap.subscribe(self._mmap)
        kernel.tracepoints.task_fork.subscribe(self._task_fork)

    def _mmap(self, task: Task, mapped: mapping.Mapping) -> None:
        """Other code may be where some was."""
        if not mapped.protection & PROT_EXEC:
            return
        memory = task.mm
        places = self._places.setdefault(memory, {})
        for address in [address for address in places if mapped.start <= address < mapped.end]:
            memory.breakpoints.clear(address, places.pop(address))
        if mapped.file is None:
            return
        for offset, listener in self._find(mapped).items():
            address = mapped.start + offset - mapped.offset
            if mapped.start <= address < mapped.end:
                self.set(memory, address, listener)

    def _task_fork(self, parent: Task, child: Task) -> None:
        if child.mm is not parent.mm:
            for address, listener in self._places.get(parent.mm, {}).items():
                self.set(child.mm, address, listener)

    def set(self, memory: MemoryMap, address: int, listener: Listener) -> None:
        """Also of a place that was not found, but learned of later."""
        self._places.setdefault(memory, {})[address] = listener
        memory.breakpoints.set(address, listener)

    def is_set(self, memory: MemoryMap, address: int) -> bool:
        return address in self._places.get(memory, ())
