"""AuxUse: what an event has to do with AUX areas: whose it needs, and whether its own unit writes."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from emulator.cpu import Cpu
from perfcore.events.event_state import EventState
from perfcore.events.pmu_driver import PmuDriver
from perfcore.events.ring_buffer import RingBuffer


class _Event(Protocol):
    """A PerfEvent."""

    @property
    def state(self) -> EventState: ...
    @property
    def on_cpu(self) -> Cpu | None: ...
    @property
    def driver(self) -> PmuDriver[Any]: ...
    @property
    def opened_buffer(self) -> RingBuffer | None: ...
    @property
    def aux(self) -> AuxUse[Any]: ...


Event = TypeVar("Event", bound=_Event)


class AuxUse(Generic[Event]):
    """Of one event."""

    def __init__(self) -> None:
        self.source: Event | None = None  # the AUX event that it needs: aux_event
        self.paused = False  # its unit writes nothing: aux_action
        self.itrace_started = False  # its unit has begun a trace: PERF_ATTACH_ITRACE

    def pause_source(self, pause: bool) -> None:
        """perf_event_aux_pause(), at an overflow of an event that says so."""
        source = self.source
        unit = None if source is None else source.driver.aux
        if source is not None and unit is not None and source.aux.paused != pause:
            source.aux.paused = pause
            (unit.pause if pause else unit.resume)(source)

    def snapshot(self, cpu: Cpu | None, most: int) -> bytes:
        """perf_prepare_sample_aux(): `most` bytes, or the whole area, of the latest that its source has written.

        What there is not yet is zero. `cpu` is where the event samples.
        """
        source = self.source
        if source is None or source.state != EventState.ACTIVE or source.on_cpu is not cpu:
            return b""
        buffer, unit = source.opened_buffer, source.driver.aux
        if buffer is None or buffer.aux is None or unit is None or buffer.aux.sampling:
            return b""
        size = min(most, buffer.aux.size)
        buffer.aux.sampling = True
        data: bytes = unit.snapshot_aux(source, size)
        buffer.aux.sampling = False
        return data[:size].ljust(size, b"\0")
