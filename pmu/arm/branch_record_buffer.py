"""BranchRecordBuffer: Arm's Branch Record Buffer Extension (FEAT_BRBE) as a live device.

What is chosen here, where the manual leaves it open: after a reset all registers are 0; after BRB INJ those that it
reads are 0; exception returns, for which cores describe no predictor, count as predicted right; ISB is no branch.
Where the kernel is modelled no vector is entered: of exceptions and returns from them there are no records.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.cpu import Level
from pmu.arm.brbe_registers import (
    BANK_RECORDS,
    BRB_IALL,
    BRB_INJ,
    BRBCR_EL1,
    BRBFCR_EL1,
    BRBIDR0_EL1,
    BRBINFINJ_EL1,
    BRBSRCINJ_EL1,
    BRBTGTINJ_EL1,
    BRBTS_EL1,
    CC_20_BITS,
    BranchType,
    BRBINFn_EL1,
    BRBSRCn_EL1,
    BRBTGTn_EL1,
    Valid,
    cycle_count,
)
from pmu.branch_records import Access, BranchKind, BranchUnit, Entry
from pmu.branch_source import BranchSource
from pmu.register import Register

RECORDS = (8, 16, 32, 64)  # BRBIDR0_EL1.NUMREC

_CONTROL, _FUNCTION, _INF = BRBCR_EL1, BRBFCR_EL1, BRBINFn_EL1
_SELECTED_BY = {
    BranchKind.CONDITIONAL: _FUNCTION.CONDDIR.mask,
    BranchKind.DIRECT: _FUNCTION.DIRECT.mask,
    BranchKind.INDIRECT: _FUNCTION.INDIRECT.mask,
    BranchKind.CALL: _FUNCTION.DIRCALL.mask,
    BranchKind.INDIRECT_CALL: _FUNCTION.INDCALL.mask,
    BranchKind.RETURN: _FUNCTION.RTN.mask,
}
_TYPES = {
    BranchKind.CONDITIONAL: BranchType.DIRECT_COND,
    BranchKind.DIRECT: BranchType.DIRECT_UNCOND,
    BranchKind.INDIRECT: BranchType.INDIRECT,
    BranchKind.CALL: BranchType.DIRECT_LINK,
    BranchKind.INDIRECT_CALL: BranchType.INDIRECT_LINK,
    BranchKind.RETURN: BranchType.RET,
}
_KNOWN = {kind: _INF.make(VALID=Valid.FULL, TYPE=type) for kind, type in _TYPES.items()}  # but its level
# By ESR_EL1.EC, or where there is none by 64 and which vector: BRBEException(). All others are traps.
_EXCEPTIONS = {
    0x0D: BranchType.INSN_FAULT,  # branch target
    0x15: BranchType.CALL,  # SVC
    0x16: BranchType.CALL,  # HVC
    0x17: BranchType.CALL,  # SMC
    0x1C: BranchType.DATA_FAULT,  # pointer authentication
    0x20: BranchType.INSN_FAULT,
    0x21: BranchType.INSN_FAULT,
    0x22: BranchType.ALIGN_FAULT,  # of PC
    0x24: BranchType.DATA_FAULT,  # misaligned accesses among them
    0x25: BranchType.DATA_FAULT,
    0x26: BranchType.ALIGN_FAULT,  # of SP
    0x2F: BranchType.SERROR,
    0x30: BranchType.INSN_DEBUG,  # breakpoint
    0x31: BranchType.INSN_DEBUG,
    0x32: BranchType.INSN_DEBUG,  # software step
    0x33: BranchType.INSN_DEBUG,
    0x34: BranchType.DATA_DEBUG,  # watchpoint
    0x35: BranchType.DATA_DEBUG,
    0x3C: BranchType.INSN_DEBUG,  # BRK
    64 + 1: BranchType.IRQ,
    64 + 2: BranchType.FIQ,
    64 + 3: BranchType.SERROR,
}
_BANK_SHIFT, _CC_SHIFT, _EL_SHIFT = _FUNCTION.BANK.lo, _INF.CC.lo, _INF.EL.lo
_MISPREDICTED, _UNKNOWN_CYCLES = _INF.MPRED.mask, _INF.CCU.mask
_NOTHING = Entry()


class BranchRecordBuffer(BranchUnit):
    """Records that are numbered by age, 32 of which registers show at a time."""

    kept = (*BranchUnit.kept, "_control", "_function", "_stored")
    format = 0  # BRBIDR0_EL1.FORMAT

    def __init__(
        self, source: BranchSource, entries: int = BANK_RECORDS, timestamp: Callable[[], int] = lambda: 0
    ) -> None:
        """`timestamp`: what the counter shows now that BRBTS_EL1 is of."""
        if entries not in RECORDS:
            raise ValueError(f"{entries} branch records; there can be {', '.join(map(str, RECORDS))}")
        super().__init__(source, entries)
        self._timestamp = timestamp
        self.when_controlled: Callable[[], None] = lambda: None
        self._records.hide_others()
        self._records.record(0)
        self._control = self._function = 0
        stored: tuple[type[Register], ...] = (BRBTS_EL1, BRBINFINJ_EL1, BRBSRCINJ_EL1, BRBTGTINJ_EL1)
        self._stored = {register.__name__: 0 for register in stored}
        identity = BRBIDR0_EL1.make(NUMREC=entries, FORMAT=self.format, CC=CC_20_BITS)
        self._accesses: dict[type[Register], Access] = {
            _CONTROL: Access(lambda index: self._control, self._write_control),
            _FUNCTION: Access(lambda index: self._function, self._write_function),
            **{register: self._access_to(register) for register in stored},
            BRBIDR0_EL1: Access(lambda index: identity),
            BRBINFn_EL1: Access(self._read_information),
            BRBSRCn_EL1: Access(lambda index: self._shown(index).from_address),
            BRBTGTn_EL1: Access(lambda index: self._shown(index).to_address),
            BRB_IALL: Access(None, lambda value, index: self._invalidate()),
            BRB_INJ: Access(None, lambda value, index: self._inject()),
        }

    def accesses(self) -> dict[type[Register], Access]:
        """What reads and writes each of its registers."""
        return self._accesses

    @property
    def freezes(self) -> bool:
        """Whether an overflow of the PMU stops it."""
        return bool(self._control & _CONTROL.FZP.mask)

    def overflow(self) -> None:
        """Of an event counter of the PMU's, which freezes it: "BRBE freeze event"."""
        if self.freezes and not self._function & _FUNCTION.PAUSED.mask:
            self._stored[BRBTS_EL1.__name__] = self._timestamp()
            self._function |= _FUNCTION.PAUSED.mask
            self.freeze(True)

    def _access_to(self, register: type[Register]) -> Access:
        name = register.__name__

        def write(value: int, index: int) -> None:
            self._stored[name] = register.write(0, value)

        return Access(lambda index: self._stored[name], write)

    def _write_control(self, value: int, index: int) -> None:
        begins = ~self._control & value & _CONTROL.E1BRE.mask  # where this executes nothing was recorded
        self._control = _CONTROL.write(0, value)
        if begins:
            self._records.forget_time()
        self._select()
        self.enable(bool(self._levels))
        self.when_controlled()

    def _write_function(self, value: int, index: int) -> None:
        self._function = _FUNCTION.write(0, value)
        self._select()
        self.freeze(bool(self._function & _FUNCTION.PAUSED.mask))

    @property
    def _levels(self) -> int:
        """At which branches are recorded: a mask by Level."""
        control = _CONTROL(self._control)
        return control.E0BRE << Level.USER | control.E1BRE << Level.KERNEL

    def _select(self) -> None:
        control, function = self._control, self._function
        self._records.note(bool(control & _CONTROL.CC.mask), bool(control & _CONTROL.MPRED.mask))
        self._records.record_at(self._levels)
        excludes = bool(function & _FUNCTION.EnI.mask)
        kinds = sum(1 << kind for kind, selected in _SELECTED_BY.items() if bool(function & selected) != excludes)
        kinds |= bool(control & _CONTROL.EXCEPTION.mask) << BranchKind.EXCEPTION
        kinds |= bool(control & _CONTROL.ERTN.mask) << BranchKind.EXCEPTION_RETURN
        self._records.record(kinds)

    def _update(self) -> None:
        """The first record after a time in which there were none has cycles that nobody knows."""
        if not self._listens:
            self._records.forget_time()
        super()._update()

    def _shown(self, index: int) -> Entry:
        number = (self._function >> _BANK_SHIFT) % 4 * BANK_RECORDS + index
        return self._aged(number) if number < self.entries else _NOTHING

    def _invalidate(self) -> None:
        self._clear()
        self._records.forget_time()

    def _read_information(self, index: int) -> int:
        entry = self._shown(index)
        known = _KNOWN.get(BranchKind(entry.kind))
        if known is None:
            if entry.kind == BranchKind.NONE:  # injected, or invalid
                return entry.info
            returns = entry.kind == BranchKind.EXCEPTION_RETURN
            type_ = BranchType.ERET if returns else _EXCEPTIONS.get(entry.cause, BranchType.TRAP)
            valid = Valid.SOURCE * entry.has_from | Valid.TARGET * entry.has_to
            known = _INF.make(VALID=valid, TYPE=type_)
        cycles = cycle_count(entry.cycles) << _CC_SHIFT if entry.timed else _UNKNOWN_CYCLES
        return known | entry.level << _EL_SHIFT | cycles | (_MISPREDICTED if entry.mispredicted else 0)

    def _inject(self) -> None:
        information, source, target = (register.__name__ for register in (BRBINFINJ_EL1, BRBSRCINJ_EL1, BRBTGTINJ_EL1))
        entry = Entry(self._stored[source], self._stored[target], info=self._stored[information])
        self._records.top = (self._records.top + 1) % self.entries
        self._put(self._records.top, entry)
        for register in (information, source, target):
            self._stored[register] = 0
