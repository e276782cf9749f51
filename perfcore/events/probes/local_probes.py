"""Probes without a name: what an event of the PMU kprobe or uprobe says in its attr, and in its opener's memory."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from emulator.linux.errors import E2BIG, EINVAL, ENOENT, LinuxError
from emulator.linux.process.task import Task
from perfcore.events.event import PerfEvent
from perfcore.events.probes import kprobe_definition, uprobe_definition
from perfcore.events.probes.dynamic_events import AnyDefinition, DynamicEvents
from perfcore.events.probes.kprobe_definition import KprobeDefinition, check_returns, find_function
from perfcore.events.probes.probe_event import ProbeEvent
from perfcore.events.probes.probed_file import find_probed_file
from perfcore.events.probes.uprobe_definition import UprobeDefinition

_PATH_MAX = 4096
_KSYM_NAME_LEN = 512
_RETPROBE = 1 << 0  # of attr.config
_SEMAPHORE_SHIFT = 32
_LOCAL = "DUMMY_EVENT"  # its name, which nobody sees


class LocalProbes:
    """Those of one subsystem."""

    def __init__(self, events: DynamicEvents) -> None:
        self._events = events
        self._definitions: WeakKeyDictionary[PerfEvent, AnyDefinition] = WeakKeyDictionary()

    def make(self, pmu: str, event: PerfEvent) -> ProbeEvent:
        """Raises LinuxError. One that is inherited has a probe of its own, at the same place."""
        if event.parent is not None:
            definition = self._definitions[event.parent]
        else:
            assert event.owner is not None, "a guest opens it"
            asked = self._uprobe if pmu == "uprobe" else self._kprobe
            definition = self._definitions[event] = asked(event, event.owner, bool(event.attr.config & _RETPROBE))
        return self._events.local_event(definition)

    def _uprobe(self, event: PerfEvent, owner: Task, returns: bool) -> UprobeDefinition:
        """create_local_trace_uprobe()"""
        attr = event.attr
        path = _text(owner, attr.config1, "uprobe_path", _PATH_MAX)
        if not path:
            raise LinuxError(EINVAL, "uprobe_path is empty")
        file, semaphore = find_probed_file(owner, path), attr.config >> _SEMAPHORE_SHIFT
        return UprobeDefinition(uprobe_definition.GROUP, _LOCAL, returns, path, file, attr.config2, semaphore, ())

    def _kprobe(self, event: PerfEvent, owner: Task, returns: bool) -> KprobeDefinition:
        """create_local_trace_kprobe()"""
        attr, functions = event.attr, self._events.functions
        name = _text(owner, attr.config1, "kprobe_func", _KSYM_NAME_LEN)
        symbol, offset = (name, attr.config2) if name else (f"{attr.config2:#x}", 0)
        if name and name not in functions.addresses:
            raise LinuxError(ENOENT, f"the modelled kernel has no function {name}: see available_filter_functions")
        function = find_function(functions, symbol, str(offset))
        check_returns(function, returns)
        address = functions.addresses[function.name]
        return KprobeDefinition(kprobe_definition.GROUP, _LOCAL, returns, function, address, symbol, 0, ())


def _text(owner: Task, address: int, what: str, limit: int) -> str:
    """What stands there, in the memory of who opens the event; "" at 0."""
    text = owner.mm.read_string(address, limit) if address else b""
    if len(text) >= limit:
        raise LinuxError(E2BIG, f"{what}: shorter than {limit} bytes")
    return text.decode("utf-8", "surrogateescape")
