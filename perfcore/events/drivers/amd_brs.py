"""The driver of AMD's Branch Sampling. As arch/x86/events/amd/brs.c, of Linux 6.12."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.cpu import Cpu
from emulator.linux.errors import EINVAL, LinuxError
from perfcore.abi.constants import BranchSampleType
from perfcore.abi.sample import BranchEntry, BranchStack
from perfcore.events.drivers.amd_lbr import extended
from perfcore.events.drivers.branch_stacks import BranchStacks, EventBranches, Kept
from perfcore.events.event import PerfEvent
from pmu.amd.brs_registers import BRS_ENTRIES, DebugExtnCfg, SamplingBranchFromx, SamplingBranchTox
from pmu.amd.registers import RAW_EVENT_MASK
from pmu.device import Pmu

BRS_EVENT = 0xC4  # AMD_FAM19H_BRS_EVENT: taken branches that have retired
_POISON = (1 << 64) - 2  # BRS_POISON: a target that ends the entries which are this task's
_RESERVED = DebugExtnCfg.RESERVED.mask
_ENABLE = DebugExtnCfg.BRSMEN.mask
_KERNEL = BranchSampleType.KERNEL | BranchSampleType.HV


class BranchSamples(BranchStacks):
    """Of the CPUs' MSRs. They have counter 0, and one event at a time."""

    entries = BRS_ENTRIES

    def __init__(self, cpus: Sequence[Cpu], pmus: Sequence[Pmu]) -> None:
        super().__init__(cpus)
        self._pmus = {cpu.number: pmu for cpu, pmu in zip(cpus, pmus, strict=True)}

    def configured(self, event: PerfEvent) -> EventBranches:
        """amd_brs_hw_config(), amd_brs_setup_filter()"""
        attr = event.attr
        if not event.is_sampling:
            raise LinuxError(EINVAL, "only samples have branches")
        if event.hw.config & RAW_EVENT_MASK != BRS_EVENT:
            raise LinuxError(EINVAL, f"BRS samples taken branches alone: raw event {BRS_EVENT:#x}")
        if attr.freq:
            raise LinuxError(EINVAL, "BRS has periods, and no frequencies: -c, not -F")
        if attr.sample_period <= self.entries:
            raise LinuxError(EINVAL, f"BRS's periods are above {self.entries}")
        if attr.branch_sample_type & ~BranchSampleType.PLM_ALL != BranchSampleType.ANY:
            raise LinuxError(EINVAL, "branch_sample_type: BRS has no filters: any, alone")
        event.hw.early = self.entries
        return EventBranches(self, event, 0, 0)

    def start(self, cpu: Cpu, branches: EventBranches) -> None:
        """amd_brs_enable()"""
        self._pmus[cpu.number].write(DebugExtnCfg, _RESERVED | _ENABLE)

    def stop(self, cpu: Cpu) -> None:
        """amd_brs_disable()"""
        pmu = self._pmus[cpu.number]
        pmu.write(DebugExtnCfg, pmu.read(DebugExtnCfg) & ~_ENABLE)

    def reset(self, cpu: Cpu) -> None:
        """amd_brs_reset()"""
        pmu = self._pmus[cpu.number]
        pmu.write(DebugExtnCfg, _RESERVED)
        pmu.write(SamplingBranchTox, _POISON, 0)

    def keep(self, cpu: Cpu) -> Kept:
        raise AssertionError("nothing is recorded as a stack")

    def bring_back(self, cpu: Cpu, kept: Kept) -> None:
        raise AssertionError("nothing has been kept")

    def go_on(self, cpu: Cpu) -> None:
        """amd_brs_enable_all(), which begins anew."""
        users = self._users[cpu.number]
        if users:
            self.start(cpu, users[0])

    def read(self, branches: EventBranches, cpu: Cpu) -> BranchStack:
        """amd_brs_drain()"""
        pmu = self._pmus[cpu.number]
        configuration = DebugExtnCfg(pmu.read(DebugExtnCfg))
        found: list[BranchEntry] = []
        if not configuration.VB:
            return BranchStack(0, found)
        for number in range(self._newest(configuration), -1, -1):
            target = pmu.read(SamplingBranchTox, number)
            if target == _POISON:
                break
            target = extended(target)
            if branches.wanted & (_KERNEL if target >> 63 else BranchSampleType.USER):
                found.append(BranchEntry(pmu.read(SamplingBranchFromx, number), target, 0))
        return BranchStack(0, found)

    def _flush(self, cpu: Cpu) -> None:
        """amd_pmu_brs_sched_task(), amd_brs_poison_buffer()"""
        if self.in_use(cpu):
            pmu = self._pmus[cpu.number]
            pmu.write(SamplingBranchTox, _POISON, self._newest(DebugExtnCfg(pmu.read(DebugExtnCfg))))

    def _newest(self, configuration: DebugExtnCfg) -> int:
        """amd_brs_get_tos()"""
        return (configuration.MSROFF or self.entries) - 1
