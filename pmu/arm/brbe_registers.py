"""The Branch Record Buffer Extension's system registers. Each is documented in Arm ARM DDI 0487 under its own name.

All are of EL1: at EL0 they are UNDEFINED. The PE that we model has no EL2 whose branches could be recorded (BRBCR_EL2,
and BRBCR_EL12 with it, are UNDEFINED), no transactions (BRBFCR_EL1.LASTFAILED and BRBINF<n>_EL1's LASTFAILED and T are
RES0), and is not frozen by PMU snapshots (BRBCR_EL1.FZPSS is RES0).
"""

from __future__ import annotations

from enum import IntEnum

from emulator.sysregs import SysReg
from pmu.arm.registers import ArmRegister
from pmu.register import RO, RW, Bank

BANK_RECORDS = 32  # that BRBFCR_EL1.BANK shows at a time


class BrbeRegister(ArmRegister):
    """One of EL1, which the PMU's controls do not trap."""

    monitor_trap = False


class BranchType(IntEnum):
    """BRBINF<n>_EL1.TYPE."""

    DIRECT_UNCOND = 0b000000
    INDIRECT = 0b000001
    DIRECT_LINK = 0b000010
    INDIRECT_LINK = 0b000011
    RET = 0b000101
    ERET = 0b000111
    DIRECT_COND = 0b001000
    DEBUG_HALT = 0b100001
    CALL = 0b100010  # SVC, HVC, SMC
    TRAP = 0b100011
    SERROR = 0b100100
    INSN_DEBUG = 0b100110
    DATA_DEBUG = 0b100111
    ALIGN_FAULT = 0b101010
    INSN_FAULT = 0b101011
    DATA_FAULT = 0b101100
    IRQ = 0b101110
    FIQ = 0b101111
    IMPDEF_TRAP_EL3 = 0b110000
    DEBUG_EXIT = 0b111001


class Valid(IntEnum):
    """BRBINF<n>_EL1.VALID: which addresses of a record are known."""

    NONE = 0b00
    TARGET = 0b01
    SOURCE = 0b10
    FULL = 0b11


class BRBCR_EL1(BrbeRegister):
    """Branch Record Buffer Control Register."""

    encoding = SysReg(2, 1, 9, 0, 0)

    E0BRE = RW(0)  # branches of EL0 are recorded
    E1BRE = RW(1)  # ... of EL1
    CC = RW(3)  # records have cycles
    MPRED = RW(4)  # ... say what was mispredicted
    TS = RW(6, 5)  # which counter BRBTS_EL1 is of: all show the same
    FZP = RW(8)  # an overflow of the PMU's event counters stops recording
    ERTN = RW(22)  # exception returns are recorded
    EXCEPTION = RW(23)  # exceptions are


class BRBFCR_EL1(BrbeRegister):
    """Branch Record Buffer Function Control Register."""

    encoding = SysReg(2, 1, 9, 0, 1)

    PAUSED = RW(7)  # nothing is recorded: by software, or an overflow
    EnI = RW(16)  # those of the types below are left out, and not the others
    DIRECT = RW(17)  # unconditional
    INDIRECT = RW(18)
    RTN = RW(19)  # RET
    INDCALL = RW(20)
    DIRCALL = RW(21)
    CONDDIR = RW(22)
    BANK = RW(29, 28)  # which records BRBINF<n>_EL1 and the others show


class BRBTS_EL1(BrbeRegister):
    """Branch Record Buffer Timestamp Register: when an overflow has stopped recording."""

    encoding = SysReg(2, 1, 9, 0, 2)

    TS = RW(63, 0)


class _BranchInformation(BrbeRegister):
    """What is known of a record besides its addresses."""

    VALID = RW(1, 0)
    MPRED = RW(5)
    EL = RW(7, 6)  # the branch's target
    TYPE = RW(13, 8)
    CC = RW(45, 32)  # cycles since the record before: the mantissa's eight bits, and an exponent
    CCU = RW(46)  # those are not known


