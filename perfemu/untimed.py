"""untimed: whether what is counted needs a model of time, or could be counted many times faster without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from emulator.core_file.probes import fires
from emulator.probes import Probe
from perfemu.counters import MeasuredRun
from perfemu.events.spec import EventSpec
from pmu.model import PmuModel


def needs_no_timing(session: MeasuredRun, specs: Iterable[EventSpec]) -> bool:
    """Whether the run models time, and none of the events can tell.

    What a program does by the clock, and which thread comes first, may differ all the same.
    """
    if session.core.model is None:
        return False
    fired = partial(fires, session.core.untimed().fired_by)
    return all(_is_timeless(spec, session.pmu_model, fired) for spec in specs)


def _is_timeless(spec: EventSpec, model: PmuModel, fired: Callable[[Probe], bool]) -> bool:
    if spec.source is not None:
        return False
    if not spec.is_hardware:
        return not spec.unit  # a clock
    event = spec.counted_by(model)
    if event is None:
        return False
    return all(probe is not Probe.CYCLES and fired(probe) for probe in (*event.probes, *event.less))
