"""untimed: whether what is counted needs a model of time, or could be counted many times faster without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from emulator.core_file.probes import fires
from emulator.probes import Probe
from perfcore.abi.constants import CacheId, CacheOp, CacheResult, PerfType
from perfemu.events.spec import EventSpec
from perfemu.session import Session
from pmu.event import Event
from pmu.model import GENERIC_HARDWARE_EVENTS, PmuModel


def needs_no_timing(session: Session, specs: Iterable[EventSpec]) -> bool:
    """Whether the run models time, and none of the events can tell.

    What a program does by the clock, and which thread comes first, may differ all the same.
    """
    if session.core.model is None:
        return False
    fired = partial(fires, session.core.untimed().fired_by)
    return all(_is_timeless(spec, session.pmu_model, fired) for spec in specs)


def _is_timeless(spec: EventSpec, model: PmuModel, fired: Callable[[Probe], bool]) -> bool:
    if not spec.is_hardware:
        return not spec.unit  # a clock
    event = _event(spec, model)
    if event is None:
        return False
    return all(probe is not Probe.CYCLES and fired(probe) for probe in (*event.probes, *event.less))


def _event(spec: EventSpec, model: PmuModel) -> Event | None:
    """The event of a PMU of this model, if it has one."""
    if spec.type == PerfType.HARDWARE:
        return model.generic_event(GENERIC_HARDWARE_EVENTS[spec.config])
    if spec.type != PerfType.HW_CACHE:
        return model.counted_by(spec.config)
    cache, op, result = spec.config & 0xFF, spec.config >> 8 & 0xFF, spec.config >> 16 & 0xFF
    key = (CacheId(cache).name, f"OP_{CacheOp(op).name}", f"RESULT_{CacheResult(result).name}")
    name = model.generic_cache_events.get(key)
    return None if name is None else model.events.find(name)
