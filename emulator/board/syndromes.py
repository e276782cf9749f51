"""ESR_EL1 of what a core's exits say. Arm ARM DDI 0487, "ESR_EL1" and "ISS encoding for an exception from ..."."""

from __future__ import annotations

from enum import IntEnum

from emulator.cpu import Level, WalkFault
from emulator.sysregs import SysReg


class ExceptionClass(IntEnum):
    """ESR_EL1.EC. Those of aborts and breakpoints are one more when they come from EL1."""

    UNKNOWN = 0x00
    WAIT = 0x01
    FP_ACCESS = 0x07
    ILLEGAL_STATE = 0x0E
    SVC = 0x15
    SYSTEM_REGISTER = 0x18
    INSTRUCTION_ABORT = 0x20
    PC_ALIGNMENT = 0x22
    DATA_ABORT = 0x24
    BREAKPOINT = 0x30
    SOFTWARE_STEP = 0x32
    WATCHPOINT = 0x34
    BRK = 0x3C


INSTRUCTION_OF_32_BITS = 1 << 25  # IL
ANY_CONDITION = 1 << 24 | 0xE << 20  # CV, COND: what executes in A64 is not conditional
WRITE_NOT_READ = 1 << 6
PERMISSION_FAULT, ALIGNMENT_FAULT, EXTERNAL_ABORT, EXTERNAL_ABORT_ON_WALK = 0b001100, 0b100001, 0b010000, 0b010100
FAULT_STATUS = {
    WalkFault.ADDRESS_SIZE: 0b000000,
    WalkFault.TRANSLATION: 0b000100,
    WalkFault.ACCESS_FLAG: 0b001000,
    WalkFault.NONE: PERMISSION_FAULT,
    WalkFault.EXTERNAL: EXTERNAL_ABORT_ON_WALK,
}
DEBUG_EVENT = 0b100010  # IFSC, DFSC
FETCH, WRITE = 4, 2  # Core.fault_access


def syndrome(kind: ExceptionClass, specific: int = 0) -> int:
    return kind << 26 | INSTRUCTION_OF_32_BITS | specific


def abort(access: int, level: Level, status: int) -> int:
    """Of an instruction or data abort; `level`: whose access it was."""
    kind = ExceptionClass.INSTRUCTION_ABORT if access == FETCH else ExceptionClass.DATA_ABORT
    writes = WRITE_NOT_READ if access == WRITE else 0
    return (kind + level) << 26 | INSTRUCTION_OF_32_BITS | writes | status


def trapped_access(register: SysReg, rt: int, *, reads: bool) -> int:
    """Of an MRS or MSR that a control register traps."""
    op0, op1, crn, crm, op2 = register
    specific = op0 << 20 | op2 << 17 | op1 << 14 | crn << 10 | rt << 5 | crm << 1 | reads
    return syndrome(ExceptionClass.SYSTEM_REGISTER, specific)


def described(cause: int) -> str:
    """A syndrome for people: its class by name, and the fault of an abort."""
    number = cause >> 26
    kind = next((each for each in ExceptionClass if each in (number, number - 1)), None)
    name = f"class {number:#x}" if kind is None else kind.name.lower().replace("_", " ")
    if kind in (ExceptionClass.INSTRUCTION_ABORT, ExceptionClass.DATA_ABORT):
        name += f" ({_described_fault(cause & 0x3F)})"
    return f"{name}, ESR {cause:#x}"


def _described_fault(status: int) -> str:
    if status in (EXTERNAL_ABORT, ALIGNMENT_FAULT):
        return "external" if status == EXTERNAL_ABORT else "alignment"
    for fault, of_level_0 in FAULT_STATUS.items():
        if of_level_0 == status & ~0b11:
            name = "permission" if fault is WalkFault.NONE else fault.name.lower().replace("_", " ")
            return f"{name}, level {status & 0b11}"
    return f"{status:#x}"


def fault_status(fault: WalkFault, table_level: int) -> int:
    """DFSC and IFSC of a walk that ended at a table of that level."""
    return FAULT_STATUS[fault] | table_level