class BRBINFINJ_EL1(_BranchInformation):
    """Branch Record Buffer Information Injection Register."""

    encoding = SysReg(2, 1, 9, 1, 0)


class BRBSRCINJ_EL1(BrbeRegister):
    """Branch Record Buffer Source Address Injection Register."""

    encoding = SysReg(2, 1, 9, 1, 1)

    ADDRESS = RW(63, 0)


class BRBTGTINJ_EL1(BrbeRegister):
    """Branch Record Buffer Target Address Injection Register."""

    encoding = SysReg(2, 1, 9, 1, 2)

    ADDRESS = RW(63, 0)


class BRBIDR0_EL1(BrbeRegister):
    """Branch Record Buffer ID0 Register."""

    encoding = SysReg(2, 1, 9, 2, 0)

    NUMREC = RO(7, 0)  # how many records there are: 8, 16, 32 or 64
    FORMAT = RO(11, 8)
    CC = RO(15, 12)  # how long the counter of cycles is


def _encoding(kind: int, number: int) -> SysReg:
    """Of record `number` of the bank: its low four bits are CRm, the fifth is op2's highest."""
    return SysReg(2, 1, 8, number & 15, number >> 4 << 2 | kind)


class BRBINFn_EL1(BrbeRegister):
    """Branch Record Buffer Information Register <n>. Record 0 is the newest."""

    bank = Bank(BANK_RECORDS, "BRBINF{}_EL1", lambda n: _encoding(0, n))

    VALID = RO(1, 0)
    MPRED = RO(5)
    EL = RO(7, 6)
    TYPE = RO(13, 8)
    CC = RO(45, 32)
    CCU = RO(46)


class BRBSRCn_EL1(BrbeRegister):
    """Branch Record Buffer Source Address Register <n>: the branch's own."""

    bank = Bank(BANK_RECORDS, "BRBSRC{}_EL1", lambda n: _encoding(1, n))

    ADDRESS = RO(63, 0)


class BRBTGTn_EL1(BrbeRegister):
    """Branch Record Buffer Target Address Register <n>."""

    bank = Bank(BANK_RECORDS, "BRBTGT{}_EL1", lambda n: _encoding(2, n))

    ADDRESS = RO(63, 0)


class BRB_IALL(BrbeRegister):
    """The instruction that makes all records invalid: SYS #1, C7, C2, #4."""

    encoding = SysReg(1, 1, 7, 2, 4)


class BRB_INJ(BrbeRegister):
    """The instruction that makes a record of what BRBINFINJ_EL1, BRBSRCINJ_EL1 and BRBTGTINJ_EL1 hold: SYS #1, C7,
    C2, #5."""

    encoding = SysReg(1, 1, 7, 2, 5)


_MANTISSA_BITS = 8
_MANTISSA = (1 << _MANTISSA_BITS) - 1
COUNTER_BITS = 20  # of the counter of cycles
CC_20_BITS = 0b0101  # BRBIDR0_EL1.CC
_TOO_MANY = BRBINFn_EL1.CC.mask >> BRBINFn_EL1.CC.lo


def cycle_count(cycles: int) -> int:
    """So many as BRBINF<n>_EL1.CC has them: rounded down to what the mantissa can say, all ones beyond the counter."""
    if cycles >> COUNTER_BITS:
        return _TOO_MANY
    exponent = max(cycles.bit_length() - _MANTISSA_BITS, 0)
    return exponent << _MANTISSA_BITS | cycles >> max(exponent - 1, 0) & _MANTISSA


def cycles_of(count: int) -> int:
    """What BRBINF<n>_EL1.CC says, if that is not all ones."""
    exponent, mantissa = count >> _MANTISSA_BITS, count & _MANTISSA
    return (mantissa | 1 << _MANTISSA_BITS) << exponent - 1 if exponent else mantissa
