"""Units: how what observes execution besides a core's PMU comes to life: its device on each CPU, and its driver.

Only those that a machine has are imported. A unit without a PMU of its own, as branch records, belongs to the CPUs'
PMU, and is no matter of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from emulator.linux.kernel import Kernel
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.drivers.sources import source_types
from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import PmuDriver
from perfcore.perfdata.auxtrace import AuxTraceType, pack_auxtrace_info, pack_time_conv
from perfcore.perfdata.features import PmuCaps
from perfemu.errors import UsageError
from perfemu.events.spec import EventSpec
from pmu.model import PmuModel
from pmu.unit_pmu import UnitPmu

if TYPE_CHECKING:
    from pmu.intel.debug_store import AllocatedStore  # only who has one loads that

AttachUnit = Callable[[Kernel, UnitPmu, int], PmuDriver[PerfEvent]]
"""The kernel on whose CPUs it is, the PMU, its attr.type."""


def _spe(kernel: Kernel, pmu: UnitPmu, type: int) -> PmuDriver[PerfEvent]:
    from perfcore.events.drivers.arm_spe_pmu import ArmSpePmu
    from pmu.arm.spe import SpeUnit
    from pmu.arm.spe_registers import SpeVersion
    from pmu.unit_memory import VMALLOC_START, UnitMemory

    memory = UnitMemory(VMALLOC_START)
    version = SpeVersion[pmu.version.upper()]
    units = {cpu.number: SpeUnit(cpu, version, memory, kernel.clock.monotonic_at) for cpu in kernel.cpus}
    return ArmSpePmu(kernel, units, memory, pmu, type)


def _intel_pt(kernel: Kernel, source: UnitPmu, type: int) -> PmuDriver[PerfEvent]:
    from perfcore.events.drivers.intel_pt import IntelPtDriver
    from pmu.intel import pt
    from pmu.unit_memory import UnitMemory

    memory, hz = UnitMemory(), kernel.clock.frequency_hz
    capabilities = pt.capabilities_of(source.version)
    units = [pt.IntelPt(cpu, kernel.clock, capabilities, memory) for cpu in kernel.cpus]
    for cpu in kernel.cpus:
        cpu.system_registers.amend_cpuid(partial(pt.answer, capabilities, hz))
    return IntelPtDriver(kernel, units, memory, source, type, hz)


_ATTACH: dict[str, AttachUnit] = {  # PMU -> how
    "intel_pt": _intel_pt,
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


_DEBUG_STORE = {"bts", "pebs"}  # units that write by it


def _by_debug_store(kernel: Kernel, hardware: HardwareDriver, model: PmuModel) -> Iterator[PmuDriver[PerfEvent]]:
    """What writes by the CPUs' debug stores: PEBS, which is a part of `hardware`, and the driver of BTS."""
    from pmu.intel.debug_store import debug_stores

    cpus = kernel.cpus
    stores = debug_stores(len(cpus), model.most_counters)
    if "pebs" in model.units:
        _add_pebs(kernel, hardware, model, stores)
    for source in model.sources:
        if source.name == "intel_bts" and isinstance(source, UnitPmu):
            from perfcore.events.drivers.intel_bts import IntelBts

            yield IntelBts(source, source_types(model)[source.name], cpus, stores)


def _add_pebs(kernel: Kernel, hardware: HardwareDriver, model: PmuModel, stores: Sequence[AllocatedStore]) -> None:
    from perfcore.events.drivers.intel_core import IntelCore
    from perfcore.events.drivers.pebs import IntelPebs
    from pmu.intel import pebs
    from pmu.intel.perfmon import Perfmon

    if not isinstance(hardware, IntelCore):
        raise UsageError(f"--unit pebs: goes with Intel's PMUs, not with {model.name}")
    cpus, pmus = kernel.cpus, hardware.pmus
    for cpu, pmu, store in zip(cpus, pmus, stores, strict=True):
        assert isinstance(pmu, Perfmon), "IntelCore drives it"
        pmu.add_pebs(pebs.Pebs(cpu, kernel.clock, store, model.version))
        if model.has_limits:
            cpu.system_registers.amend_cpuid(lambda leaf, subleaf, plain: pebs.answer(leaf, plain))
    hz = kernel.clock.frequency_hz
    hardware.pebs = IntelPebs(cpus, pmus, stores, adaptive=pebs.is_adaptive(model.version), hz=hz)


