"""The machine's PMUs besides its CPUs' own: their attr.types, and a driver for each."""

from __future__ import annotations

from collections.abc import Callable

from perfcore.abi.constants import FIRST_DYNAMIC_TYPE
from perfcore.events.drivers.msr import MsrDriver
from perfcore.events.kernel import Linux
from pmu.event_source import EventSource
from pmu.model import PmuModel

SourceDriver = MsrDriver
_DRIVERS: dict[str, Callable[[Linux, EventSource, int], SourceDriver]] = {"msr": MsrDriver}


def source_types(model: PmuModel) -> dict[str, int]:
    """Name -> attr.type."""
    return {source.name: FIRST_DYNAMIC_TYPE + number for number, source in enumerate(model.sources)}


def source_drivers(kernel: Linux, model: PmuModel) -> list[SourceDriver]:
    types = source_types(model)
    return [_DRIVERS[source.name](kernel, source, types[source.name]) for source in model.sources]
