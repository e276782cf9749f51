"""Units: how what observes execution besides a core's PMU comes to life: its device on each CPU, and its driver.

Only those that a machine has are imported. A unit without a PMU of its own, as branch records, belongs to the CPUs'
PMU, and is no matter of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from emulator.linux.kernel import Kernel
from perfcore.events.drivers.sources import source_types
from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import PmuDriver
from perfemu.events.spec import EventSpec
from pmu.model import PmuModel
from pmu.unit_pmu import UnitPmu

AttachUnit = Callable[[Kernel, UnitPmu, int], PmuDriver[PerfEvent]]
"""The kernel on whose CPUs it is, the PMU, its attr.type."""

_ATTACH: dict[str, AttachUnit] = {  # PMU -> how
}


AuxTraceInfo = Callable[[EventSpec, bool], bytes]
"""The event, and whether each CPU has a buffer: PERF_RECORD_AUXTRACE_INFO, and what must precede it."""

_INFO: dict[str, AuxTraceInfo] = {  # PMU -> what its trace's decoder must know
}


def auxtrace_info(spec: EventSpec, *, per_cpu: bool) -> bytes:
    """The records that stand before all others of a file with the trace of `spec`."""
    assert spec.source is not None, "it traces"
    return _INFO[spec.source.name](spec, per_cpu)


def unit_drivers(kernel: Kernel, model: PmuModel) -> Iterator[PmuDriver[PerfEvent]]:
    """One for each PMU of the units of `model`'s core."""
    types = source_types(model)
    for source in model.sources:
        if isinstance(source, UnitPmu):
            yield _ATTACH[source.name](kernel, source, types[source.name])
