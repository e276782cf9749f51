"""Random AArch64 code: arithmetic of every kind, accesses at what it computes. Encodings: Arm ARM DDI 0487, C4.1.

X0..X15 are computed with. X20 is where memory is accessed: DATA plus a multiple of 8 out of some register.
"""

from __future__ import annotations

import struct
from random import Random

COMPUTED = [*range(16), 31]
INDEX, ADDRESS, BASE = 21, 20, 19
VECTORS = 8
NEXT_BRANCH, NEXT_IF = 0x1400_0001, 0x5400_0020
SVC = 0xD400_0001


class RandomCode:
    """One program: `code` of about 60 stretches, each some arithmetic and mostly an access."""

    def __init__(self, seed: int, data: int) -> None:
        self.random = Random(seed)
        self.words: list[int] = []
        for register in range(16):
            self.load_immediate(register, self.random.getrandbits(64))
        self.load_immediate(BASE, data)
        for _ in range(60):
            self.words += [self.arithmetic() for _ in range(self.random.randrange(6))]
            if self.random.random() < 0.6:
                self.words += self.access()
            if self.random.random() < 0.25:
                self.words.append(NEXT_BRANCH)
            if self.random.random() < 0.1:
                self.words.append(NEXT_IF | self.random.randrange(14))
        self.words.append(SVC)

    @property
    def code(self) -> bytes:
        return struct.pack(f"<{len(self.words)}I", *self.words)

    def load_immediate(self, register: int, value: int) -> None:
        for half in range(4):
            opcode = 0xF280_0000 if half else 0xD280_0000  # MOVK, MOVZ
            self.words.append(opcode | half << 21 | (value >> 16 * half & 0xFFFF) << 5 | register)

    def bits(self, count: int, position: int = 0) -> int:
        return self.random.getrandbits(count) << position

    def register(self, position: int = 0, stack: bool = True) -> int:
        """A field's value; `stack`: 31 is the zero register there, not SP, which is to stay."""
        return self.random.choice(COMPUTED if stack else COMPUTED[:-1]) << position

    def arithmetic(self) -> int:
        wide = self.random.getrandbits(1)
        width, bits = wide << 31, 6 if wide else 5
        rd, rn, rm, ra = self.register(), self.register(5), self.register(16), self.register(10)
        rd_not_stack, rn_not_stack = self.register(stack=False), self.register(5, stack=False)
        three, choice = width | rd | rn | rm, self.random.choice
        return choice(
            [
                0x0B00_0000 | three | self.bits(2, 29) | choice([0, 1, 2]) << 22 | self.bits(bits, 10),  # ADD, SUB
                0x0B20_0000
                | width
                | rd_not_stack
                | rn_not_stack
                | rm
                | self.bits(2, 29)
                | self.bits(3, 13)
                | choice(range(5)) << 10,  # ... extended
                0x0A00_0000 | three | self.bits(2, 29) | self.bits(3, 21) | self.bits(bits, 10),  # AND ... BICS
                0x1100_0000 | width | rd_not_stack | rn_not_stack | self.bits(2, 29) | self.bits(13, 10),  # ADD, SUB #
                0x1200_0000 | width | rd_not_stack | rn | self.bits(2, 29) | self.logical_immediate(wide),
                0x1280_0000 | width | rd | choice([0, 2, 3]) << 29 | self.bits(1 + wide, 21) | self.bits(16, 5),  # MOV*
                0x1300_0000
                | width
                | wide << 22
                | rd
                | rn
                | choice([0, 1, 2]) << 29
                | self.bits(bits, 16)
                | self.bits(bits, 10),  # SBFM, BFM, UBFM
                0x1380_0000 | width | wide << 22 | rd | rn | choice([rm, rn << 11]) | self.bits(bits, 10),  # EXTR
                0x1A80_0000 | three | self.bits(1, 30) | self.bits(1, 10) | self.bits(4, 12),  # CSEL ...
                0x1AC0_0000 | three | choice([2, 3, 8, 9, 10, 11]) << 10,  # UDIV, SDIV, shifts
                0x5AC0_0000 | width | rd | rn | choice([0, 1, 2, 4, 5] + [3] * wide) << 10,  # RBIT, REV*, CLZ, CLS
                0x1B00_0000 | three | ra | self.bits(1, 15),  # MADD, MSUB
                0x9B00_0000 | rd | rn | rm | ra | self.bits(1, 15) | choice([1, 5]) << 21,  # SMADDL ...
                0x9B00_7C00 | rd | rn | rm | choice([2, 6]) << 21,  # SMULH, UMULH
                0x1000_0000 | self.bits(1, 31) | self.bits(2, 29) | self.bits(19, 5) | rd,  # ADR, ADRP
                0x1A00_0000 | three | self.bits(2, 29),  # ADC, SBC
                0x1A40_0000 | width | rn | rm | self.bits(1, 30) | 1 << 29 | self.bits(4, 12) | self.bits(4),  # CCMP
                0xD53B_D040 | rd,  # MRS TPIDR_EL0
                0xD51B_D040 | rd,  # MSR TPIDR_EL0
                0x9E67_0000 | rn | choice(range(VECTORS)),  # FMOV Dd, Xn
                0x9E66_0000 | choice(range(VECTORS)) << 5 | rd,  # FMOV Xd, Dn
                0x9E62_0000 | rn | choice(range(VECTORS)),  # SCVTF Dd, Xn
            ]
        )

    def logical_immediate(self, wide: int) -> int:
        while True:
            n, imms = self.random.getrandbits(1) & wide, self.random.getrandbits(6)
            pattern = n << 6 | ~imms & 0x3F
            size = 1 << (pattern.bit_length() - 1) if pattern > 1 else 0
            if size and imms & (size - 1) != size - 1:
                return n << 22 | self.bits(6, 16) | imms << 10

    def access(self) -> list[int]:
        choice = self.random.choice
        address = ADDRESS << 5
        rt, rt2, other = (choice(range(16)) for _ in range(3))
        if rt2 == rt:
            rt2 = (rt + 1) % 16
        size, load = self.bits(2, 30), self.bits(1, 22)
        vector, vector2 = choice(range(VECTORS)), choice(range(VECTORS)) << 10
        set_address = [0x927D_2C00 | ADDRESS | choice(range(16)) << 5, 0x8B00_0000 | ADDRESS | address | BASE << 16]
        structures = [0, 2, 4, 6, 7, 8, 10]
        return set_address + choice(
            [
                [0x3900_0000 | size | load | self.bits(4, 10) | address | rt],  # LDR, STR
                [choice([0xA900_0000, 0x2900_0000]) | load | self.bits(3, 15) | rt2 << 10 | address | rt],  # LDP, STP
                [0x3800_0400 | size | load | self.bits(1, 11) | self.bits(8, 12) | address | rt],  # write-back
                [0x3800_0000 | size | load | self.bits(8, 12) | address | rt],  # LDUR, STUR
                [  # AND x21, other, #0xff; then with an index
                    0x9240_1C00 | INDEX | other << 5,
                    0x3820_0800
                    | size
                    | load
                    | choice([2, 3, 6, 7]) << 13
                    | self.bits(1, 12)
                    | INDEX << 16
                    | address
                    | rt,
                ],
                [0xC85F_7C00 | address | rt, 0xC800_7C00 | INDEX << 16 | address | rt2],  # LDXR, STXR
                [0x3DC0_0000 | self.bits(4, 10) | address | vector],  # LDR Qt
                [0xAD00_0000 | load | self.bits(3, 15) | vector2 | address | vector],  # LDP, STP of Qt
                [
                    0x0C00_0000
                    | self.bits(1, 30)
                    | load
                    | choice(structures) << 12
                    | choice([0, 1, 2]) << 10
                    | address
                    | vector
                ],
                [
                    0x0D40_0000 | self.bits(1, 30) | choice([0xC000, 0x8400, 0x8000, 0, 0x4000]) | address | vector
                ],  # LD1, LD1R
                [0xD50B_7420 | ADDRESS],  # DC ZVA
                [
                    choice([0xB980_0000, 0x3980_0000, 0x39C0_0000, 0x7980_0000, 0x79C0_0000])
                    | self.bits(4, 10)
                    | address
                    | rt
                ],
                [  # STP to and LDP from the stack, a store and a load between
                    0xA9BE_7BFD,
                    0xF900_03E0 | rt | 1 << 10,
                    0xF940_03E0 | other | self.bits(2, 10),
                    0xA8C2_7BFD,
                ],
                [0xC89F_FC00 | address | rt, 0xC8DF_FC00 | address | rt2],  # STLR, LDAR
            ]
        )
