"""The driver of AMD's last branch stack, version 2. As arch/x86/events/amd/lbr.c, of Linux 6.12; but events that want
different branches take turns, where that lets the last one choose for all."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.cpu import Cpu
from emulator.linux.errors import EINVAL, EOPNOTSUPP, LinuxError
from perfcore.abi.constants import BRANCH_SPEC_SHIFT, BranchFlag, BranchSampleType, BranchSpeculation
from perfcore.abi.sample import BranchEntry, BranchStack
from perfcore.events.drivers.branch_stacks import BranchStacks, EventBranches, Kept
from perfcore.events.drivers.x86_branches import filtered, wanted_branches
from perfcore.events.event import PerfEvent
from pmu.amd.lbr_registers import DBG_EXTN_CFG, LBR_SELECT, LBR_V2_ENTRIES, LastBranchFromIpx, LastBranchToIpx
from pmu.amd.registers import DebugCtl
from pmu.device import Pmu

_CALLS = LBR_SELECT.CALL_NEAR_REL.mask | LBR_SELECT.CALL_NEAR_IND.mask
_SELECTED_BY = {  # lbr_select_map
    BranchSampleType.USER: LBR_SELECT.CPL_GT_0.mask,
    BranchSampleType.KERNEL: LBR_SELECT.CPL_EQ_0.mask,
    BranchSampleType.ANY: LBR_SELECT.declared & ~(LBR_SELECT.CPL_GT_0.mask | LBR_SELECT.CPL_EQ_0.mask),
    BranchSampleType.ANY_CALL: _CALLS | LBR_SELECT.FAR_BRANCH.mask,
    BranchSampleType.ANY_RETURN: LBR_SELECT.RET_NEAR.mask | LBR_SELECT.FAR_BRANCH.mask,
    BranchSampleType.IND_CALL: LBR_SELECT.CALL_NEAR_IND.mask,
    BranchSampleType.COND: LBR_SELECT.JCC.mask,
    BranchSampleType.IND_JUMP: LBR_SELECT.JMP_NEAR_IND.mask,
    BranchSampleType.CALL: LBR_SELECT.CALL_NEAR_REL.mask,
}
_NOT_SUPPORTED = (
    BranchSampleType.ABORT_TX
    | BranchSampleType.IN_TX
    | BranchSampleType.NO_TX
    | BranchSampleType.CALL_STACK
    | BranchSampleType.NO_FLAGS
    | BranchSampleType.NO_CYCLES
    | BranchSampleType.COUNTERS
)
_VIRTUAL_ADDRESS = (1 << 48) - 1


class LastBranchStacks(BranchStacks):
    """Of the CPUs' MSRs."""

    entries = LBR_V2_ENTRIES

    def __init__(self, cpus: Sequence[Cpu], pmus: Sequence[Pmu]) -> None:
        super().__init__(cpus)
        self._pmus = {cpu.number: pmu for cpu, pmu in zip(cpus, pmus, strict=True)}

    def configured(self, event: PerfEvent) -> EventBranches:
        """amd_pmu_lbr_hw_config, amd_pmu_lbr_setup_filter."""
        if not event.is_sampling:
            raise LinuxError(EINVAL, "only samples have branches")
        wanted = event.attr.branch_sample_type
        if wanted & _NOT_SUPPORTED:
            why = f"bits {wanted & _NOT_SUPPORTED:#x} are not for AMD's last branch stack"
            raise LinuxError(EOPNOTSUPP, f"branch_sample_type: {why}")
        mask = 0
        for bit, selected in _SELECTED_BY.items():
            if wanted & bit:
                mask |= selected
        return EventBranches(self, event, mask ^ LBR_SELECT.declared, wanted_branches(wanted))

    def start(self, cpu: Cpu, branches: EventBranches) -> None:
        """amd_pmu_lbr_enable_all"""
        pmu = self._pmus[cpu.number]
        pmu.write(LBR_SELECT, branches.selected)
        pmu.write(DebugCtl, pmu.read(DebugCtl) | DebugCtl.FLBRI.mask)
        pmu.write(DBG_EXTN_CFG, pmu.read(DBG_EXTN_CFG) | DBG_EXTN_CFG.LBRV2EN.mask)

    def stop(self, cpu: Cpu) -> None:
        pmu = self._pmus[cpu.number]
        pmu.write(DBG_EXTN_CFG, pmu.read(DBG_EXTN_CFG) & ~DBG_EXTN_CFG.LBRV2EN.mask)
        pmu.write(DebugCtl, pmu.read(DebugCtl) & ~DebugCtl.FLBRI.mask)

    def reset(self, cpu: Cpu) -> None:
        """amd_pmu_lbr_reset"""
        pmu = self._pmus[cpu.number]
        for age in range(self.entries):
            pmu.write(LastBranchFromIpx, 0, age)
            pmu.write(LastBranchToIpx, 0, age)

    def keep(self, cpu: Cpu) -> Kept:
        raise AssertionError("nothing is recorded as a stack")

    def bring_back(self, cpu: Cpu, kept: Kept) -> None:
        raise AssertionError("nothing has been kept")

    def go_on(self, cpu: Cpu) -> None:
        """What its status says has been cleared by who handled the interrupt."""

    def read(self, branches: EventBranches, cpu: Cpu) -> BranchStack:
        """amd_pmu_lbr_read"""
        pmu = self._pmus[cpu.number]
        found = []
        for age in range(self.entries):
            target = LastBranchToIpx(pmu.read(LastBranchToIpx, age))
            if not target.Valid and not target.Spec:
                continue
            source = LastBranchFromIpx(pmu.read(LastBranchFromIpx, age))
            flags = BranchFlag.MISPRED if source.MisPredict else BranchFlag.PREDICTED
            speculation = _SPECULATION[target.Valid << 1 | target.Spec] << BRANCH_SPEC_SHIFT
            found.append(BranchEntry(extended(source.LbrFrom), extended(target.LbrTo), flags | speculation))
        return BranchStack(0, filtered(branches, cpu, found))


_SPECULATION = (  # lbr_spec_map, by Valid and Spec
    BranchSpeculation.NOT_AVAILABLE,
    BranchSpeculation.WRONG_PATH,
    BranchSpeculation.NON_SPECULATIVE,
    BranchSpeculation.CORRECT_PATH,
)


def extended(address: int) -> int:
    """sign_ext_branch_ip, of 48 bits."""
    address &= _VIRTUAL_ADDRESS
    return address | (~_VIRTUAL_ADDRESS & (1 << 64) - 1 if address >> 47 else 0)
