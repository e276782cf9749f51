"""RandomImage: a bare-metal program that follows from its seed, and does to its board whatever can be done.

It is not noise alone: it has vectors that go on behind what has failed, page tables with aliases of its own code, and
registers that point at devices, tables, code and nothing, so that most of what it tries gets far.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

from emulator.board.virt_tree import GIC_DISTRIBUTOR, GIC_REDISTRIBUTORS, RAM_BASE, RTC, UART
from emulator.board.virtio.slots import FIRST_SLOT, SLOT_BYTES
from emulator.sysregs import SysReg
from fuzz.boards import a64
from fuzz.boards.registers import (
    CPACR,
    DEBUG,
    ELR,
    GIC,
    ICC_IGRPEN1,
    ICC_PMR,
    MDSCR,
    OTHERS,
    PMU,
    SCTLR,
    SPSR,
    STEERING,
    TCR,
    TIMERS,
    TTBR0,
    TTBR1,
    VBAR,
)  # fmt: skip
from fuzz.boards.vectors import TURNS, vectors
from fuzz.boards.virtio import driver_writes

START = RAM_BASE + 0x8_0000
CODE_WORDS = 0x4000
VECTORS, TABLES, DATA = START + 0x1_0000, START + 0x2_0000, START + 0x4_0000
END = DATA + 0x1_0000
ALIAS = 0x4000_0000  # from RAM on: the same again, in the next GiB of addresses
UPPER = 0xFFFF_FF80_0000_0000  # with T1SZ 25 the same tables
MEMORY_BYTES = 16 << 20
CPUS_AT = 0xC400_0003  # PSCI's CPU_ON
CALLS = (
    0x8400_0000,
    0x8400_0001,
    0x8400_0002,
    0xC400_0003,
    0xC400_0004,
    0x8400_0006,
    0x8400_000A,
    0x8000_0000,
    0x8000_0001,
)
# In these registers images keep where things are
BASE_OF_CODE, BASE_OF_UART, BASE_OF_GICD, BASE_OF_GICR, BASE_OF_DATA, BASE_OF_ALIAS, BASE_OF_TABLES, BASE_OF_SLOT = (
    range(19, 27)
)
SOMEWHERE = 27
NORMAL_SCTLR, NORMAL_TCR = 0x30D0_1805, 25 | 25 << 16 | 0b10 << 30 | 5 << 32
PAGE, TABLE, BLOCK, USER, READ_ONLY, PXN, UXN = 0x703, 3, 0x701, 1 << 6, 1 << 7, 1 << 53, 1 << 54


class RandomImage:
    """A flat image."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"image {seed}")
        self._words: list[int] = []

    def bytes(self) -> bytes:
        self._prologue()
        while len(self._words) < CODE_WORDS - 64:
            if len(self._words) > 2100 and self.random.random() < 0.02:
                break
            for word in self.random.choices(_PARTS, _WEIGHTS)[0](self):
                self._words.append(word & a64.WORD)
        self._words += [*a64.move(0, 0x8400_0008), a64.HVC] if self.random.random() < 0.5 else [a64.branch(-500)]
        image = bytearray(END - START)
        for place, words in ((START, self._words), (VECTORS, vectors(self.random, START))):
            struct.pack_into(f"<{len(words)}I", image, place - START, *words)
        for place, quads in self._tables():
            struct.pack_into(f"<{len(quads)}Q", image, place - START, *quads)
        image[DATA - START :] = self.random.randbytes(END - DATA)
        return bytes(image)

    # ---- what there is from the beginning

    def _prologue(self) -> None:
        random, words = self.random, self._words
        places = (START, UART, GIC_DISTRIBUTOR, GIC_REDISTRIBUTORS + 0x1_0000, DATA, START + ALIAS, TABLES)
        for register, place in zip(range(BASE_OF_CODE, BASE_OF_SLOT), places, strict=True):
            words += a64.move(register, place)
        words += a64.move(BASE_OF_SLOT, FIRST_SLOT + SLOT_BYTES * random.choice((0, 1, 2, 3, 31)))
        words += a64.move(SOMEWHERE, self._address()) + a64.move(TURNS, 0)
        words += [*a64.move(0, VECTORS), a64.msr(VBAR, 0), *a64.move(0, 3 << 20), a64.msr(CPACR, 0)]
        words += [0x9140_401F | BASE_OF_DATA << 5]  # add sp, data, #16 << 12
        words += [*a64.move(0, TABLES), a64.msr(TTBR0, 0), a64.msr(TTBR1, 0), *a64.move(0, NORMAL_TCR), a64.msr(TCR, 0)]
        if random.random() < 0.75:
            words += [*a64.move(0, NORMAL_SCTLR | random.choice((0, 0, 1 << 1))), a64.ISB, a64.msr(SCTLR, 0), a64.ISB]
        if random.random() < 0.7:
            words += [*a64.move(0, 1), a64.msr(ICC_IGRPEN1, 0), *a64.move(0, 0xF0), a64.msr(ICC_PMR, 0)]
            words += [*a64.move(1, GIC_DISTRIBUTOR), *a64.move(0, 2), _store_word(0, 1, 0), *a64.move(0, a64.WORD)]
            words += [_store_word(0, BASE_OF_GICR, offset) for offset in (0x80, 0x100)]
        words += [a64.clear_masks(random.choice((0xF, 2, 8, 0)))]

    def _tables(self) -> list[tuple[int, list[int]]]:
        """Level 1; level 2 of RAM and of its alias; level 3 of the first 2 MiB of both, and one of nonsense."""
        random, level2 = self.random, TABLES + 0x1000
        first = [0] * 512
        first[0] = BLOCK | UXN | random.choice((PXN, 0)) | random.choice((0, USER))
        first[1], first[2] = level2 | TABLE, level2 + 0x1000 | TABLE | random.choice((0, 1 << 60))
        first[3], first[4] = TABLES | TABLE, random.getrandbits(64)
        tables = [(TABLES, first)]
        for half, extra in ((0, random.choice((0, 0, USER | READ_ONLY))), (1, random.choice((0, UXN | PXN, USER)))):
            last = level2 + 0x2000 + 0x1000 * half
            second = [last | TABLE] + [RAM_BASE + (n << 21) | BLOCK for n in range(1, 4)]
            pages = [RAM_BASE + (n << 12) | PAGE | (extra if n < 0x100 else 0) for n in range(512)]
            for _ in range(random.randrange(12)):
                pages[random.randrange(0xA0, 512)] = random.choice((0, random.getrandbits(64), RAM_BASE | PAGE, 0x303))
            tables += [(level2 + 0x1000 * half, second), (last, pages)]
        return tables

    # ---- values

    def _address(self) -> int:
        random = self.random
        return random.choice(
            (
                UART + 4 * random.randrange(32), RTC + 4 * random.randrange(8),
                GIC_DISTRIBUTOR + 4 * random.randrange(0x400),
                GIC_REDISTRIBUTORS + 4 * random.randrange(0x8000), START + 4 * random.randrange(0x4000), START + ALIAS,
                DATA + random.randrange(0x1_0000), TABLES + 8 * random.randrange(0xA00), RAM_BASE + MEMORY_BYTES - 4, 0,
                UPPER + RAM_BASE + 0x8_0000, DATA + 0xFFF, DATA + ALIAS + 0xFFC, 0xB00_0000, random.getrandbits(64),
                FIRST_SLOT + 4 * random.randrange(0x1000), START + 2, 1 << 63, 1 << 48, (1 << 64) - 8, 0xC000_0000,
            )
        )  # fmt: skip

    def _value(self) -> int:
        random = self.random
        return random.choice(
            (
                0, 1, 2, 3, random.getrandbits(64), random.getrandbits(32), 1 << random.randrange(64), (1 << 64) - 1,
                a64.WORD, random.randrange(0x1000), self._address(), self._address(),
                -random.randrange(1, 200) & a64.WORD,
            )
        )  # fmt: skip

    def _value_for(self, register: SysReg) -> int:
        """One that means something there, most of the time."""
        random = self.random
        if random.random() < 0.2:
            return self._value()
        usual = {
            SCTLR: lambda: (
                NORMAL_SCTLR ^ random.choice((0, 1, 2, 8, 16, 1 << 19, 1 << 24, 1 << 14, 1 << random.randrange(64)))
            ),
            TCR: lambda: NORMAL_TCR ^ random.choice((0, 0, 1 << 37, 1 << 7, 1 << 23, 4, 1 << random.randrange(50))),
            TTBR0: lambda: TABLES + random.choice((0, 0, 0, 0x1000, random.getrandbits(16) << 48, 8)),
            TTBR1: lambda: TABLES + random.choice((0, 0, 0x1000)),
            SPSR: lambda: random.choice(
                (0, 5, 4, 0x3C5, 0x3C0, 1 << 21, 1 << 21 | 5, 1 << 20, 9, 0xD, 0x10, random.getrandbits(32))
            ),
            ELR: lambda: START + 4 * random.randrange(0x600),
            VBAR: lambda: random.choice((VECTORS, VECTORS, VECTORS, VECTORS + UPPER, START, self._address())),
            MDSCR: lambda: random.choice((0, 1, 1 << 15, 1 << 15 | 1 << 13, 1 | 1 << 13, 1 | 1 << 13 | 1 << 15)),
            CPACR: lambda: random.choice((3 << 20, 0, 1 << 20)),
        }.get(register)
        if usual is not None:
            return usual()
        if register.op0 == 2:
            return random.choice((START + 4 * random.randrange(0x600), DATA, 0x1E7, 0x1FF, 0x1FE7, 0, self._value()))
        if register in PMU:
            return random.choice(
                (1, 0x41, 7, 8, 0x11, 0x13, 0x1E, 0x8000_003F, 0xFFFF_FFF0, a64.WORD - random.randrange(500))
            )
        return random.choice((random.randrange(0x200), 1, 3, self._value()))

    # ---- pieces of code

    def _target(self) -> int:
        return self.random.choice((*range(16), 18, 29, 30, 31))

    def _base(self) -> int:
        return self.random.choice(
            (*range(BASE_OF_CODE, TURNS), BASE_OF_DATA, BASE_OF_DATA, 31, self.random.randrange(16))
        )

    def noise(self) -> list[int]:
        return [self.random.getrandbits(32)]

    def operation(self) -> list[int]:
        word = a64.drawn(self.random, a64.OPERATIONS, self._target(), self.random.randrange(16))
        return [word | self.random.randrange(16) << 16 if not word & 0x1F << 16 else word]

    def constant(self) -> list[int]:
        return a64.move(self.random.choice((*range(16), SOMEWHERE)), self._value())

    def access(self) -> list[int]:
        return [a64.drawn(self.random, a64.ACCESSES, self._target() & 15, self._base())]

    def move_base(self) -> list[int]:
        """A base somewhere else in its device, or what it was."""
        base = self.random.choice([each for each in range(BASE_OF_UART, TURNS) if each != BASE_OF_ALIAS])
        if self.random.random() < 0.3:
            return a64.move(base, self._address())
        return [0x9100_0000 | self.random.choice((4, 8, 0x10, 0x40, 0x80, 0x100)) << 10 | base << 5 | base]

    def read_register(self) -> list[int]:
        return [a64.mrs(self._target() & 15, self._some_register())]

    def write_register(self) -> list[int]:
        return self._write(self._some_register())

    def _write(self, register: SysReg) -> list[int]:
        number = self.random.randrange(16)
        isb = [a64.ISB] if self.random.random() < 0.3 else []
        return [*a64.move(number, self._value_for(register)), a64.msr(register, number), *isb]

    def _some_register(self) -> SysReg:
        random = self.random
        if random.random() < 0.05:
            return a64.random_register(random)
        return random.choice(random.choice((STEERING, PMU, PMU, TIMERS, DEBUG, GIC, OTHERS)))

    def masks(self) -> list[int]:
        how = a64.set_masks if self.random.random() < 0.4 else a64.clear_masks
        return [
            how(self.random.randrange(16)),
            *([0xD500_40BF | self.random.randrange(2) << 8] if self.random.random() < 0.1 else []),
        ]

    def maintain(self) -> list[int]:
        random = self.random
        word = random.choice(
            (random.choice(a64.TLBI), random.choice(a64.AT), random.choice(a64.DC), a64.IC_IVAU, a64.IC_IALLU)
        )
        return [word if word & 31 else word | self._base(), random.choice((a64.DSB, a64.ISB, a64.CLREX))]

    def wait(self) -> list[int]:
        timer = [*a64.move(0, self.random.randrange(200)), a64.msr(SysReg(3, 3, 14, 3, 0), 0)]
        timer += [*a64.move(0, 1), a64.msr(SysReg(3, 3, 14, 3, 1), 0)]
        return (timer if self.random.random() < 0.7 else []) + [
            self.random.choice((a64.WFI, a64.WFE, a64.SEV, a64.SEVL))
        ]

    def call(self) -> list[int]:
        random = self.random
        words = a64.move(0, random.choice((*CALLS, random.getrandbits(32))))
        for register in (1, 2, 3):
            words += a64.move(register, random.choice((0, 1, 2, 3, START + 4 * random.randrange(0x400), self._value())))
        return [*words, random.choice((a64.HVC, a64.SMC))]

    def turn_on(self) -> list[int]:
        entry = START + 4 * self.random.randrange(0x400) if self.random.random() < 0.5 else START
        words = a64.move(0, CPUS_AT) + a64.move(1, self.random.randrange(4)) + a64.move(2, entry)
        return [*words, *a64.move(3, self._value()), a64.HVC]

    def host_call(self) -> list[int]:
        """Semihosting, with its block in the data."""
        words = a64.move(0, self.random.choice((*range(1, 0x17), 0x30, 0x31, self.random.randrange(256))))
        for place in range(4):
            words += [
                *a64.move(2, self.random.choice((self._value(), DATA + 64, 8, 1))),
                0xF900_0000 | place << 10 | BASE_OF_DATA << 5 | 2,
            ]
        return [*words, 0xAA00_03E1 | BASE_OF_DATA << 16, a64.SEMIHOSTING]

    def exception(self) -> list[int]:
        return [self.random.choice(a64.EXCEPTION_OR_NOT) | self.random.choice((0, 1, 0xFFFF)) << 5]

    def jump(self) -> list[int]:
        random, near, ahead = self.random, self.random.randrange(-12, 60), self.random.randrange(1, 60)
        register = random.randrange(31)
        return [
            random.choice(
                (
                    a64.branch(ahead), a64.branch_if(random.randrange(16), near), 0x9400_0000 | ahead, a64.RET,
                    a64.compare_and_branch(register, near, if_zero=random.random() < 0.5), 0xD61F_0000 | register << 5,
                    0x3600_0000 | random.getrandbits(1) << 24 | (near & 0x3FFF) << 5 | register,  # tbz, tbnz of bit 0
                )
            )
        ]  # fmt: skip

    def loop(self) -> list[int]:
        body = [word for _ in range(self.random.randrange(1, 6)) for word in self.random.choice(_PLAIN)(self)]
        return [*a64.move(29, self.random.randrange(2, 60)), *body, 0xF100_07BD, a64.branch_if(1, -len(body) - 1)]

    def leave(self) -> list[int]:
        """ERET, with whatever state."""
        return [*self._write(SPSR), *self._write(ELR), a64.ERET]

    def rewrite(self) -> list[int]:
        """Code ahead or behind, through one of its addresses, with or without what the architecture asks for then. But
        for ISB: without that an instruction may be the old or the new, and which of them depends on who watches."""
        random = self.random
        cares = [a64.DC_CVAU | 2, a64.DSB, a64.IC_IVAU | 2, a64.DSB]
        cares = [*(cares if random.random() < 0.5 else cares[: random.randrange(3)]), a64.ISB]
        base = random.choice((BASE_OF_CODE, BASE_OF_ALIAS, BASE_OF_ALIAS))
        new = random.choice(
            (a64.NOP, a64.BRK, a64.WFI, 0x9100_0400, random.getrandbits(32), a64.branch(random.randrange(1, 9)))
        )
        longest = 16  # of what is returned
        here = len(self._words)
        at = here + longest + random.randrange(30) if random.random() < 0.6 else here - random.randrange(1, 40)
        words = [*a64.move(1, new), *a64.move(2, 4 * at), 0xB822_6801 | base << 5, 0x8B02_0002 | base << 5, *cares]
        assert len(words) <= longest
        return words

    def remap(self) -> list[int]:
        """An entry of the tables."""
        random = self.random
        entry = random.choice(
            (
                random.randrange(5),
                0x1000 // 8 + random.randrange(4),
                0x2000 // 8 + random.randrange(4),
                *(0x3000 // 8 + 0x80 + random.randrange(0x100) for _ in range(9)),
                *(0x4000 // 8 + random.randrange(512) for _ in range(9)),
            )
        )
        what = (
            0,
            RAM_BASE + (random.randrange(0x800) << 12) | PAGE | random.choice((0, USER, READ_ONLY, UXN | PXN)),
            random.getrandbits(64),
        )
        words = [*a64.move(1, random.choice(what)), *a64.move(2, 8 * entry), 0xF822_6801 | BASE_OF_TABLES << 5]
        return words + ([a64.DSB, a64.TLBI[0], a64.DSB, a64.ISB] if random.random() < 0.7 else [])

    def drive(self) -> list[int]:
        """Registers of a virtio slot in an order that drivers have, or not; the queue is in the data."""
        places = (DATA, DATA + 0x1000, DATA + 0x2000, TABLES, 0, RAM_BASE + MEMORY_BYTES - 16)
        writes = driver_writes(self.random, places)
        return [
            word for register, value in writes for word in (*a64.move(1, value), _store_word(1, BASE_OF_SLOT, register))
        ]


def _store_word(register: int, base: int, offset: int) -> int:
    return 0xB900_0000 | offset // 4 << 10 | base << 5 | register


_TABLE: dict[Callable[[RandomImage], list[int]], float] = {
    RandomImage.noise: 4, RandomImage.operation: 10, RandomImage.constant: 6, RandomImage.access: 14,
    RandomImage.move_base: 2, RandomImage.read_register: 6, RandomImage.write_register: 8, RandomImage.masks: 2,
    RandomImage.maintain: 4, RandomImage.wait: 1, RandomImage.call: 1.5, RandomImage.turn_on: 0.6,
    RandomImage.host_call: 0.8, RandomImage.exception: 2, RandomImage.jump: 4, RandomImage.loop: 3,
    RandomImage.leave: 1.2, RandomImage.rewrite: 2.5, RandomImage.remap: 1.5, RandomImage.drive: 0.4,
}  # fmt: skip
_PARTS, _WEIGHTS = list(_TABLE), list(_TABLE.values())
_PLAIN = (RandomImage.operation, RandomImage.access, RandomImage.constant, RandomImage.read_register, RandomImage.noise)
