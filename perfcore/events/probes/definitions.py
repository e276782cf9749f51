"""ProbeDefinitions: all that is defined in one subsystem, and the files where a guest does that."""

from __future__ import annotations

from perfcore.events.event import PerfEvent
from perfcore.events.probes.dynamic_events import DynamicEvents
from perfcore.events.probes.error_log import ErrorLog
from perfcore.events.probes.local_probes import LocalProbes
from perfcore.events.probes.probe_event import ProbeEvent
from perfcore.events.probes.tracefs import ProbeFiles, TracingKernel


class ProbeDefinitions:
    """perfcore.events.late_probes.Definitions."""

    def __init__(self, kernel: TracingKernel, tracing: str, errors: ErrorLog, *, measures: bool = False) -> None:
        """`tracing`: where tracefs is. `errors`: what is refused. `measures`: not for a guest."""
        self.events = DynamicEvents(kernel, measures=measures)
        self._local = LocalProbes(self.events)
        files = ProbeFiles(kernel.file_tree, tracing, kernel.calling, self.events, errors)
        self.text, self.store, self.clear = files.text, files.store, files.clear

    def find(self, id: int) -> ProbeEvent | None:
        return self.events.find(id)

    def local(self, pmu: str, event: PerfEvent) -> ProbeEvent:
        return self._local.make(pmu, event)
