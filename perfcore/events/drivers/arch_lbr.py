"""The driver of architectural last branch records. As arch/x86/events/intel/lbr.c, of Linux 6.12."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from emulator.cpu import Cpu
from perfcore.abi.constants import BRANCH_CYCLES_SHIFT, BRANCH_TYPE_SHIFT, BranchFlag, BranchSampleType
from perfcore.abi.sample import BranchEntry, BranchStack
from perfcore.events.drivers.branch_stacks import EventBranches, Kept
from perfcore.events.drivers.lbr import IntelBranchStacks, check_wanted
from perfcore.events.drivers.x86_branches import X86Branch, branch_between, type_of, wants_only_transactions
from perfcore.events.event import PerfEvent
from pmu.intel.arch_lbr_registers import (
    ARCH_LBR_ENTRIES,
    IA32_LBR_CTL,
    IA32_LBR_DEPTH,
    IA32_LBR_x_FROM_IP,
    IA32_LBR_x_INFO,
    IA32_LBR_x_TO_IP,
)
from pmu.intel.registers import IA32_DEBUGCTL

_BANKS = (IA32_LBR_x_FROM_IP, IA32_LBR_x_TO_IP, IA32_LBR_x_INFO)
_CTL, _INFO = IA32_LBR_CTL, IA32_LBR_x_INFO
_CALLS = _CTL.NEAR_REL_CALL.mask | _CTL.NEAR_IND_CALL.mask
_JUMPS = _CTL.COND.mask | _CTL.NEAR_REL_JMP.mask | _CTL.NEAR_IND_JMP.mask
_SELECTED_BY = {  # arch_lbr_ctl_map
    BranchSampleType.ANY: _JUMPS | _CALLS | _CTL.NEAR_RET.mask | _CTL.OTHER_BRANCH.mask,
    BranchSampleType.USER: _CTL.USR.mask,
    BranchSampleType.KERNEL: _CTL.OS.mask,
    BranchSampleType.ANY_RETURN: _CTL.NEAR_RET.mask | _CTL.OTHER_BRANCH.mask,
    BranchSampleType.ANY_CALL: _CALLS | _CTL.OTHER_BRANCH.mask,
    BranchSampleType.IND_CALL: _CTL.NEAR_IND_CALL.mask,
    BranchSampleType.COND: _CTL.COND.mask,
    BranchSampleType.CALL_STACK: _CALLS | _CTL.NEAR_RET.mask | _CTL.CALL_STACK.mask,
    BranchSampleType.IND_JUMP: _CTL.NEAR_IND_JMP.mask,
    BranchSampleType.CALL: _CTL.NEAR_REL_CALL.mask,
}
_BRANCHES = (  # arch_lbr_br_type_map, by BR_TYPE; those above have to be looked up
    *(X86Branch.JCC, X86Branch.IND_JMP, X86Branch.JMP),
    *(X86Branch.IND_CALL, X86Branch.CALL, X86Branch.RET),
)


class ArchitecturalLbr(IntelBranchStacks):
    """Of the CPUs' MSRs. They say which kind a branch is, so that samples always do."""

    entries = ARCH_LBR_ENTRIES

    def configured(self, event: PerfEvent) -> EventBranches:
        classes = check_wanted(event)
        selected = 0
        for bit, mask in _SELECTED_BY.items():
            if event.attr.branch_sample_type & bit:
                selected |= mask
        return EventBranches(self, event, selected, classes)

    def start(self, cpu: Cpu, branches: EventBranches) -> None:
        """__intel_pmu_lbr_enable"""
        pmu = self._pmus[cpu.number]
        if not branches.as_stack:
            pmu.write(IA32_DEBUGCTL, pmu.read(IA32_DEBUGCTL) | IA32_DEBUGCTL.FREEZE_LBRS_ON_PMI.mask)
        pmu.write(IA32_LBR_CTL, branches.selected | _CTL.LBREn.mask)

    def stop(self, cpu: Cpu) -> None:
        pmu = self._pmus[cpu.number]
        pmu.write(IA32_LBR_CTL, 0)
        pmu.write(IA32_DEBUGCTL, pmu.read(IA32_DEBUGCTL) & ~IA32_DEBUGCTL.FREEZE_LBRS_ON_PMI.mask)

    def reset(self, cpu: Cpu) -> None:
        """intel_pmu_arch_lbr_reset"""
        self._pmus[cpu.number].write(IA32_LBR_DEPTH, self.entries)

    def keep(self, cpu: Cpu) -> Kept:
        """intel_pmu_arch_lbr_save"""
        pmu = self._pmus[cpu.number]
        return [tuple(pmu.read(bank, age) for bank in _BANKS) for age in range(self.entries)]

    def bring_back(self, cpu: Cpu, kept: Kept) -> None:
        pmu = self._pmus[cpu.number]
        for age, entry in enumerate(kept):
            assert isinstance(entry, tuple), "as `keep` has it"
            for bank, value in zip(_BANKS, entry, strict=True):
                pmu.write(bank, value, age)

    def read(self, branches: EventBranches, cpu: Cpu) -> BranchStack:
        """intel_pmu_store_lbr, intel_pmu_lbr_filter."""
        pmu = self._pmus[cpu.number]
        return stack_of(branches, cpu, (tuple(pmu.read(bank, age) for bank in _BANKS) for age in range(self.entries)))


def stack_of(branches: EventBranches, cpu: Cpu, records: Iterable[Sequence[int]]) -> BranchStack:
    """Of what each record's FROM_IP, TO_IP and INFO hold, the newest first."""
    found: list[BranchEntry] = []
    if not wants_only_transactions(branches):
        for source, target, value in records:
            if not source:
                break
            info = _INFO(value)
            known = info.BR_TYPE < len(_BRANCHES)
            branch = _BRANCHES[info.BR_TYPE] if known else branch_between(cpu, source, target)
            if not branch & branches.classes:
                continue
            flags = int(BranchFlag.MISPRED if info.MISPRED else BranchFlag.PREDICTED)
            if info.CYC_CNT_VALID:
                flags |= info.CYC_CNT << BRANCH_CYCLES_SHIFT
            flags |= type_of(branch) << BRANCH_TYPE_SHIFT
            found.append(BranchEntry(source, target, flags))
    return BranchStack(0, found)
