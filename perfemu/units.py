"""Units: how what observes execution besides a core's PMU comes to life: its device on each CPU, and its driver.

Only those that a machine has are imported. A unit without a PMU of its own, as branch records, belongs to the CPUs'
PMU, and is no matter of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from emulator.linux.kernel import Kernel
from perfcore.events.drivers.sources import source_types
from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import PmuDriver
from perfcore.perfdata.auxtrace import AuxTraceType, pack_auxtrace_info, pack_time_conv
from perfcore.perfdata.features import PmuCaps
from perfemu.events.spec import EventSpec
from pmu.model import PmuModel
from pmu.unit_pmu import UnitPmu

AttachUnit = Callable[[Kernel, UnitPmu, int], PmuDriver[PerfEvent]]
"""The kernel on whose CPUs it is, the PMU, its attr.type."""


def _spe(kernel: Kernel, pmu: UnitPmu, type: int) -> PmuDriver[PerfEvent]:
    from perfcore.events.drivers.arm_spe_pmu import ArmSpePmu
    from perfcore.events.kernel_mappings import KernelMappings
    from pmu.arm.spe import SpeUnit
    from pmu.arm.spe_registers import SpeVersion

    mappings = KernelMappings()
    version = SpeVersion[pmu.version.upper()]
    units = {cpu.number: SpeUnit(cpu, version, mappings, kernel.clock.monotonic_at) for cpu in kernel.cpus}
    return ArmSpePmu(kernel, units, mappings, pmu, type)


_ATTACH: dict[str, AttachUnit] = {  # PMU -> how
    "arm_spe_0": _spe,
}

AttachTogether = Callable[[Kernel, PmuModel, Mapping[str, int]], Sequence[PmuDriver[PerfEvent]]]
"""The kernel, the CPUs' own PMU, which measures if it has no limits; attr.type by PMU."""


def _ibs(kernel: Kernel, model: PmuModel, types: Mapping[str, int]) -> Sequence[PmuDriver[PerfEvent]]:
    from perfcore.events.drivers.ibs import ibs_drivers
    from pmu.amd.ibs import Ibs

    devices = [Ibs(cpu, model.events) for cpu in kernel.cpus]
    return ibs_drivers(kernel.cpus, devices, types, filters=not model.has_limits)


_TOGETHER: dict[str, AttachTogether] = {  # unit -> how, where its PMUs share a device
    "ibs": _ibs,
}


AuxTraceInfo = Callable[[EventSpec, bool], bytes]
"""The event, and whether each CPU has a buffer: PERF_RECORD_AUXTRACE_INFO, and what must precede it."""


def _spe_info(spec: EventSpec, per_cpu: bool) -> bytes:
    """Timestamps are nanoseconds, as records' times are."""
    time = pack_time_conv(shift=0, multiplier=1, zero=0)
    return time + pack_auxtrace_info(AuxTraceType.ARM_SPE, (spec.type, int(per_cpu)))


_INFO: dict[str, AuxTraceInfo] = {  # PMU -> what its trace's decoder must know
    "arm_spe_0": _spe_info,
}


def auxtrace_info(spec: EventSpec, *, per_cpu: bool) -> bytes:
    """The records that stand before all others of a file with the trace of `spec`."""
    assert spec.source is not None, "it traces"
    return _INFO[spec.source.name](spec, per_cpu)


def unit_drivers(kernel: Kernel, model: PmuModel) -> Iterator[PmuDriver[PerfEvent]]:
    """One for each PMU of the units of `model`'s core."""
    types = source_types(model)
    sources = [source for source in model.sources if isinstance(source, UnitPmu)]
    for source in sources:
        if source.unit not in _TOGETHER:
            yield _ATTACH[source.name](kernel, source, types[source.name])
    for unit in dict.fromkeys(source.unit for source in sources if source.unit in _TOGETHER):
        yield from _TOGETHER[unit](kernel, model, types)


def caps_of(model: PmuModel) -> tuple[PmuCaps, ...]:
    """Of the PMUs of its core's units."""
    units = (source for source in model.sources if isinstance(source, UnitPmu))
    return tuple((source.name, tuple(source.caps.items())) for source in units if source.caps)
