"""AuxSnapshots: record -S: of traces only the latest is written, whenever the guest asks for it, and at the end."""

from __future__ import annotations

from collections.abc import Sequence

from perfcore.events.event import PerfEvent
from perfcore.events.event_state import EventState
from perfcore.perfdata.auxtrace import AuxTrace
from perfemu.aux_reader import AuxReader
from perfemu.draining import Drain
from perfemu.events.aux_samples import Snapshots


class AuxSnapshots:
    """Of the areas that `readers` have, into which the units of `events` write. As tools/perf/builtin-record.c."""

    def __init__(self, wanted: Snapshots, readers: Sequence[AuxReader], events: Sequence[PerfEvent]) -> None:
        self._wanted, self._readers, self._events = wanted, readers, events

    def take(self, drain: Drain) -> None:
        """record__auxtrace_read_snapshot(): nothing is traced while it is taken."""
        stopped = [event for event in self._events if event.state != EventState.OFF]
        for event in stopped:
            event.disable()
        with drain.held():
            drain.now(traces=self._latest())
        for event in stopped:
            event.enable()

    def finish(self, drain: Drain) -> None:
        """The program has ended."""
        if self._wanted.at_end:
            drain.now(traces=self._latest())

    def _latest(self) -> list[AuxTrace]:
        latest = (reader.latest(self._wanted.bytes) for reader in self._readers)
        return [trace for trace in latest if trace is not None]
