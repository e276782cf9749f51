"""The machine's PMUs besides its CPUs' own: their attr.types, and a driver for each."""

from __future__ import annotations

from collections.abc import Callable

from perfcore.events.drivers.msr import MsrDriver
from perfcore.events.kernel import Linux
from pmu.event_source import EventSource
from pmu.model import PmuModel

FIRST_TYPE = 8  # dynamic, as on a Linux whose kprobe and uprobe PMUs came first

SourceDriver = MsrDriver
_DRIVERS: dict[str, Callable[[Linux, EventSource, int], SourceDriver]] = {"msr": MsrDriver}


def source_types(model: PmuModel) -> dict[str, int]:
    """Name -> attr.type."""
    return {source.name: FIRST_TYPE + number for number, source in enumerate(model.sources)}


def source_drivers(kernel: Linux, model: PmuModel) -> list[SourceDriver]:
    types = source_types(model)
    return [_DRIVERS[source.name](kernel, source, types[source.name]) for source in model.sources]
