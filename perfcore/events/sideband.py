"""Sideband: the records about tasks and mappings that make samples readable: COMM, MMAP, FORK, EXIT, SWITCH.

Heard as tracepoints; each record goes to every event that asked for it and counts where it happens (perf_iterate_sb).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator

from emulator.cpu import Cpu
from emulator.linux.cgroup.cgroups import Cgroup
from emulator.linux.fs.attributes import device_number
from emulator.linux.mm.mapping import MAP_PRIVATE, MAP_SHARED, MAP_TYPE, PROT_EXEC, Mapping
from emulator.linux.proc.namespaces import FIRST_NAMESPACES, NSFS_DEVICE
from emulator.linux.process.task import Task
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import Misc
from perfcore.abi.records import (
    NAMESPACES,
    BpfEvent,
    Comm,
    Exit,
    Fork,
    Mmap,
    Mmap2,
    Mmap2BuildId,
    Namespaces,
    Record,
    Switch,
    SwitchCpuWide,
)
from perfcore.abi.records import Cgroup as CgroupRecord
from perfcore.events.build_id import MOST_BYTES, build_id_of
from perfcore.events.event import PerfEvent
from perfcore.events.event_state import EventState

ANONYMOUS = "//anon"
COUNTED_FROM_ZERO = (ANONYMOUS, "[heap]", "[stack]")  # private memory of no file: its offset is its address (vm_pgoff)

_LINKS = b"".join(struct.pack("<QQ", device_number(*NSFS_DEVICE), FIRST_NAMESPACES[name]) for name in NAMESPACES)

_PROG_LOAD, _PROG_UNLOAD = 1, 2  # PERF_BPF_EVENT_*

EventsOf = Callable[[Task], Iterable[PerfEvent]]


def wants_tasks(attr: PerfEventAttr) -> bool:
    """Who gets FORK and EXIT: all that follow tasks at all (perf_event_task_match)."""
    return bool(attr.comm or attr.mmap or attr.mmap2 or attr.mmap_data or attr.task)


def namespaces_of(task: Task) -> Namespaces:
    """Nobody has others than the first process."""
    return Namespaces(task.pid, task.tid, len(NAMESPACES), _LINKS)


class Sideband:
    """Writes the records.

    `events_of(task)` gives the events that could hear of what `task` does, `events_on(number)` those of a CPU's own,
    `all_events` all there are.
    """

    def __init__(
        self,
        events_of: EventsOf,
        events_on: Callable[[int], Iterable[PerfEvent]],
        all_events: Callable[[], Iterable[PerfEvent]],
    ) -> None:
        self._events_of = events_of
        self._events_on = events_on
        self._all_events = all_events
        self._last: dict[int, Task | None] = {}  # who was on each CPU before; None: it idled

    def _write(self, event: PerfEvent, record: Record, misc: int, cpu: Cpu | None) -> None:
        event.write_record(event.output.record(record, misc, cpu))

    def _listeners(self, task: Task, wanted: Callable[[PerfEventAttr], object]) -> list[PerfEvent]:
        return _wanting(self._events_of(task), wanted)

    def comm(self, task: Task, by_exec: bool) -> None:
        for event in self._listeners(task, lambda attr: attr.comm):
            self._write(event, Comm(task.pid, task.tid, task.comm), Misc.COMM_EXEC if by_exec else 0, task.cpu)

    def fork(self, parent: Task, child: Task) -> None:
        for event in self._listeners(parent, wants_tasks):
            self._write(event, Fork(child.pid, parent.pid, child.tid, parent.tid, event.now_ns()), 0, parent.cpu)
        for event in self._listeners(parent, lambda attr: attr.namespaces):
            self._write(event, namespaces_of(child), 0, parent.cpu)

    def exit(self, task: Task) -> None:
        for event in self._listeners(task, wants_tasks):
            self._write(event, Exit(task.pid, task.ppid, task.tid, task.ppid, event.now_ns()), 0, task.cpu)

    def mmap(self, task: Task, mapping: Mapping) -> None:
        executable = bool(mapping.protection & PROT_EXEC)
        misc = Misc.USER | (0 if executable else Misc.MMAP_DATA)
        events = self._listeners(task, lambda a: (a.mmap or a.mmap2) if executable else a.mmap_data)
        if events and not any(map(_counts_mmaps, events)) and not any(map(_counts_mmaps, self._all_events())):
            return
        for event in events:
            record = mmap_record(event.attr, task, mapping)
            self._write(event, record, misc | _misc_of(record), task.cpu)

    def cgroup(self, task: Task, cgroup: Cgroup) -> None:
        for event in self._listeners(task, lambda attr: attr.cgroup):
            self._write(event, CgroupRecord(cgroup.id, cgroup.path), 0, task.cpu)

    def bpf_program(self, cpu: Cpu, task: Task | None, loaded: bool, number: int, tag: bytes) -> None:
        """perf_event_bpf_event(). No KSYMBOL: nothing is compiled that would be at an address of the kernel's."""
        record = BpfEvent(_PROG_LOAD if loaded else _PROG_UNLOAD, 0, number, int.from_bytes(tag, "little"))
        events = self._events_on(cpu.number) if task is None else self._events_of(task)
        for event in _wanting(events, lambda attr: attr.bpf_event):
            self._write(event, record, 0, cpu)

    # switches, of which CPUs hear who comes or was there before; the idle task's ids are 0

    def leaves(self, cpu: Cpu, previous: Task | None, following: Task | None, preempted: bool) -> None:
        self._last[cpu.number] = previous
        misc = Misc.SWITCH_OUT | (Misc.SWITCH_OUT_PREEMPT if preempted else 0)
        self._switch(previous, cpu, following, misc)

    def comes(self, task: Task, cpu: Cpu) -> None:
        self._switch(task, cpu, self._last.get(cpu.number), 0)

    def idles(self, cpu: Cpu) -> None:
        self._switch(None, cpu, self._last.get(cpu.number), 0)

    def _switch(self, task: Task | None, cpu: Cpu, other: Task | None, misc: int) -> None:
        events = self._events_on(cpu.number) if task is None else self._events_of(task)
        for event in _wanting(events, lambda attr: attr.context_switch):
            record: Record = Switch()
            if not event.of_task:
                record = SwitchCpuWide(0, 0) if other is None else SwitchCpuWide(other.pid, other.tid)
            self._write(event, record, misc, cpu)


