"""LastBranches: Intel's last branch records as a live device, as Skylake has them.

What is chosen here, where the manual leaves it open: the first branch after recording has begun says 0 cycles; so does
one of more cycles than the field holds say as many as that does. What software writes
into a transaction's bits is lost. A far transfer, where a guest's own kernel executes, is of the level that it leads
to, and never mispredicted; that of an interrupt, an exception or a fault is at the instruction that it comes before.
"""

from __future__ import annotations

from pmu.branch_records import Access, BranchKind, BranchUnit
from pmu.branch_source import BranchSource
from pmu.intel.lbr_registers import (
    LBR_ENTRIES,
    MSR_LASTBRANCH_TOS,
    MSR_LBR_SELECT,
    MSR_LASTBRANCH_x_FROM_IP,
    MSR_LASTBRANCH_x_TO_IP,
    MSR_LBR_INFO_x,
)
from pmu.register import Register
from pmu.x86_counters import levels_of

_SELECT = MSR_LBR_SELECT
_SUPPRESSED_BY = {
    BranchKind.CONDITIONAL: _SELECT.JCC.mask,
    BranchKind.CALL: _SELECT.NEAR_REL_CALL.mask,
    BranchKind.INDIRECT_CALL: _SELECT.NEAR_IND_CALL.mask,
    BranchKind.RETURN: _SELECT.NEAR_RET.mask,
    BranchKind.INDIRECT: _SELECT.NEAR_IND_JMP.mask,
    BranchKind.DIRECT: _SELECT.NEAR_REL_JMP.mask,
    BranchKind.FAR: _SELECT.FAR_BRANCH.mask,
}
_CALLS = 1 << BranchKind.CALL | 1 << BranchKind.INDIRECT_CALL
_MOST_CYCLES = MSR_LBR_INFO_x.CYC_CNT.mask
_INFO_FORMAT = 5  # LBR_FORMAT_INFO: MSR_LBR_INFO_x says what is known besides addresses


class LastBranches(BranchUnit):
    """`entries` records, and what selects them."""

    kept = (*BranchUnit.kept, "_selects")
    format = _INFO_FORMAT  # IA32_PERF_CAPABILITIES.LBR_FMT

    def __init__(self, source: BranchSource, entries: int = LBR_ENTRIES) -> None:
        super().__init__(source, entries)
        self._selects = 0
        self._accesses: dict[type[Register], Access] = {
            MSR_LBR_SELECT: Access(lambda index: self._selects, self._write_select),
            MSR_LASTBRANCH_TOS: Access(lambda index: self._records.top, self._write_top),
            MSR_LASTBRANCH_x_FROM_IP: Access(lambda index: self._entry(index).from_address, self._write_from),
            MSR_LASTBRANCH_x_TO_IP: Access(lambda index: self._entry(index).to_address, self._write_to),
            MSR_LBR_INFO_x: Access(self._read_info, self._write_info),
        }

    def accesses(self) -> dict[type[Register], Access]:
        """What reads and writes each of its registers."""
        return self._accesses

    def _write_select(self, value: int, index: int) -> None:
        self._selects = MSR_LBR_SELECT.write(0, value)
        self._select()

    def _select(self) -> None:
        value = self._selects
        kinds = sum(1 << kind for kind, suppressed in _SUPPRESSED_BY.items() if not value & suppressed)
        user, kernel = not value & _SELECT.CPL_NEQ_0.mask, not value & _SELECT.CPL_EQ_0.mask
        self._records.record_at(levels_of(user=user, kernel=kernel))
        as_stack = bool(value & _SELECT.EN_CALLSTACK.mask)
        self._records.record(kinds & _CALLS if as_stack else kinds, as_stack)

    def _write_top(self, value: int, index: int) -> None:
        self._records.top = MSR_LASTBRANCH_TOS.write(0, value)

    def _write_from(self, value: int, index: int) -> None:
        self._change(index, from_address=value)

    def _write_to(self, value: int, index: int) -> None:
        self._change(index, to_address=value)

    def _read_info(self, index: int) -> int:
        entry = self._entry(index)
        mispredicted = MSR_LBR_INFO_x.MISPRED.mask if entry.mispredicted else 0
        return min(entry.cycles, _MOST_CYCLES) | mispredicted

    def _write_info(self, value: int, index: int) -> None:
        value = MSR_LBR_INFO_x.write(0, value)
        mispredicted = bool(value & MSR_LBR_INFO_x.MISPRED.mask)
        self._change(index, cycles=value & _MOST_CYCLES, mispredicted=mispredicted)
