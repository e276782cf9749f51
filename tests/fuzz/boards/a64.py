"""A64 as words: the instructions that a random image is made of. Encodings: Arm ARM DDI 0487, chapter C6."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from emulator.sysregs import SysReg

WORD = 0xFFFF_FFFF
ERET, RET, ISB, DSB, CLREX = 0xD69F_03E0, 0xD65F_03C0, 0xD503_3FDF, 0xD503_3F9F, 0xD503_3F5F
NOP, WFE, WFI, SEV, SEVL = 0xD503_201F, 0xD503_205F, 0xD503_207F, 0xD503_209F, 0xD503_20BF
SVC, HVC, SMC, BRK, HLT = 0xD400_0001, 0xD400_0002, 0xD400_0003, 0xD420_0000, 0xD440_0000
SEMIHOSTING = HLT | 0xF000 << 5
DC_CVAU, DC_CIVAC, DC_ZVA, IC_IVAU, IC_IALLU = 0xD50B_7B20, 0xD50B_7E20, 0xD50B_7420, 0xD50B_7520, 0xD508_751F
# TLBI of all, by address and by ASID, here and everywhere; AT of the stages that there are; with a register
TLBI = (0xD508_871F, 0xD508_831F, 0xD508_8720, 0xD508_8320, 0xD508_8740, 0xD508_8360, 0xD508_87A0)
AT = (0xD508_7800, 0xD508_7820, 0xD508_7840, 0xD508_7860)
DC = (DC_CVAU, DC_CIVAC, DC_ZVA, 0xD508_7620, 0xD508_7640, 0xD50B_7A20)
EXCEPTION_OR_NOT = (SVC, HVC, SMC, BRK, HLT, 0xD4A0_0001)
# Loads and stores with Rn at 5 and Rt at 0; what else may be drawn, by mask. Some are of features that cores lack.
ACCESSES: Sequence[tuple[int, int]] = (
    (0xF940_0000, 0x3 << 10), (0xF900_0000, 0x3 << 10), (0xB940_0000, 0x7 << 10), (0xB900_0000, 0x7 << 10),
    (0x3940_0000, 0xFF << 10), (0x3900_0000, 0xFF << 10), (0x7940_0000, 0x1F << 10), (0x7900_0000, 0x1F << 10),
    (0xB980_0000, 0), (0x3980_0000, 0xF << 10), (0xA940_0000, 0x1F << 10), (0xA900_0000, 0x1F << 10),
    (0xF840_0400, 0x1FF << 12), (0xF800_0C00, 0x1FF << 12), (0xF840_0800, 0x1FF << 12), (0xB800_0800, 0x1FF << 12),
    (0xC85F_7C00, 1 << 15), (0xC800_7C00, 0x1F << 16 | 1 << 15), (0x885F_7C00, 0), (0x8800_7C00, 0x1F << 16),
    (0xC87F_0000, 0x1F << 10), (0xC820_0000, 0x1F << 16 | 0x1F << 10), (0xC8DF_FC00, 0), (0xC89F_FC00, 0),
    (0xF820_0000, 0x1F << 16 | 0x7 << 12), (0xC8A0_7C00, 0x1F << 16), (0x3DC0_0000, 0xF << 10),
    (0x3D80_0000, 0xF << 10),
    (0x4C40_7000, 0x3 << 10), (0x4C00_2000, 0x3 << 10), (0x0D40_8000, 0x1 << 12), (0xAD40_0000, 0x1F << 10),
    (0xF980_0000, 0x1F), (0xF860_6800, 0x1F << 16 | 1 << 12), (0xF820_6800, 0x1F << 16),
)  # fmt: skip
# Of registers alone: the same, with Rm at 16
OPERATIONS: Sequence[tuple[int, int]] = (
    (0x8B00_0000, 0x60C0_0000), (0xCA00_0000, 0x6080_0000), (0x9AC0_0800, 0x400), (0x9B00_0000, 0xFC00),
    (0x9100_0000, 0x603F_FC00), (0x9A80_0000, 0x4000_F400), (0xDAC0_0000, 0x1C00), (0x1E60_0800, 0xF000),
    (0x4E20_8400, 0x20C0_0000), (0x9340_0000, 0x603F_FC00), (0xB200_0000, 0x6000_FC00), (0x1E62_0000, 0x801F_0000),
)  # fmt: skip


def move(register: int, value: int) -> list[int]:
    """MOVZ, MOVK: as many as there are 16 bits that are not 0."""
    parts = [(part, value >> 16 * part & 0xFFFF) for part in range(4)]
    wanted = [(part, bits) for part, bits in parts if bits] or [(0, 0)]
    return [
        (0xF280_0000 if number else 0xD280_0000) | part << 21 | bits << 5 | register
        for number, (part, bits) in enumerate(wanted)
    ]


def mrs(register: int, which: SysReg) -> int:
    return 0xD520_0000 | which.encoding << 5 | register


def msr(which: SysReg, register: int) -> int:
    return 0xD500_0000 | which.encoding << 5 | register


def set_masks(bits: int) -> int:
    """MSR DAIFSet."""
    return 0xD503_40DF | bits << 8


def clear_masks(bits: int) -> int:
    return 0xD503_40FF | bits << 8


def branch(words: int) -> int:
    return 0x1400_0000 | words & 0x3FF_FFFF


def branch_if(condition: int, words: int) -> int:
    return 0x5400_0000 | (words & 0x7_FFFF) << 5 | condition


def compare_and_branch(register: int, words: int, *, if_zero: bool) -> int:
    return (0xB400_0000 if if_zero else 0xB500_0000) | (words & 0x7_FFFF) << 5 | register


def drawn(random: Random, table: Sequence[tuple[int, int]], target: int, base: int) -> int:
    """One of the table."""
    word, free = random.choice(table)
    return word | random.getrandbits(32) & free | base << 5 | target


def random_register(random: Random) -> SysReg:
    return SysReg(random.choice((2, 3, 3, 3)), *(random.randrange(1 << bits) for bits in (3, 4, 4, 3)))
