"""Code: what a random image for a pc executes, cut into slots, and values that are drawn for it."""

from __future__ import annotations

from random import Random

from emulator.board.pc.memory_map import IO_APIC, LOCAL_APIC, VIRTIO
from fuzz.boards.image import MEMORY_BYTES
from fuzz.boards.pc import x86
from fuzz.boards.pc.places import (
    ALIAS,
    BASE_OF_CODE,
    BASE_OF_DATA,
    BASE_OF_TABLES,
    BASES,
    CODE,
    DATA,
    END,
    GDT,
    IDT,
    KERNEL_CODE_32,
    KERNEL_DATA,
    SLOT,
    STRANGE,
    TABLES,
    TASKS,
    TRAMPOLINE,
    USER_CODE_32,
)

STACK = END - 0x200
WORD = 0xFFFF_FFFF


class Code:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.code = bytearray()

    def emit(self, *instructions: bytes) -> None:
        """None of them crosses a slot's end, but what is no instruction."""
        for instruction in instructions:
            left = -len(self.code) % SLOT
            if left and len(instruction) > left:
                self.code += x86.NOP * left
            self.code += instruction

    @property
    def slots(self) -> int:
        return len(self.code) // SLOT

    def jump_to(self, slot: int, condition: int | None = None, *, call: bool = False) -> None:
        self.emit(*[x86.NOP] * (-len(self.code) % SLOT))
        length = len(x86.jump(0, condition, call=call))
        self.emit(x86.jump(slot * SLOT - len(self.code) - length, condition, call=call))

    def near(self) -> int:
        """A slot ahead, or behind at times."""
        ahead = self.random.randrange(1, 30) if self.random.random() < 0.95 else -self.random.randrange(6)
        return max(self.slots + ahead, 0)

    def in_code(self) -> int:
        return CODE + SLOT * self.random.randrange(0x200)

    def address(self) -> int:
        random = self.random
        return random.choice(
            (
                self.in_code(), self.in_code() + ALIAS, DATA + random.randrange(0x8000), DATA + ALIAS + 0xFFC,
                TABLES + 8 * random.randrange(0xE00), LOCAL_APIC + 0x10 * random.randrange(0x40), IO_APIC + 0x10,
                VIRTIO + 4 * random.randrange(0x400), MEMORY_BYTES - 4, 0, 0xA_0000, 0xE_0000,
                random.choice((GDT, IDT + 0xE0, TASKS, DATA, DATA, DATA)), DATA + 0x1FFC,
                random.getrandbits(64), 1 << 63, 1 << 47, (1 << 47) - 4, (1 << 64) - 8, 0xFFF, 0xF_FFFF, TRAMPOLINE,
            )
        )  # fmt: skip

    def value(self) -> int:
        random = self.random
        return random.choice(
            (
                0, 1, random.getrandbits(64), random.getrandbits(32), 1 << random.randrange(64), (1 << 64) - 1, WORD,
                random.randrange(0x1000), random.randrange(0x40), self.address(), self.address(),
                -random.randrange(1, 200),
            )
        )  # fmt: skip

    def selector(self) -> int:
        return self.random.choice(
            (0, 3, KERNEL_DATA, USER_CODE_32, KERNEL_CODE_32, 0x38, STRANGE, STRANGE + 8, 0xFFF8, 0x14)
        )

    def bases(self) -> tuple[int, ...]:
        """Not devices, most of the time: few instructions are modelled there, and others end the CPU."""
        if self.random.random() < 0.02:
            return BASES
        return (BASE_OF_CODE, BASE_OF_TABLES, *[BASE_OF_DATA] * 8, x86.RSP, x86.RSP, self.random.randrange(8))
