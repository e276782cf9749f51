"""ArchitecturalBranches: Intel's architectural last branch records as a live device, and what CPUID says of them.

What is chosen here, where the manual leaves it open: one depth, 32; and as for those before (last_branches).
"""

from __future__ import annotations

from pmu.branch_records import Access, BranchKind, BranchUnit
from pmu.branch_source import BranchSource
from pmu.intel.arch_lbr_registers import (
    ARCH_LBR_ENTRIES,
    IA32_LBR_CTL,
    IA32_LBR_DEPTH,
    IA32_LBR_x_FROM_IP,
    IA32_LBR_x_INFO,
    IA32_LBR_x_TO_IP,
)
from pmu.intel.cpuid import Leaf
from pmu.intel.registers import ARCHITECTURAL_LBRS
from pmu.register import Register
from pmu.x86_counters import levels_of

_CTL, _INFO = IA32_LBR_CTL, IA32_LBR_x_INFO
_SELECTED_BY = {
    BranchKind.CONDITIONAL: _CTL.COND.mask,
    BranchKind.DIRECT: _CTL.NEAR_REL_JMP.mask,
    BranchKind.INDIRECT: _CTL.NEAR_IND_JMP.mask,
    BranchKind.CALL: _CTL.NEAR_REL_CALL.mask,
    BranchKind.INDIRECT_CALL: _CTL.NEAR_IND_CALL.mask,
    BranchKind.RETURN: _CTL.NEAR_RET.mask,
    BranchKind.FAR: _CTL.OTHER_BRANCH.mask,
}
_CALLS = 1 << BranchKind.CALL | 1 << BranchKind.INDIRECT_CALL
_TYPES = {  # BR_TYPE
    BranchKind.CONDITIONAL: 0,
    BranchKind.INDIRECT: 1,
    BranchKind.DIRECT: 2,
    BranchKind.INDIRECT_CALL: 3,
    BranchKind.CALL: 4,
    BranchKind.RETURN: 5,
    BranchKind.FAR: 8,
}
_KINDS = {type: kind for kind, type in _TYPES.items()} | dict.fromkeys(range(8, 16), BranchKind.FAR)
_MOST_CYCLES = _INFO.CYC_CNT.mask

CPUID_LEAF = 0x1C
ARCH_LBR = 1 << 19  # leaf 7, EDX
DEPTHS = 1 << ARCH_LBR_ENTRIES // 8 - 1  # EAX: a bit for each multiple of 8
FILTERS = 0b111  # EBX: by privilege, by kind of branch; as a stack of calls
KNOWN = 0b111  # ECX: mispredictions, cycles, kinds


def cpuid_of_branches(leaf: int, subleaf: int, plain: Leaf) -> Leaf:
    """Of a processor with these records, which without would say `plain`."""
    eax, ebx, ecx, edx = plain
    if leaf == 0:
        return max(eax, CPUID_LEAF), ebx, ecx, edx
    if leaf == 7 and subleaf == 0:
        return eax, ebx, ecx, edx | ARCH_LBR
    return (DEPTHS, FILTERS, KNOWN, 0) if leaf == CPUID_LEAF and subleaf == 0 else plain


class ArchitecturalBranches(BranchUnit):
    """Records that are numbered by age."""

    kept = (*BranchUnit.kept, "_control")
    format = ARCHITECTURAL_LBRS  # IA32_PERF_CAPABILITIES.LBR_FMT

    def __init__(self, source: BranchSource) -> None:
        super().__init__(source, ARCH_LBR_ENTRIES)
        self._control = 0
        self._accesses: dict[type[Register], Access] = {
            IA32_LBR_CTL: Access(lambda index: self._control, self._write_control),
            IA32_LBR_DEPTH: Access(lambda index: self.entries, self._write_depth),
            IA32_LBR_x_INFO: Access(self._read_info, self._write_info),
            IA32_LBR_x_FROM_IP: Access(lambda index: self._aged(index).from_address, self._write_from),
            IA32_LBR_x_TO_IP: Access(lambda index: self._aged(index).to_address, self._write_to),
        }

    def accesses(self) -> dict[type[Register], Access]:
        """What reads and writes each of its registers."""
        return self._accesses

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        return cpuid_of_branches(leaf, subleaf, plain)

    def check(self, register: type[Register], value: int) -> None:
        """ValueError if writing that value faults."""
        if register is IA32_LBR_DEPTH and value != self.entries:
            raise ValueError(f"IA32_LBR_DEPTH: {value}: there are {self.entries} records, no more and no fewer")

    def _write_control(self, value: int, index: int) -> None:
        self._control = _CTL.write(0, value)
        self._select()
        self.enable(bool(self._control & _CTL.LBREn.mask))

    def _select(self) -> None:
        value = self._control
        kinds = sum(1 << kind for kind, selected in _SELECTED_BY.items() if value & selected)
        self._records.record_at(levels_of(user=bool(value & _CTL.USR.mask), kernel=bool(value & _CTL.OS.mask)))
        as_stack = bool(value & _CTL.CALL_STACK.mask)
        self._records.record(kinds & _CALLS if as_stack else kinds, as_stack)

    def _write_depth(self, value: int, index: int) -> None:
        self.check(IA32_LBR_DEPTH, value)
        self._clear()

    def _write_from(self, value: int, index: int) -> None:
        self._change(self._number(index), from_address=value)

    def _write_to(self, value: int, index: int) -> None:
        self._change(self._number(index), to_address=value)

    def _read_info(self, index: int) -> int:
        entry = self._aged(index)
        info = min(entry.cycles, _MOST_CYCLES) | _TYPES.get(BranchKind(entry.kind), 0) << _INFO.BR_TYPE.lo
        return info | entry.timed << _INFO.CYC_CNT_VALID.lo | entry.mispredicted << _INFO.MISPRED.lo

    def _write_info(self, value: int, index: int) -> None:
        info = _INFO(_INFO.write(0, value))
        self._change(
            self._number(index),
            cycles=info.CYC_CNT,
            kind=_KINDS.get(info.BR_TYPE, BranchKind.NONE),
            mispredicted=bool(info.MISPRED),
            timed=bool(info.CYC_CNT_VALID),
        )
