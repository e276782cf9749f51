"""What the engine reports as undefined, and the architecture as trapped: ESR_EL1 says by what.

Arm ARM DDI 0487, SCTLR_EL1: its fields let EL0 execute instructions, or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.board.syndromes import ExceptionClass, syndrome, trapped_access
from emulator.cpu import Level
from emulator.sysregs import SysReg

SCTLR_EL1 = SysReg(3, 0, 1, 0, 0)
UMA, DZE, UCT, NTWI, NTWE, UCI = 1 << 9, 1 << 14, 1 << 15, 1 << 16, 1 << 18, 1 << 26  # of SCTLR_EL1
CONDITION = 1 << 24 | 0xE << 20  # of an instruction of A64: always
SYSTEM_MASK, SYSTEM = 0xFFC0_0000, 0xD500_0000  # MSR, MRS, SYS, and hints
READS = 1 << 21  # MRS, SYSL
WFI, WFE = 0xD503_207F, 0xD503_205F
ZERO_REGISTER = 31
MASKS = {SysReg(0, 3, 4, 0, op2): UMA for op2 in (6, 7)}  # MSR DAIFSet, DAIFClr: CRm is their operand
REGISTERS = {
    SysReg(3, 3, 4, 2, 1): UMA,  # DAIF
    SysReg(3, 3, 0, 0, 1): UCT,  # CTR_EL0
    SysReg(1, 3, 7, 4, 1): DZE,  # DC ZVA
    SysReg(1, 3, 7, 5, 1): UCI,  # IC IVAU
    **{SysReg(1, 3, 7, crm, 1): UCI for crm in (10, 11, 12, 14)},  # DC CVAC, CVAU, CVAP, CIVAC
}

Read = Callable[[SysReg], int]


@dataclass(frozen=True, slots=True)
class Undefined:
    """An instruction of which the engine says so, and the level that has it; `read` reads registers of EL1."""

    word: int
    level: Level
    read: Read

    @property
    def cause(self) -> int:
        """Its ESR_EL1."""
        if self.level == Level.USER:
            if self.word in (WFI, WFE):
                return syndrome(ExceptionClass.WAIT, CONDITION | (self.word == WFE))
            if self.word & SYSTEM_MASK == SYSTEM and self._is_trapped_system_instruction:
                return trapped_access(self._register, self.word & 31, reads=bool(self.word & READS))
        return syndrome(ExceptionClass.UNKNOWN)

    @property
    def _register(self) -> SysReg:
        """Or what stands there in other instructions of the kind."""
        word = self.word
        return SysReg(word >> 19 & 3, word >> 16 & 7, word >> 12 & 15, word >> 8 & 15, word >> 5 & 7)

    @property
    def _is_trapped_system_instruction(self) -> bool:
        register = self._register
        allows = MASKS.get(register._replace(crm=0)) or REGISTERS.get(register)
        return allows is not None and not self.read(SCTLR_EL1) & allows
