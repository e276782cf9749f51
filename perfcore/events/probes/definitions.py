"""ProbeDefinitions: all that is defined in one subsystem, and the files where a guest does that."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from emulator.linux.fs.virtual_files import Row
from perfcore.events.event import PerfEvent
from perfcore.events.probes.dynamic_events import DynamicEvents
from perfcore.events.probes.error_log import ErrorLog
from perfcore.events.probes.local_probes import LocalProbes
from perfcore.events.probes.probe_event import ProbeEvent
from perfcore.events.probes.tracefs import ProbeFiles, TracingKernel
from perfcore.events.probes.tracing_files import trace_event_files


class ProbeDefinitions:
    """perfcore.events.late_probes.Definitions."""

    def __init__(
        self, kernel: TracingKernel, tracing: str, now_ns: Callable[[], int], *, measures: bool = False
    ) -> None:
        """`tracing`: where tracefs is. `now_ns`: of what is refused. `measures`: not for a guest."""
        self._errors = ErrorLog(now_ns)
        self.events = DynamicEvents(kernel, measures=measures)
        self._local = LocalProbes(self.events)
        files = ProbeFiles(kernel.file_tree, tracing, kernel.calling, self.events, self._errors)
        self.text, self.store, self.clear = files.text, files.store, files.clear

    def find(self, id: int) -> ProbeEvent | None:
        return self.events.find(id)

    def event_files(self) -> Iterator[Row]:
        return trace_event_files(self.events.architecture.isa, self._errors)

    def local(self, pmu: str, event: PerfEvent) -> ProbeEvent:
        return self._local.make(pmu, event)