def _intel_pt_info(spec: EventSpec, per_cpu: bool, hz: int, snapshot: bool) -> bytes:
    from emulator.clock import MONOTONIC_AT_BOOT_NS
    from perfcore.events.user_page import UserClock
    from perfcore.perfdata.intel_pt_info import intel_pt_info
    from pmu.intel.pt import BUS_HZ, CAPABILITIES

    clock = UserClock(hz, 0)
    ticks = MONOTONIC_AT_BOOT_NS // 1_000_000_000 * hz
    zero = MONOTONIC_AT_BOOT_NS - (ticks * clock.mult >> clock.shift)
    return intel_pt_info(
        spec.type,
        (clock.shift, clock.mult, zero),
        CAPABILITIES.tsc_per_crystal(hz),
        per_cpu=per_cpu,
        snapshot=snapshot,
        max_nonturbo_ratio=hz // BUS_HZ,
        filter=spec.filter,
    )


AuxTraceInfo = Callable[[EventSpec, bool, int, bool], bytes]
"""The event, whether each CPU has a buffer, Hz of the CPUs' counter of time, and whether there are snapshots alone:
PERF_RECORD_AUXTRACE_INFO, and what must precede it."""


def _spe_info(spec: EventSpec, per_cpu: bool, hz: int, snapshot: bool) -> bytes:
    """Timestamps are nanoseconds, as records' times are."""
    time = pack_time_conv(shift=0, multiplier=1, zero=0)
    return time + pack_auxtrace_info(AuxTraceType.ARM_SPE, (spec.type, int(per_cpu)))


def _bts_info(spec: EventSpec, per_cpu: bool, hz: int, snapshot: bool) -> bytes:
    """intel_bts_info_fill(): its type, how its times, which are none, become ns, whether it has snapshots."""
    shift, multiplier, zero, has_zero = 0, 1, 0, 1
    return pack_auxtrace_info(AuxTraceType.INTEL_BTS, (spec.type, shift, multiplier, zero, has_zero, int(snapshot)))


_INFO: dict[str, AuxTraceInfo] = {  # PMU -> what its trace's decoder must know
    "arm_spe_0": _spe_info,
    "intel_pt": _intel_pt_info,
    "intel_bts": _bts_info,
}


def auxtrace_info(spec: EventSpec, *, per_cpu: bool, hz: int, snapshot: bool = False) -> bytes:
    """The records that stand before all others of a file with the trace of `spec`."""
    assert spec.source is not None, "it traces"
    return _INFO[spec.source.name](spec, per_cpu, hz, snapshot)


def unit_drivers(
    kernel: Kernel, model: PmuModel, hardware: HardwareDriver | None = None
) -> Iterator[PmuDriver[PerfEvent]]:
    """One for each PMU of the units of `model`'s core; `hardware` is the CPUs' own PMU's, for units that go with it."""
    types = source_types(model)
    sources = [source for source in model.sources if isinstance(source, UnitPmu)]
    for source in sources:
        if source.unit not in _TOGETHER and source.unit not in _DEBUG_STORE:
            yield _ATTACH[source.name](kernel, source, types[source.name])
    for unit in dict.fromkeys(source.unit for source in sources if source.unit in _TOGETHER):
        yield from _TOGETHER[unit](kernel, model, types)
    if _DEBUG_STORE & model.units:
        assert hardware is not None, "it has units that go with it"
        yield from _by_debug_store(kernel, hardware, model)


def share_branch_units(hardware: HardwareDriver, units: Sequence[PmuDriver[PerfEvent]]) -> None:
    """Of Intel's, a machine's events use one kind at a time."""
    tracing = [driver for driver in units if driver.name in ("intel_pt", "intel_bts")]
    if not tracing:
        return
    from perfcore.events.drivers.intel_units import IntelUnits, UsesIntelUnits

    shared = IntelUnits()
    for driver in (hardware, *tracing):
        if isinstance(driver, UsesIntelUnits):
            driver.branch_units = shared


def caps_of(model: PmuModel) -> tuple[PmuCaps, ...]:
    """Of the PMUs of its core's units."""
    units = (source for source in model.sources if isinstance(source, UnitPmu))
    return tuple((source.name, tuple(source.caps.items())) for source in units if source.caps)
