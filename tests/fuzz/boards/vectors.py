"""Vectors of random images: what goes on behind an exception, so that most of what comes behind gets its turn."""

from __future__ import annotations

from random import Random

from emulator.sysregs import SysReg
from fuzz.boards import a64
from fuzz.boards.registers import ELR, ESR, ICC_EOIR1, ICC_IAR1, SPSR

TURNS = 28  # a register that counts how often there was no going on


def vectors(random: Random, start: int) -> list[int]:
    """Sixteen of 32 instructions. `start`: of the code."""
    table: list[int] = []
    for entry in range(16):
        if random.random() < 0.06:
            words = [random.getrandbits(32) for _ in range(32)]
        elif entry % 4:
            words = [a64.mrs(16, ICC_IAR1), a64.msr(ICC_EOIR1, 16), *_quieten(random), a64.ERET]
        else:
            words = _go_on(random, start)
        table += [*words, *[a64.NOP] * 32][:32]
    return table


def _quieten(random: Random) -> list[int]:
    """So that interrupts do not come for ever."""
    clears = [*a64.move(16, a64.WORD), a64.msr(SysReg(3, 3, 9, 12, 3), 16)]
    timers = [*a64.move(16, 0x400), a64.msr(SysReg(3, 3, 14, 3, 0), 16), a64.msr(SysReg(3, 3, 14, 2, 0), 16)]
    return clears + timers if random.random() < 0.9 else []


def _go_on(random: Random, start: int) -> list[int]:
    """Behind what has failed, unless that was an SVC; somewhere in the code, if there is no going on."""
    behind = [a64.mrs(17, ELR), 0x9100_1231, a64.msr(ELR, 17), a64.ERET]  # add x17, x17, #4
    elsewhere = [
        0x9100_0400 | TURNS << 5 | TURNS,  # add turns, turns, #1
        0xD340_0000 | 57 << 16 | 56 << 10 | TURNS << 5 | 16,  # lsl x16, turns, #7
        0x8B1C_0200 | 16 << 5 | 16,  # add x16, x16, turns
        0x927C_2210,  # and x16, x16, #0x1ff0
        *a64.move(17, start),
        0x8B10_0231,  # add x17, x17, x16
        a64.msr(ELR, 17),
        *a64.move(16, random.choice((0x3C5, 0x5, 0x0, 0x3C0, 0x4))),
        a64.msr(SPSR, 16),
        a64.ERET,
    ]
    of_class = [a64.mrs(16, ESR), 0xD35A_FE10, 0x927F_1210]  # lsr x16, x16, #26; and x16, x16, #0x3e
    checks = []
    for number in (0x20, 0x22, 0x0E):
        checks += [0xF100_021F | number << 10, None]  # cmp x16, #number; b.eq elsewhere
    checks += [0xF100_021F | 0x14 << 10, a64.branch_if(1, 2), a64.ERET]  # an SVC is behind already
    words = [*of_class, *checks, *behind, *elsewhere]
    target = len(of_class) + len(checks) + len(behind)
    return [a64.branch_if(0, target - at) if word is None else word for at, word in enumerate(words)]
