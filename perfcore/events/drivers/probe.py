"""The driver of the PMU uprobe: a probe for each event, at an instruction that this names. As perf_uprobe."""

from __future__ import annotations

from emulator.cpu import Cpu
from emulator.linux.errors import E2BIG, EACCES, EINVAL, ENOENT, EOPNOTSUPP, LinuxError
from emulator.linux.process.task import Task
from perfcore.abi.constants import UPROBE_TYPE, SampleType
from perfcore.events.drivers.software import count_occurrence, start_software_period
from perfcore.events.drivers.without_counters import CountedAsTold
from perfcore.events.event import PerfEvent
from perfcore.events.permission import perfmon_capable
from perfcore.events.probes.dynamic_events import DynamicEvents
from perfcore.events.probes.probe_event import ProbeEvent, TraceUprobe, described
from perfcore.events.probes.tracefs import find_probed_file
from perfcore.events.probes.uprobe_definition import GROUP, UprobeDefinition

_PATH_MAX = 4096
_RETPROBE = 1 << 0  # of attr.config
_SEMAPHORE_SHIFT = 32


class UprobeDriver(CountedAsTold):
    """attr.uprobe_path (config1), attr.probe_offset (config2); config says whether of a return, and the semaphore."""

    name = "uprobe"
    type = UPROBE_TYPE
    sysfs_format = {"retprobe": "config:0", "ref_ctr_offset": "config:32-63"}

    def __init__(self, probes: DynamicEvents) -> None:
        self._uprobes = probes.uprobes
        self._definitions: dict[PerfEvent, UprobeDefinition] = {}
        self._probes: dict[PerfEvent, ProbeEvent] = {}

    def event_init(self, event: PerfEvent) -> None:
        attr = event.attr
        if attr.type != self.type:
            raise LinuxError(ENOENT, f"type {attr.type} is not the PMU uprobe's")
        if not perfmon_capable(event.owner):
            raise LinuxError(EACCES, "uprobes need CAP_PERFMON")
        if attr.sample_type & SampleType.BRANCH_STACK:
            raise LinuxError(EOPNOTSUPP, "uprobes have no branch records")
        definition = self._definition(event) if event.parent is None else self._definitions[event.parent]
        probe = ProbeEvent(described(0, GROUP, definition.event, definition.returns, ()))
        probe.probes.append(TraceUprobe(definition, probe))
        probe.open(self._uprobes, event)
        self._definitions[event], self._probes[event] = definition, probe
        event.destroy = self._destroy

    def _definition(self, event: PerfEvent) -> UprobeDefinition:
        """create_local_trace_uprobe()"""
        attr, owner = event.attr, event.owner
        if owner is None or not attr.config1:
            raise LinuxError(EINVAL, "uprobe_path: an address in the memory of who opens the event")
        text = owner.mm.read_string(attr.config1, _PATH_MAX)
        if len(text) >= _PATH_MAX:
            raise LinuxError(E2BIG, f"uprobe_path: a path is shorter than {_PATH_MAX} bytes")
        if not text:
            raise LinuxError(EINVAL, "uprobe_path is empty")
        path = text.decode("utf-8", "surrogateescape")
        file = find_probed_file(owner, path)
        returns, semaphore = bool(attr.config & _RETPROBE), attr.config >> _SEMAPHORE_SHIFT
        return UprobeDefinition(GROUP, "DUMMY_EVENT", returns, path, file, attr.config2, semaphore, ())

    def _destroy(self, event: PerfEvent) -> None:
        self._probes.pop(event).close(self._uprobes, event)
        del self._definitions[event]

    def add(self, event: PerfEvent, cpu: Cpu) -> None:
        start_software_period(event)
        probe = self._probes[event]

        def hit(hit: TraceUprobe, cpu: Cpu, task: Task, places: tuple[int, ...]) -> None:
            if event.on_cpu is cpu and not event.hw.stopped:
                raw = event.attr.sample_type & SampleType.RAW
                count_occurrence(event, cpu, raw=probe.described.pack(task.tid, places) if raw else b"")

        probe.told.subscribe(hit)

    def del_(self, event: PerfEvent) -> None:
        event.hw.stopped = True
        self._probes[event].told.clear()
