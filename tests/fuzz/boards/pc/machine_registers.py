"""MSRs and ports that random images for a pc reach, and values that mean something there."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from fuzz.boards.pc.places import CODE, DATA

EFER, LSTAR, CSTAR, TSC_DEADLINE, APIC_BASE = 0xC000_0080, 0xC000_0082, 0xC000_0083, 0x6E0, 0x1B
SELECTS = (*range(0x186, 0x18A), *range(0xC001_0200, 0xC001_020C, 2), *range(0xC001_0000, 0xC001_0004))
COUNTERS = (*range(0xC1, 0xC5), *range(0x4C1, 0x4C3), *range(0x309, 0x30C), *range(0xC001_0201, 0xC001_020D, 2))
CONTROLS = (0x38D, 0x38E, 0x38F, 0x390, 0x391, 0x392, 0x345, 0xC000_0300, 0xC000_0301, 0xC000_0302)
CALLS = (0x174, 0x175, 0x176, 0xC000_0081, LSTAR, CSTAR, 0xC000_0084, *range(0xC000_0100, 0xC000_0104))
OTHERS = (0x10, APIC_BASE, 0x8B, 0xFE, 0x200, 0x250, 0x277, 0x2FF, 0x1A0, 0x1D9, 0x3B, TSC_DEADLINE, 0xC001_0015, 0x3F1)
KINDS = (SELECTS, SELECTS, COUNTERS, COUNTERS, CONTROLS, CONTROLS, CALLS, OTHERS, (EFER, TSC_DEADLINE, TSC_DEADLINE))
EVENTS = (0x3C, 0xC0, 0x76, 0xC4, 0xC5, 0x13C, 0xC2, 0xD0, 0x81D0, 0x412E)

PORTS = (
    *range(0x40, 0x44), 0x61, 0x20, 0x21, 0xA0, 0xA1, 0x4D0, 0x4D1, *range(0x3F8, 0x400), 0x3F8, 0x3F8, 0x70, 0x71,
    0x71, 0x64, 0x510, 0x511, 0x514, 0x600, 0x604, 0x608, 0xCF8, 0xCFC, 0x60, 0x80, 0x3D4, 0x1234, 0xFFFF, 0xFFFE,
)  # fmt: skip


def msr(random: Random) -> int:
    return random.getrandbits(32) if random.random() < 0.05 else random.choice(random.choice(KINDS))


def msr_value(random: Random, number: int, anything: Callable[[], int]) -> int:
    if random.random() < 0.1:
        return anything() & (1 << 64) - 1
    if number in SELECTS:
        bits = random.choice((1 << 22 | 3 << 16, 1 << 22 | 1 << 16, 1 << 22 | 1 << 17, 0, 1 << 18 | 1 << 22 | 3 << 16))
        return random.choice(EVENTS) | bits | random.choice((0, 1 << 20, 1 << 20))
    if number in COUNTERS:
        return -random.randrange(1, 500) & random.choice((0xFFFF_FFFF, (1 << 48) - 1))
    if number == EFER:
        return 0xD01 ^ random.choice((0, 0, 1, 1 << 11, 1 << 8, 1 << random.randrange(64)))
    if number in (LSTAR, CSTAR):
        return random.choice((CODE + 16 * random.randrange(0x200), CODE + 16 * random.randrange(0x200), anything()))
    if number == TSC_DEADLINE:
        return random.choice((random.randrange(60_000), 0, 1 << 62))
    if number == APIC_BASE:
        return random.choice((0xFEE0_0900, 0xFEE0_0800, 0xFEE0_0D00, DATA | 0x900))
    if number in CONTROLS:
        return random.choice((0, 0xF, 7 << 32 | 0xF, 0xBBB, 0x333, 1 << 63 | 0xF, random.getrandbits(16)))
    return anything() & (1 << 64) - 1


def port_value(random: Random, port: int) -> int:
    if random.random() < 0.3:
        return random.getrandbits(32)
    return random.choice(
        {
            0x43: (0x34, 0x30, 0xB0, 0xC2, 0x00, 0xE2, 0x36), 0x20: (0x11, 0x20, 0x0A, 0x0B, 0x60, 0x0C),
            0x70: (0x0A, 0x0B, 0x0C, 0, 0x8F, 0x35), 0x3F9: (0, 1, 2, 3, 0xF), 0x3FB: (3, 0x83), 0x3FC: (0x0B, 0x1B),
            0x604: (0, 1, 0x3400), 0x510: (0, 1, 5, 0x19),
        }.get(port, (0, 1, 0xFF, 0x41, 0x20, 0x10))
    )  # fmt: skip
