"""The machine's PMUs besides its CPUs' own: their attr.types, and a driver for each but those of units."""

from __future__ import annotations

from perfcore.abi.constants import FIRST_DYNAMIC_TYPE
from perfcore.events.drivers.msr import MsrDriver
from perfcore.events.drivers.uncore import UncoreDriver
from perfcore.events.kernel import Linux
from pmu.event_source import EventSource
from pmu.model import PmuModel
from pmu.unit_pmu import UnitPmu

SourceDriver = MsrDriver | UncoreDriver


def source_types(model: PmuModel) -> dict[str, int]:
    """Name -> attr.type."""
    first = FIRST_DYNAMIC_TYPE + (model.driver == "arm_pmuv3")  # which has such a type itself
    return {source.name: first + number for number, source in enumerate(model.sources)}


def source_drivers(kernel: Linux, model: PmuModel) -> list[SourceDriver]:
    """Those of parts count with as many counters as `model` has, if it has limits."""
    types = source_types(model)
    counting = (source for source in model.sources if not isinstance(source, UnitPmu))
    return [_driver(kernel, source, types[source.name], model) for source in counting]


def _driver(kernel: Linux, source: EventSource, type: int, model: PmuModel) -> SourceDriver:
    if source.system_wide:
        return UncoreDriver(kernel, source, type, limited=model.has_limits)
    return MsrDriver(kernel, source, type)
