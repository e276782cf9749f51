"""The drivers of the PMUs kprobe and uprobe: a probe for each event, at a place that this names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from emulator.cpu import Cpu
from emulator.linux.errors import EACCES, ENOENT, EOPNOTSUPP, LinuxError
from emulator.linux.process.task import Task
from perfcore.abi.bpf import ProgType
from perfcore.abi.constants import KPROBE_TYPE, UPROBE_TYPE, SampleType
from perfcore.events.drivers.software import count_occurrence, start_software_period
from perfcore.events.drivers.without_counters import CountedAsTold
from perfcore.events.event import PerfEvent
from perfcore.events.late_probes import DefinedEvent, LateProbes
from perfcore.events.permission import perfmon_capable
from perfcore.events.programs import ProgramArray, Registers


class ProbeDriver(CountedAsTold):
    """attr.config says whether of a return."""

    name: str
    type: int
    sysfs_format: Mapping[str, str]

    def __init__(self, probes: LateProbes) -> None:
        self._late = probes
        self._probes: dict[PerfEvent, DefinedEvent] = {}
        self._programs: dict[PerfEvent, ProgramArray] = {}
        self._active: set[PerfEvent] = set()

    def event_init(self, event: PerfEvent) -> None:
        attr = event.attr
        if attr.type != self.type:
            raise LinuxError(ENOENT, f"type {attr.type} is not the PMU {self.name}'s")
        if not perfmon_capable(event.owner):
            raise LinuxError(EACCES, f"{self.name}s need CAP_PERFMON")
        if attr.sample_type & SampleType.BRANCH_STACK:
            raise LinuxError(EOPNOTSUPP, f"{self.name}s have no branch records")
        probe = self._late.get().local(self.name, event)
        probe.open(event)
        self._probes[event] = probe
        event.when_destroyed.append(self._destroy)

    def _destroy(self, event: PerfEvent) -> None:
        self._probes.pop(event).close(event)
        self._programs.pop(event, None)

    def add(self, event: PerfEvent, cpu: Cpu) -> bool:
        start_software_period(event)
        self._active.add(event)
        self._listen(event)
        return True

    def del_(self, event: PerfEvent) -> None:
        event.hw.stopped = True
        self._active.discard(event)
        self._listen(event)

    def programs(self, event: PerfEvent) -> ProgramArray:
        found = self._programs.get(event)
        if found is None:
            found = self._programs[event] = ProgramArray(ProgType.KPROBE, 0)
            found.on_change = lambda: self._listen(event)
        return found

    def _listen(self, event: PerfEvent) -> None:
        """While it counts, or a program is run."""
        told = self._probes[event].told
        told.clear()
        if event in self._active or self._programs.get(event):
            told.subscribe(partial(self._hit, event))

    def _hit(
        self, event: PerfEvent, hit: object, cpu: Cpu, task: Task, places: tuple[int, ...], moment: Registers
    ) -> None:
        """__uprobe_perf_func(), kprobe_perf_func()"""
        programs, probe = self._programs.get(event), self._probes[event]
        if programs and not programs.on_probe(cpu, places, moment.register):
            return
        excluded = probe.in_kernel and event.attr.exclude_kernel
        if event.on_cpu is cpu and not excluded and not event.hw.stopped:
            raw = event.attr.sample_type & SampleType.RAW
            count_occurrence(event, cpu, raw=probe.described.pack(task.tid, places) if raw else b"")


class UprobeDriver(ProbeDriver):
    """attr.uprobe_path (config1), attr.probe_offset (config2); config says which semaphore, too."""

    name = "uprobe"
    type = UPROBE_TYPE
    sysfs_format = MappingProxyType({"retprobe": "config:0", "ref_ctr_offset": "config:32-63"})


class KprobeDriver(ProbeDriver):
    """attr.kprobe_func (config1) and attr.probe_offset (config2), or attr.kprobe_addr (config2) alone."""

    name = "kprobe"
    type = KPROBE_TYPE
    sysfs_format = MappingProxyType({"retprobe": "config:0"})
