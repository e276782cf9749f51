"""Uprobes: who hears of an instruction of a file, in every process that maps it. As kernel/events/uprobes.c.

Linux writes a breakpoint into the code, and another return address onto the stack. Here nothing is written: the core
stops there, and a return is found by its address and the stack pointer. Returns that a longjmp has passed by are
forgotten as Linux forgets them, by the stack pointer, too: when the next probed function is entered, or returns.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from collections.abc import Mapping as Mappings
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

from emulator.cpu import Cpu
from emulator.linux.errors import EINVAL, LinuxError
from emulator.linux.mm.mapping import PROT_EXEC, PROT_WRITE, Mapping
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.mm.remote_access import read_remote, write_remote
from emulator.linux.process.task import Task
from perfcore.events.kernel import Linux

MOST_NESTED = 64  # MAX_URETPROBE_DEPTH
_LONGEST_CALL = 15  # bytes of an instruction
_NEGATIVE = 1 << 63  # as an offset, which has a sign: none that Linux refuses, and none of any instruction


class Place(NamedTuple):
    """An instruction of a file."""

    inode: int
    offset: int


class Consumer(Protocol):
    """Who listens (struct uprobe_consumer)."""

    @property
    def hears_returns(self) -> bool:
        """... of the function that begins there, rather than of the instruction."""

    @property
    def semaphore(self) -> int:
        """ref_ctr_offset: in the same file, where a process counts who listens; 0: nowhere."""

    def wants(self, memory: MemoryMap) -> bool:
        """Whether it listens there (consumer_filter)."""

    def hit(self, cpu: Cpu, task: Task) -> None:
        """The instruction comes next."""

    def returned(self, cpu: Cpu, task: Task, function: int) -> None:
        """The function at this address has returned."""


class ProbedLinux(Linux, Protocol):
    """A kernel whose processes are known."""

    @property
    def tasks(self) -> Mappings[int, Task]: ...


@dataclass(slots=True)
class _Uprobe:
    """All who listen to one place."""

    place: Place
    consumers: list[Consumer] = field(default_factory=list)
    counted_in: WeakKeyDictionary[MemoryMap, int] = field(default_factory=WeakKeyDictionary)  # semaphores' addresses

    def is_wanted(self, memory: MemoryMap) -> bool:
        """filter_chain()"""
        return any(consumer.wants(memory) for consumer in self.consumers)


@dataclass(frozen=True, slots=True)
class _Call:
    """One that will return (struct return_instance)."""

    memory: MemoryMap
    uprobe: _Uprobe
    function: int
    return_address: int
    stack_pointer: int  # when it has returned


@dataclass(slots=True)
class _Stop:
    """Why the core stops at an address."""

    uprobe: _Uprobe | None = None
    calls: int = 0  # that return to it


class Uprobes:
    """All of one kernel. As long as nobody registers it hears of nothing."""

    def __init__(self, kernel: ProbedLinux, most_nested: int | None = MOST_NESTED) -> None:
        """`most_nested`: of a task's calls that have not returned; of more nothing is heard. None: all are followed."""
        self._most_nested = most_nested
        self._kernel = kernel
        self._uprobes: dict[int, dict[int, _Uprobe]] = {}  # by inode and offset
        self._stops: WeakKeyDictionary[MemoryMap, dict[int, _Stop]] = WeakKeyDictionary()
        self._calls: dict[Task, list[_Call]] = {}  # the innermost is the last
        self._listens = False

    # who listens

    def register(self, place: Place, consumer: Consumer, size: int) -> None:
        """`size`: of the file. Raises LinuxError."""
        alignment = self._kernel.architecture.instruction_alignment
        if size < place.offset < _NEGATIVE:
            raise LinuxError(EINVAL, f"offset {place.offset:#x} is beyond the file's end")
        if place.offset % alignment:
            raise LinuxError(EINVAL, f"offset {place.offset:#x}: instructions are at multiples of {alignment}")
        if consumer.semaphore % 2:
            raise LinuxError(EINVAL, f"semaphore {consumer.semaphore:#x}: its offset must be a multiple of 2")
        self._listen()
        uprobe = self._uprobes.setdefault(place.inode, {}).setdefault(place.offset, _Uprobe(place))
        if any(other.semaphore != consumer.semaphore for other in uprobe.consumers):
            raise LinuxError(EINVAL, f"offset {place.offset:#x}: others have another semaphore there")
        uprobe.consumers.insert(0, consumer)  # who comes later hears sooner (consumer_add)
        self.apply(place)

    def unregister(self, place: Place, consumer: Consumer) -> None:
        uprobe = self._uprobes[place.inode][place.offset]
        uprobe.consumers.remove(consumer)
        self.apply(place)
        if not uprobe.consumers:
            del self._uprobes[place.inode][place.offset]

    def apply(self, place: Place) -> None:
        """register_for_each_vma(): it is in the memories where somebody wants it, and in no other ones."""
        uprobe = self._uprobes[place.inode][place.offset]
        for memory in self._memories():
            if uprobe.is_wanted(memory):
                for mapping in memory.mappings:
                    self._look_for(memory, mapping, [uprobe])
            else:
                self._take_from(memory, uprobe)

    def _take_from(self, memory: MemoryMap, uprobe: _Uprobe) -> None:
        """remove_breakpoint()"""
        stops = self._stops.get(memory, {})
        for address in [address for address, stop in stops.items() if stop.uprobe is uprobe]:
            self._change(memory, address, None)
        counter = uprobe.counted_in.pop(memory, None)
        if counter is not None:
            _count(memory, counter, -1)

    def _listen(self) -> None:
        if not self._listens:
            self._listens = True
            tracepoints = self._kernel.tracepoints
            tracepoints.mmap.subscribe(lambda task, mapping: self._mapped(task.mm, mapping))
            tracepoints.task_fork.subscribe(self._task_fork, first=True)  # events are inherited behind that
            tracepoints.task_exec.subscribe(self._forget_calls)
            tracepoints.task_exit.subscribe(self._forget_calls)

    # where

    def _memories(self) -> list[MemoryMap]:
        return list(dict.fromkeys(task.mm for task in self._kernel.tasks.values() if task.exit_code is None))

    def _mapped(self, memory: MemoryMap, mapping: Mapping) -> None:
        """Other code may be where some was."""
        stops = self._stops.get(memory, {})
        for address in [address for address in stops if mapping.start <= address < mapping.end]:
            self._change(memory, address, None)
        if mapping.file is not None:
            self._look_for(memory, mapping, self._uprobes.get(mapping.file.inode, {}).values())

    def _look_for(self, memory: MemoryMap, mapping: Mapping, uprobes: Iterable[_Uprobe]) -> None:
        """valid_vma(), valid_ref_ctr_vma()"""
        if mapping.file is None or mapping.shared or mapping.holder is not None:
            return
        for uprobe in uprobes:
            if mapping.file.inode != uprobe.place.inode or not uprobe.is_wanted(memory):
                continue
            address = _address(mapping, uprobe.place.offset)
            if address is not None and mapping.protection & PROT_EXEC:
                self._change(memory, address, uprobe)
            semaphore = uprobe.consumers[0].semaphore
            counter = _address(mapping, semaphore) if semaphore and mapping.protection & PROT_WRITE else None
            if counter is not None and memory not in uprobe.counted_in:
                uprobe.counted_in[memory] = counter
                _count(memory, counter, 1)

    def _change(self, memory: MemoryMap, address: int, uprobe: _Uprobe | None, calls: int = 0) -> None:
        """The uprobe of an address is this one, and so many calls more return there."""
        stops = self._stops.setdefault(memory, {})
        stop = stops.get(address)
        if stop is None:
            stop = stops[address] = _Stop()
            memory.breakpoints.set(address, self._reached)
        stop.uprobe = uprobe
        stop.calls += calls
        if stop.uprobe is None and not stop.calls:
            del stops[address]
            memory.breakpoints.clear(address, self._reached)

    def _uprobe_at(self, memory: MemoryMap, address: int) -> _Uprobe | None:
        stop = self._stops.get(memory, {}).get(address)
        return None if stop is None else stop.uprobe

    def _task_fork(self, parent: Task, child: Task) -> None:
        """dup_mmap(), dup_utask(): a thread has not been called by anybody."""
        if child.mm is not parent.mm:
            for address, stop in list(self._stops.get(parent.mm, {}).items()):
                if stop.uprobe is not None:
                    self._change(child.mm, address, stop.uprobe)
                    counter = stop.uprobe.counted_in.get(parent.mm)
                    if counter is not None:
                        stop.uprobe.counted_in[child.mm] = counter  # its memory says so already
        if child.pid != parent.pid:
            for call in self._calls.get(parent, ()):
                self._push(child, replace(call, memory=child.mm))

    # who is there

    def _reached(self, cpu: Cpu) -> None:
        task = self._kernel.current(cpu)
        assert task is not None, "an idle CPU comes to no breakpoint"
        address = cpu.core.pc
        calls = self._calls.get(task)
        if calls:
            self._return(cpu, task, calls, address)
        uprobe = self._uprobe_at(task.mm, address)
        if uprobe is None:
            return
        consumers = tuple(uprobe.consumers)
        for consumer in consumers:
            consumer.hit(cpu, task)
        if not uprobe.is_wanted(task.mm):  # a fork's, to which nobody listens
            self._take_from(task.mm, uprobe)
        elif any(consumer.hears_returns for consumer in consumers):
            self._call(cpu, task, uprobe)

    def _call(self, cpu: Cpu, task: Task, uprobe: _Uprobe) -> None:
        """prepare_uretprobe()"""
        core = cpu.core
        caller, stack_pointer = self._kernel.architecture.caller(core, task.mm.space)
        if caller is None:
            return
        call = _Call(task.mm, uprobe, core.pc, caller, stack_pointer)
        calls = self._calls.get(task, [])
        while calls and calls[-1].stack_pointer <= stack_pointer:
            outer = calls[-1]
            in_its_place = (outer.return_address, outer.stack_pointer) == (caller, stack_pointer)
            if in_its_place and not 0 < caller - core.last_retired_pc <= _LONGEST_CALL:
                break  # it has been jumped to: both return at once
            self._pop(task)
        if self._most_nested is None or len(calls) < self._most_nested:
            self._push(task, call)

    def _return(self, cpu: Cpu, task: Task, calls: list[_Call], address: int) -> None:
        """uprobe_handle_trampoline(): of all that return here at once, the innermost first."""
        stack_pointer = cpu.core.read_register(self._kernel.architecture.sp)
        if not any(call.return_address == address and call.stack_pointer == stack_pointer for call in calls):
            return
        while calls and calls[-1].stack_pointer <= stack_pointer:
            call = calls[-1]
            self._pop(task)
            if call.stack_pointer == stack_pointer and call.return_address == address:
                for consumer in tuple(call.uprobe.consumers):
                    if consumer.hears_returns:
                        consumer.returned(cpu, task, call.function)

    def _push(self, task: Task, call: _Call) -> None:
        self._calls.setdefault(task, []).append(call)
        self._change(call.memory, call.return_address, self._uprobe_at(call.memory, call.return_address), 1)

    def _pop(self, task: Task) -> None:
        call = self._calls[task].pop()
        self._change(call.memory, call.return_address, self._uprobe_at(call.memory, call.return_address), -1)
        if not self._calls[task]:
            del self._calls[task]

    def _forget_calls(self, task: Task) -> None:
        while task in self._calls:
            self._pop(task)


def _address(mapping: Mapping, offset: int) -> int | None:
    """Where an offset of its file is in it."""
    address = mapping.start + offset - mapping.offset
    return address if mapping.start <= address < mapping.end else None


def _count(memory: MemoryMap, address: int, change: int) -> None:
    """__update_ref_ctr(): one more who listens, or one less."""
    data = read_remote(memory, address, 2)
    if len(data) == 2:
        (count,) = struct.unpack("<H", data)
        write_remote(memory, address, struct.pack("<H", (count + change) & 0xFFFF))
