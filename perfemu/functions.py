"""functions: which functions made what stat counts, known beside the counts themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perfemu.attributing import ExactSamples
from perfemu.comparing.measured import EventCounts, Measured, measured_of
from perfemu.events.attributes import Sampling
from perfemu.events.spec import EventSpec
from perfemu.interruption import Interruption
from perfemu.kept_recording import KeptRecording
from perfemu.scope import Scope
from perfemu.session import Session
from perfemu.statistics.counts import Counts


class FunctionCounter:
    """An exact recording of the same run, kept in memory: a few bytes for each instruction that was executed."""

    def __init__(
        self,
        session: Session,
        specs: Sequence[EventSpec],
        scope: Scope,
        interruption: Interruption,
        *,
        inherit: bool = True,
        complain: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Of those events that the PMU counts in user mode."""
        self._session = session
        self._complain = complain
        self._region = "" if scope.region is None else str(scope.region)
        recorded = [spec for spec in specs if spec.is_hardware and not spec.counts_nothing]
        self._recording = (
            KeptRecording(session, recorded, Sampling(inherit=inherit), scope, interruption, ExactSamples)
            if recorded
            else None
        )

    def measured(self, counts: Counts) -> Measured:
        """After the run, which has counted `counts`."""
        known = Measured(counts.command, {}, self._session.isa, self._session.core.title)
        if self._recording is not None:
            known = measured_of(self._recording.profile(counts.command, self._complain))
        known.name, known.region = counts.command, self._region
        events = {}
        for row in counts:
            if row.absence is None:
                events[row.spec.base_name] = _whole(row.spec.base_name, round(row.spread.mean), known)
        known.events = events
        return known


def _whole(name: str, total: int, known: Measured) -> EventCounts:
    event = known.events.get(name) or EventCounts(name, 0, exact=True)
    if total != event.total:
        event.add_unattributed(total - event.total)
    return event
