"""How the PMUs of each driver come to life, one on each CPU. Only those that a machine has are imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from emulator._native import Core
from emulator.clock import Clock
from emulator.cpu import Cpu
from perfcore.abi.constants import FIRST_DYNAMIC_TYPE, PerfType
from perfcore.events.drivers.sources import source_types
from perfemu.errors import UsageError
from pmu.model import PmuModel

if TYPE_CHECKING:
    from perfcore.events.drivers.branch_stacks import BranchStacks
    from perfcore.events.drivers.hardware import HardwareDriver
    from pmu.branch_records import BranchUnit
    from pmu.device import Pmu
    from pmu.intel.cpuid import Leaf
    from pmu.register_view import RegisterFile


@dataclass(frozen=True, slots=True)
class _BranchUnit:
    """How a core comes to record branches."""

    make: Callable[[Core], BranchUnit]  # its unit, whose registers are the PMU's
    drive: Callable[[Sequence[Cpu], Sequence[Pmu]], BranchStacks]


def _lbr() -> _BranchUnit:
    from perfcore.events.drivers.lbr import LastBranchRecords
    from pmu.intel.last_branches import LastBranches

    return _BranchUnit(LastBranches, LastBranchRecords)


def _arch_lbr() -> _BranchUnit:
    from perfcore.events.drivers.arch_lbr import ArchitecturalLbr
    from pmu.intel.architectural_branches import ArchitecturalBranches

    return _BranchUnit(ArchitecturalBranches, ArchitecturalLbr)


def _amd_lbr() -> _BranchUnit:
    from perfcore.events.drivers.amd_lbr import LastBranchStacks
    from pmu.amd.last_branch_stack import LastBranchStack

    return _BranchUnit(LastBranchStack, LastBranchStacks)


_BRANCH_UNITS = {  # unit -> the driver of the PMUs that it goes with
    "lbr": "intel_core",
    "arch_lbr": "intel_core",
    "amd_lbr": "amd_core",
    "brs": "amd_core",
    "brbe": "arm_pmuv3",
}
_OF_X86 = {"lbr": _lbr, "arch_lbr": _arch_lbr, "amd_lbr": _amd_lbr}


def _branch_unit(model: PmuModel) -> str | None:
    """Of a core with such a PMU. Raises UsageError if the unit goes with another, or there are several."""
    units = [unit for unit in _BRANCH_UNITS if unit in model.units]
    if not units:
        return None
    if len(units) > 1:
        raise UsageError(f"--unit {units[1]}: the core records branches by {units[0]}")
    if _BRANCH_UNITS[units[0]] != model.driver:
        fitting = ", ".join(unit for unit, driver in _BRANCH_UNITS.items() if driver == model.driver)
        raise UsageError(
            f"--unit {units[0]}: goes with other PMUs than {model.name}; with that goes {fitting or 'none'}"
        )
    return units[0]


def branch_unit(core: Core, model: PmuModel) -> BranchUnit | None:
    """What records the branches of an x86-64 core, for a guest that programs it: Zen 3's BRS is none of those, nor is
    what goes with other PMUs than the core has been given."""
    fitting = [unit for unit, driver in _BRANCH_UNITS.items() if driver == model.driver]
    units = [unit for unit in fitting if unit in model.units and unit in _OF_X86]
    return _OF_X86[units[0]]().make(core) if units else None


def _x86_unit(model: PmuModel) -> _BranchUnit | None:
    unit = _branch_unit(model)
    return None if unit is None else _OF_X86[unit]()


@dataclass(frozen=True, slots=True)
class Attached:
    """One PMU per CPU, and the driver that programs them."""

    driver: HardwareDriver
    pmus: Sequence[RegisterFile]


def _arm(cpus: Sequence[Cpu], model: PmuModel, counters: int, clock: Clock) -> Attached:
    from perfcore.events.drivers.arm_pmuv3 import ArmPmuV3
    from pmu.arm.pmuv3 import PmuV3

    if _branch_unit(model) is None:
        pmus = [PmuV3(cpu.core.add_bank(model.bank_size(counters)), model, counters) for cpu in cpus]
        return Attached(ArmPmuV3(cpus, pmus), pmus)

    from perfcore.events.drivers.arm_brbe import BranchRecordBuffers
    from pmu.arm.branch_record_buffer import BranchRecordBuffer

    def pmu_of(core: Core) -> PmuV3:
        records = BranchRecordBuffer(core, model.branch_records, lambda: clock.monotonic_at(core.cycles))
        return PmuV3(core.add_bank(model.bank_size(counters)), model, counters, records)

    pmus = [pmu_of(cpu.core) for cpu in cpus]
    driver = ArmPmuV3(cpus, pmus)
    driver.branches = BranchRecordBuffers(cpus, pmus)
    return Attached(driver, pmus)


def _intel(cpus: Sequence[Cpu], model: PmuModel, counters: int, clock: Clock) -> Attached:
    from perfcore.events.drivers.intel_core import IntelCore
    from pmu.intel.perfmon import Perfmon

    unit = _x86_unit(model)
    pmus = [
        Perfmon(
            cpu.core.add_bank(model.bank_size(counters)), model, counters, None if unit is None else unit.make(cpu.core)
        )
        for cpu in cpus
    ]
    driver = IntelCore(cpus, pmus)
    driver.branches = None if unit is None else unit.drive(cpus, pmus)
    return Attached(driver, pmus)


def _amd(cpus: Sequence[Cpu], model: PmuModel, counters: int, clock: Clock) -> Attached:
    from perfcore.events.drivers.amd_core import AmdCore
    from pmu.amd.core_counters import CoreCounters

    if _branch_unit(model) == "brs":
        return _amd_with_sampling(cpus, model, counters)
    unit = _x86_unit(model)
    pmus = [
        CoreCounters(
            cpu.core.add_bank(model.bank_size(counters)), model, counters, None if unit is None else unit.make(cpu.core)
        )
        for cpu in cpus
    ]
    driver = AmdCore(cpus, pmus)
    driver.branches = None if unit is None else unit.drive(cpus, pmus)
    return Attached(driver, pmus)


def _amd_with_sampling(cpus: Sequence[Cpu], model: PmuModel, counters: int) -> Attached:
    from emulator._native import BranchTraceStore
    from perfcore.events.drivers.amd_brs import BranchSamples
    from perfcore.events.drivers.amd_core import AmdCore
    from pmu.amd.branch_sampling import BranchSampling
    from pmu.amd.core_counters import CoreCounters

    pmus = [
        CoreCounters(
            core.add_bank(model.bank_size(counters)), model, counters, sampling=BranchSampling(BranchTraceStore(core))
        )
        for core in (cpu.core for cpu in cpus)
    ]
    driver = AmdCore(cpus, pmus)
    driver.branches = BranchSamples(cpus, pmus)
    return Attached(driver, pmus)


def _loongarch(cpus: Sequence[Cpu], model: PmuModel, counters: int, clock: Clock) -> Attached:
    from perfcore.events.drivers.loongarch import LoongArchMonitors
    from pmu.loongarch.performance_monitors import PerformanceMonitors

    pmus = [PerformanceMonitors(cpu.core.add_bank(model.bank_size(counters)), model, counters) for cpu in cpus]
    return Attached(LoongArchMonitors(cpus, pmus), pmus)


_POWER_MANAGEMENT = 0x6  # CPUID leaf; ECX bit 0: IA32_MPERF and IA32_APERF


def _always_running(leaf: int, said: Leaf) -> Leaf:
    """APERF and MPERF are there."""
    eax, ebx, ecx, edx = said
    return (eax, ebx, ecx | 1, edx) if leaf == _POWER_MANAGEMENT else said


_FEATURES = 0x8000_0001  # CPUID leaf; ECX bit 28: PerfCtrExtLLC
_PERF_CTR_EXT_LLC = 1 << 28


def _shared(model: PmuModel, leaf: int, said: Leaf) -> Leaf:
    """The L3's counters are there, where they are. Its registers are the kernel's."""
    eax, ebx, ecx, edx = said
    has_l3 = any(source.name == "amd_l3" for source in model.sources)
    return (eax, ebx, ecx | _PERF_CTR_EXT_LLC, edx) if leaf == _FEATURES and has_l3 else said


def _branches_in_cpuid(model: PmuModel) -> Callable[[int, int, Leaf], Leaf]:
    """What CPUID says besides if the core records branches."""
    if "arch_lbr" in model.units:
        from pmu.intel import architectural_branches

        return architectural_branches.cpuid_of_branches
    if "amd_lbr" in model.units:
        from pmu.amd import last_branch_stack

        return last_branch_stack.cpuid_of_branches
    if "brs" in model.units:
        from pmu.amd import branch_sampling

        return branch_sampling.cpuid_of_branches
    return lambda leaf, subleaf, plain: plain


def _announce_core_counters(cpu: Cpu, model: PmuModel) -> None:
    from pmu.amd import core_counters

    answer = partial(core_counters.answer, model, model.counters)
    branches = _branches_in_cpuid(model)
    cpu.system_registers.amend_cpuid(
        lambda leaf, subleaf, plain: branches(
            leaf, subleaf, _shared(model, leaf, _always_running(leaf, answer(leaf, plain)))
        )
    )
    if "ibs" in model.units:
        from pmu.amd import ibs

        cpu.system_registers.amend_cpuid(lambda leaf, subleaf, plain: ibs.answer(leaf, plain))


def _announce_perfmon(cpu: Cpu, model: PmuModel) -> None:
    from pmu.intel import cpuid

    answer = partial(cpuid.answer, model)
    branches = _branches_in_cpuid(model)
    cpu.system_registers.amend_cpuid(
        lambda leaf, subleaf, plain: branches(leaf, subleaf, _always_running(leaf, answer(leaf, subleaf, plain)))
    )


@dataclass(frozen=True, slots=True)
class PmuKind:
    """How the PMUs of one driver come to life."""

    attach: Callable[[Sequence[Cpu], PmuModel, int, Clock], Attached]
    type: int  # attr.type of the PMU's own events
    announce: Callable[[Cpu, PmuModel], None]  # to a guest that asks the CPU


PMU_KINDS = {
    "arm_pmuv3": PmuKind(_arm, FIRST_DYNAMIC_TYPE, lambda cpu, model: None),  # only EL1 can see ID_AA64DFR0_EL1.PMUVer
    "amd_core": PmuKind(_amd, PerfType.RAW, _announce_core_counters),
    "intel_core": PmuKind(_intel, PerfType.RAW, _announce_perfmon),
    "loongarch": PmuKind(_loongarch, PerfType.RAW, lambda cpu, model: None),  # nothing executes CPUCFG
}


def measuring_counters(model: PmuModel, asked: int | None) -> int:
    """Event counters of a PMU that measures, of which `asked` are wanted. Raises UsageError."""
    if asked is None:
        return model.most_counters
    if asked > model.most_counters:
        raise UsageError(f"--counters {asked}: {model.sysfs_name} can have at most {model.most_counters}")
    return asked


def pmu_mappings(model: PmuModel) -> tuple[tuple[int, str], ...]:
    """(attr.type, sysfs name) of all PMUs of a machine with this one, ascending: perf.data's PMU_MAPPINGS."""
    others = ((type, name) for name, type in source_types(model).items())
    return tuple(sorted(((PerfType.SOFTWARE, "software"), (PMU_KINDS[model.driver].type, model.sysfs_name), *others)))
