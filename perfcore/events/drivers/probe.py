"""The drivers of the PMUs kprobe and uprobe: a probe for each event, at a place that this names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType

from emulator.cpu import Cpu
from emulator.linux.errors import E2BIG, EACCES, EINVAL, ENOENT, EOPNOTSUPP, LinuxError
from emulator.linux.process.task import Task
from perfcore.abi.constants import KPROBE_TYPE, UPROBE_TYPE, SampleType
from perfcore.events.drivers.software import count_occurrence, start_software_period
from perfcore.events.drivers.without_counters import CountedAsTold
from perfcore.events.event import PerfEvent
from perfcore.events.permission import perfmon_capable
from perfcore.events.probes import kprobe_definition, uprobe_definition
from perfcore.events.probes.dynamic_events import AnyDefinition, DynamicEvents
from perfcore.events.probes.kprobe_definition import KprobeDefinition, check_returns, find_function
from perfcore.events.probes.probe_event import ProbeEvent
from perfcore.events.probes.tracefs import find_probed_file
from perfcore.events.probes.uprobe_definition import UprobeDefinition

_PATH_MAX = 4096
_KSYM_NAME_LEN = 512
_RETPROBE = 1 << 0  # of attr.config
_SEMAPHORE_SHIFT = 32
_LOCAL = "DUMMY_EVENT"  # its name, which nobody sees
_RETPROBE_FORMAT = {"retprobe": "config:0"}


class ProbeDriver(CountedAsTold):
    """attr.config says whether of a return."""

    name: str
    type: int
    sysfs_format: Mapping[str, str]

    def __init__(self, probes: DynamicEvents) -> None:
        self._dynamic = probes
        self._definitions: dict[PerfEvent, AnyDefinition] = {}
        self._probes: dict[PerfEvent, ProbeEvent] = {}

    def event_init(self, event: PerfEvent) -> None:
        attr = event.attr
        if attr.type != self.type:
            raise LinuxError(ENOENT, f"type {attr.type} is not the PMU {self.name}'s")
        if not perfmon_capable(event.owner):
            raise LinuxError(EACCES, f"{self.name}s need CAP_PERFMON")
        if attr.sample_type & SampleType.BRANCH_STACK:
            raise LinuxError(EOPNOTSUPP, f"{self.name}s have no branch records")
        returns = bool(attr.config & _RETPROBE)
        inherited = event.parent is not None
        definition = self._definitions[event.parent] if event.parent is not None else self._definition(event, returns)
        assert inherited or event.owner is not None, "a guest opens it"
        probe = self._dynamic.local_event(definition)
        probe.open(event)
        self._definitions[event], self._probes[event] = definition, probe
        event.destroy = self._destroy

    @abstractmethod
    def _definition(self, event: PerfEvent, returns: bool) -> AnyDefinition:
        """What attr.config1 and config2 say. Raises LinuxError."""

    def _destroy(self, event: PerfEvent) -> None:
        self._probes.pop(event).close(event)
        del self._definitions[event]

    def add(self, event: PerfEvent, cpu: Cpu) -> None:
        start_software_period(event)
        probe = self._probes[event]
        excluded = probe.in_kernel and event.attr.exclude_kernel

        def hit(hit: object, cpu: Cpu, task: Task, places: tuple[int, ...], moment: object) -> None:
            if event.on_cpu is cpu and not excluded and not event.hw.stopped:
                raw = event.attr.sample_type & SampleType.RAW
                count_occurrence(event, cpu, raw=probe.described.pack(task.tid, places) if raw else b"")

        probe.told.subscribe(hit)

    def del_(self, event: PerfEvent) -> None:
        event.hw.stopped = True
        self._probes[event].told.clear()


def _text(event: PerfEvent, what: str, limit: int) -> str:
    """What stands at attr.config1, in the memory of who opens the event."""
    owner = event.owner
    assert owner is not None, "a guest opens it"
    text = owner.mm.read_string(event.attr.config1, limit)
    if len(text) >= limit:
        raise LinuxError(E2BIG, f"{what}: shorter than {limit} bytes")
    return text.decode("utf-8", "surrogateescape")


class UprobeDriver(ProbeDriver):
    """attr.uprobe_path (config1), attr.probe_offset (config2); config says which semaphore, too."""

    name = "uprobe"
    type = UPROBE_TYPE
    sysfs_format = MappingProxyType(_RETPROBE_FORMAT | {"ref_ctr_offset": "config:32-63"})

    def _definition(self, event: PerfEvent, returns: bool) -> UprobeDefinition:
        """create_local_trace_uprobe()"""
        attr, owner = event.attr, event.owner
        path = _text(event, "uprobe_path", _PATH_MAX) if attr.config1 else ""
        if not path:
            raise LinuxError(EINVAL, "uprobe_path is empty")
        assert owner is not None, "a guest opens it"
        file = find_probed_file(owner, path)
        semaphore = attr.config >> _SEMAPHORE_SHIFT
        return UprobeDefinition(uprobe_definition.GROUP, _LOCAL, returns, path, file, attr.config2, semaphore, ())


class KprobeDriver(ProbeDriver):
    """attr.kprobe_func (config1) and attr.probe_offset (config2), or attr.kprobe_addr (config2) alone."""

    name = "kprobe"
    type = KPROBE_TYPE
    sysfs_format = MappingProxyType(_RETPROBE_FORMAT)

    def _definition(self, event: PerfEvent, returns: bool) -> KprobeDefinition:
        """create_local_trace_kprobe()"""
        attr, functions = event.attr, self._dynamic.functions
        name = _text(event, "kprobe_func", _KSYM_NAME_LEN) if attr.config1 else ""
        symbol, offset = (name, attr.config2) if name else (f"{attr.config2:#x}", 0)
        if name and name not in functions.addresses:
            raise LinuxError(ENOENT, f"the modelled kernel has no function {name}: see available_filter_functions")
        function = find_function(functions, symbol, str(offset))
        check_returns(function, returns)
        address = functions.addresses[function.name]
        return KprobeDefinition(kprobe_definition.GROUP, _LOCAL, returns, function, address, symbol, 0, ())