def _counts_mmaps(event: PerfEvent) -> bool:
    """nr_mmap_events: mmap2 is no reason to tell anybody of a mapping."""
    return bool(event.attr.mmap or event.attr.mmap_data)


def _wanting(events: Iterable[PerfEvent], wanted: Callable[[PerfEventAttr], object]) -> list[PerfEvent]:
    """perf_iterate_ctx: those that are not off."""
    return [event for event in events if event.state >= EventState.INACTIVE and wanted(event.attr)]


def mmap_record(attr: PerfEventAttr, task: Task, mapping: Mapping) -> Record:
    """perf_event_mmap_event: MMAP2 for who knows it, else MMAP. The build id is in the place of the file's numbers."""
    file = mapping.file
    name = mapping.path or ANONYMOUS
    pgoff = mapping.start if name in COUNTED_FROM_ZERO and mapping.flags & MAP_PRIVATE else mapping.offset
    if not attr.mmap2:
        return Mmap(task.pid, task.tid, mapping.start, mapping.length, pgoff, name)
    protection, flags = mapping.protection & 7, mapping.flags & MAP_TYPE & (MAP_SHARED | MAP_PRIVATE)
    build_id = build_id_of(mapping.content) if attr.build_id else b""
    if build_id:
        where = mapping.start, mapping.length, pgoff
        return Mmap2BuildId(
            task.pid, task.tid, *where, len(build_id), 0, 0, build_id.ljust(MOST_BYTES, b"\0"), protection, flags, name
        )
    return Mmap2(
        task.pid,
        task.tid,
        mapping.start,
        mapping.length,
        pgoff,
        file.major if file is not None else 0,
        file.minor if file is not None else 0,
        file.inode if file is not None else 0,
        file.generation if file is not None else 0,
        protection,
        flags,
        name,
    )


def _misc_of(record: Record) -> int:
    return Misc.MMAP_BUILD_ID if isinstance(record, Mmap2BuildId) else 0


def records_of_living(event: PerfEvent, tasks: Iterable[Task]) -> Iterator[bytes]:
    """What `event` would have been told of tasks that are there, and of what they have mapped, if it had just begun:
    as perf synthesizes it from /proc."""
    attr, told = event.attr, set[int]()
    for task in tasks:
        if task.exit_code is not None or task.process.is_init:
            continue
        yield event.output.record(Comm(task.pid, task.tid, task.comm), 0, task.cpu)
        if task.pid in told:
            continue
        told.add(task.pid)
        for mapping in task.mm.mappings:
            executable = bool(mapping.protection & PROT_EXEC)
            if executable or attr.mmap_data:
                misc = Misc.USER | (0 if executable else Misc.MMAP_DATA)
                record = mmap_record(attr, task, mapping)
                yield event.output.record(record, misc | _misc_of(record), task.cpu)
