"""LastBranchStack: AMD's last branch stack, version 2, as a live device.

What is chosen here, where the manual leaves it open: a branch is recorded when it retires, so that none is Spec; a
record has the branch's own address, also where a compare has been fused with it.
"""

from __future__ import annotations

from pmu.amd.lbr_registers import DBG_EXTN_CFG, LBR_SELECT, LBR_V2_ENTRIES, LastBranchFromIpx, LastBranchToIpx
from pmu.branch_records import Access, BranchKind, BranchUnit, Leaf
from pmu.branch_source import BranchSource
from pmu.register import Register
from pmu.x86_counters import levels_of

_FROM, _TO = LastBranchFromIpx, LastBranchToIpx
_SUPPRESSED_BY = {
    BranchKind.CONDITIONAL: LBR_SELECT.JCC.mask,
    BranchKind.CALL: LBR_SELECT.CALL_NEAR_REL.mask,
    BranchKind.INDIRECT_CALL: LBR_SELECT.CALL_NEAR_IND.mask,
    BranchKind.RETURN: LBR_SELECT.RET_NEAR.mask,
    BranchKind.INDIRECT: LBR_SELECT.JMP_NEAR_IND.mask,
    BranchKind.DIRECT: LBR_SELECT.JMP_NEAR_REL.mask,
    BranchKind.FAR: LBR_SELECT.FAR_BRANCH.mask,
}
_FROM_ADDRESS = _FROM.LbrFrom.mask | _FROM.LbrFromSignExt.mask
_TO_ADDRESS = _TO.LbrTo.mask | _TO.LbrToSignExt.mask
_MISPREDICTED, _VALID = _FROM.MisPredict.mask, _TO.Valid.mask

_PERFMON = 0x8000_0022
_LBR_STACK, _FREEZES = 1 << 1, 1 << 2  # EAX: there is the stack, and an overflow can freeze it
_SIZE_SHIFT = 4  # of EBX


def cpuid_of_branches(leaf: int, subleaf: int, plain: Leaf) -> Leaf:
    """Of a processor with this stack, which without would say `plain`. AMD64 APM volume 3, appendix E."""
    eax, ebx, ecx, edx = plain
    return (eax | _LBR_STACK | _FREEZES, ebx | LBR_V2_ENTRIES << _SIZE_SHIFT, ecx, edx) if leaf == _PERFMON else plain


class LastBranchStack(BranchUnit):
    """Records that are numbered by age."""

    kept = (*BranchUnit.kept, "_selects", "_configuration")

    def __init__(self, source: BranchSource) -> None:
        super().__init__(source, LBR_V2_ENTRIES)
        self._selects = self._configuration = 0
        self._accesses: dict[type[Register], Access] = {
            DBG_EXTN_CFG: Access(lambda index: self._configuration, self._write_configuration),
            LBR_SELECT: Access(lambda index: self._selects, self._write_select),
            LastBranchFromIpx: Access(self._read_from, self._write_from),
            LastBranchToIpx: Access(self._read_to, self._write_to),
        }

    def accesses(self) -> dict[type[Register], Access]:
        """What reads and writes each of its registers."""
        return self._accesses

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        return cpuid_of_branches(leaf, subleaf, plain)

    def _write_configuration(self, value: int, index: int) -> None:
        self._configuration = DBG_EXTN_CFG.write(0, value)
        self.enable(bool(self._configuration))

    def _write_select(self, value: int, index: int) -> None:
        self._selects = LBR_SELECT.write(0, value)
        self._select()

    def _select(self) -> None:
        value = self._selects
        kinds = sum(1 << kind for kind, suppressed in _SUPPRESSED_BY.items() if not value & suppressed)
        user, kernel = not value & LBR_SELECT.CPL_GT_0.mask, not value & LBR_SELECT.CPL_EQ_0.mask
        self._records.record_at(levels_of(user=user, kernel=kernel))
        self._records.record(kinds)

    def _read_from(self, index: int) -> int:
        entry = self._aged(index)
        return entry.from_address & _FROM_ADDRESS | (_MISPREDICTED if entry.mispredicted else 0)

    def _write_from(self, value: int, index: int) -> None:
        mispredicted = bool(value & _MISPREDICTED)
        self._change(self._number(index), from_address=value & _FROM_ADDRESS, mispredicted=mispredicted)

    def _read_to(self, index: int) -> int:
        entry = self._aged(index)
        return entry.to_address & _TO_ADDRESS | (_VALID if entry.kind else 0)

    def _write_to(self, value: int, index: int) -> None:
        """Valid is kept as a kind of branch, which none of its registers says."""
        kind = BranchKind.DIRECT if value & _VALID else BranchKind.NONE
        self._change(self._number(index), to_address=value & _TO_ADDRESS, kind=kind)
