"""The driver of Skylake's last branch records. As arch/x86/events/intel/lbr.c, of Linux 6.12."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.cpu import Cpu
from emulator.linux.errors import EINVAL, EOPNOTSUPP, LinuxError
from perfcore.abi.constants import (
    BRANCH_CYCLES_SHIFT,
    BranchFlag,
    BranchSampleType,
)
from perfcore.abi.sample import BranchEntry, BranchStack
from perfcore.events.drivers.branch_stacks import BranchStacks, EventBranches, Kept
from perfcore.events.drivers.x86_branches import X86Branch, filtered, wanted_branches
from perfcore.events.event import PerfEvent
from pmu.device import Pmu
from pmu.intel.lbr_registers import (
    LBR_ENTRIES,
    MSR_LASTBRANCH_TOS,
    MSR_LBR_SELECT,
    MSR_LASTBRANCH_x_FROM_IP,
    MSR_LASTBRANCH_x_TO_IP,
    MSR_LBR_INFO_x,
)
from pmu.intel.registers import IA32_DEBUGCTL, IA32_PERF_GLOBAL_STATUS_RESET

_BANKS = (MSR_LASTBRANCH_x_FROM_IP, MSR_LASTBRANCH_x_TO_IP, MSR_LBR_INFO_x)
_SELECT = MSR_LBR_SELECT
_CALLS = _SELECT.NEAR_REL_CALL.mask | _SELECT.NEAR_IND_CALL.mask
_STACK = _SELECT.EN_CALLSTACK.mask
_SELECTED_BY = {  # hsw_lbr_sel_map
    BranchSampleType.USER: _SELECT.CPL_NEQ_0.mask,
    BranchSampleType.KERNEL: _SELECT.CPL_EQ_0.mask,
    BranchSampleType.ANY: MSR_LBR_SELECT.declared & ~(_STACK | _SELECT.CPL_NEQ_0.mask | _SELECT.CPL_EQ_0.mask),
    BranchSampleType.ANY_RETURN: _SELECT.NEAR_RET.mask | _SELECT.FAR_BRANCH.mask,
    BranchSampleType.ANY_CALL: _CALLS | _SELECT.FAR_BRANCH.mask,
    BranchSampleType.IND_CALL: _SELECT.NEAR_IND_CALL.mask,
    BranchSampleType.COND: _SELECT.JCC.mask,
    BranchSampleType.CALL_STACK: _CALLS | _SELECT.NEAR_RET.mask | _STACK,
    BranchSampleType.IND_JUMP: _SELECT.NEAR_IND_JMP.mask,
    BranchSampleType.CALL: _SELECT.NEAR_REL_CALL.mask,
}
_SUPPRESSES = MSR_LBR_SELECT.declared & ~_STACK
_NO_INFO = BranchSampleType.NO_CYCLES | BranchSampleType.NO_FLAGS  # both together: LBR_NO_INFO
_OF_TRANSACTIONS = BranchSampleType.ABORT_TX | BranchSampleType.IN_TX | BranchSampleType.NO_TX
_LEVELS = X86Branch.USER | X86Branch.KERNEL
_MISPREDICTED, _CYCLES = MSR_LBR_INFO_x.MISPRED.mask, MSR_LBR_INFO_x.CYC_CNT.mask
_UNFREEZE = IA32_PERF_GLOBAL_STATUS_RESET.LBR_FRZ.mask


def check_wanted(event: PerfEvent) -> X86Branch:
    """intel_pmu_setup_sw_lbr_filter: which branches `event` wants. EINVAL, EOPNOTSUPP."""
    wanted = event.attr.branch_sample_type
    if wanted & BranchSampleType.COUNTERS:
        raise LinuxError(EOPNOTSUPP, "branch_sample_type: these branch records count no events")
    classes = wanted_branches(wanted)
    if wanted & BranchSampleType.CALL_STACK:
        others = wanted_branches(wanted & ~BranchSampleType.CALL_STACK) & ~_LEVELS
        if others or wanted & _OF_TRANSACTIONS:
            raise LinuxError(EINVAL, "branch_sample_type: CALL_STACK is of no other branches")
    return classes


class IntelBranchStacks(BranchStacks):
    """Of MSRs, which an interrupt freezes by IA32_DEBUGCTL."""

    def __init__(self, cpus: Sequence[Cpu], pmus: Sequence[Pmu]) -> None:
        super().__init__(cpus)
        self._pmus = {cpu.number: pmu for cpu, pmu in zip(cpus, pmus, strict=True)}

    def go_on(self, cpu: Cpu) -> None:
        if self.in_use(cpu):
            self._pmus[cpu.number].write(IA32_PERF_GLOBAL_STATUS_RESET, _UNFREEZE)


class LastBranchRecords(IntelBranchStacks):
    """Skylake's."""

    entries = LBR_ENTRIES

    def configured(self, event: PerfEvent) -> EventBranches:
        classes = check_wanted(event)
        wanted = event.attr.branch_sample_type
        mask = 0
        for bit, selected in _SELECTED_BY.items():
            if wanted & bit:
                mask |= selected
        return EventBranches(self, event, mask ^ _SUPPRESSES, classes)

    def start(self, cpu: Cpu, branches: EventBranches) -> None:
        """__intel_pmu_lbr_enable. As a stack they are not frozen by an interrupt: it might come between a call and what
        enters it."""
        pmu = self._pmus[cpu.number]
        pmu.write(MSR_LBR_SELECT, branches.selected)
        control = pmu.read(IA32_DEBUGCTL) | IA32_DEBUGCTL.LBR.mask
        if not branches.as_stack:
            control |= IA32_DEBUGCTL.FREEZE_LBRS_ON_PMI.mask
        pmu.write(IA32_DEBUGCTL, control)

    def stop(self, cpu: Cpu) -> None:
        pmu = self._pmus[cpu.number]
        control = IA32_DEBUGCTL.LBR.mask | IA32_DEBUGCTL.FREEZE_LBRS_ON_PMI.mask
        pmu.write(IA32_DEBUGCTL, pmu.read(IA32_DEBUGCTL) & ~control)

    def reset(self, cpu: Cpu) -> None:
        """intel_pmu_lbr_reset_64"""
        pmu = self._pmus[cpu.number]
        for bank in _BANKS:
            for number in range(self.entries):
                pmu.write(bank, 0, number)

    def keep(self, cpu: Cpu) -> Kept:
        """__intel_pmu_lbr_save: TOS, and the entries from there on downward."""
        pmu = self._pmus[cpu.number]
        newest = pmu.read(MSR_LASTBRANCH_TOS)
        numbers = ((newest - age) % self.entries for age in range(self.entries))
        return newest, [tuple(pmu.read(bank, number) for bank in _BANKS) for number in numbers]

    def bring_back(self, cpu: Cpu, kept: Kept) -> None:
        pmu = self._pmus[cpu.number]
        newest, entries = kept
        assert isinstance(newest, int), "as `keep` has it"
        assert isinstance(entries, list), "as `keep` has it"
        for age, entry in enumerate(entries):
            for bank, value in zip(_BANKS, entry, strict=True):
                pmu.write(bank, value, (newest - age) % self.entries)
        pmu.write(MSR_LASTBRANCH_TOS, newest)

    def read(self, branches: EventBranches, cpu: Cpu) -> BranchStack:
        """intel_pmu_lbr_read_64, intel_pmu_lbr_filter."""
        pmu = self._pmus[cpu.number]
        newest = pmu.read(MSR_LASTBRANCH_TOS)
        found: list[BranchEntry] = []
        needs_info = branches.wanted & _NO_INFO != _NO_INFO
        for age in range(self.entries):
            number = (newest - age) % self.entries
            source = pmu.read(MSR_LASTBRANCH_x_FROM_IP, number)
            if not source:
                if branches.as_stack:
                    break
                continue
            flags = 0
            if needs_info:
                info = pmu.read(MSR_LBR_INFO_x, number)
                flags = BranchFlag.MISPRED if info & _MISPREDICTED else BranchFlag.PREDICTED
                flags |= (info & _CYCLES) << BRANCH_CYCLES_SHIFT
            found.append(BranchEntry(source, pmu.read(MSR_LASTBRANCH_x_TO_IP, number), flags))
        return BranchStack(newest, filtered(branches, cpu, found))
