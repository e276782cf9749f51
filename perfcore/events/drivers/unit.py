"""UnitDriver: what drivers of units have in common that trace or sample by themselves, besides the CPUs' counters."""

from __future__ import annotations

from perfcore.events.drivers.without_counters import WithoutCounters
from pmu.unit_pmu import UnitPmu


class UnitDriver(WithoutCounters):
    """Its events need the unit, of which a CPU has one, and join groups of its own alone."""

    is_software = False

    def __init__(self, source: UnitPmu, type: int) -> None:
        self.source = source
        self.name = source.name
        self.type = type

    def sysfs_attributes(self) -> dict[str, str]:
        """Files of the device in sysfs besides type and format: name -> text."""
        return {f"caps/{name}": text for name, text in self.source.caps.items()}
