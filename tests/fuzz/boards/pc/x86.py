"""x86-64 as bytes: the instructions that a random image is made of. Encodings: Intel SDM volume 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)
GENERAL = (RAX, RCX, RDX, RBX, RBP, RSI, RDI)
LONGEST = 15  # bytes of an instruction
NOP, HLT, CLI, STI, CLTS, PUSHFQ, POPFQ, IRETQ = (
    bytes.fromhex(text) for text in ("90", "f4", "fa", "fb", "0f06", "9c", "9d", "48cf")
)
RDMSR, WRMSR, CPUID, RDPMC, SWAPGS = (bytes.fromhex(text) for text in ("0f32", "0f30", "0fa2", "0f33", "0f01f8"))
SYSCALL, SYSRET, SYSRET_32, UD2 = (bytes.fromhex(text) for text in ("0f05", "480f07", "0f07", "0f0b"))
RDTSC, RDTSCP, WBINVD, PAUSE, LOOP_ENDS = (bytes.fromhex(text) for text in ("0f31", "0f01f9", "0f09", "f390", "e2"))


@dataclass(frozen=True, slots=True)
class Row:
    """Instructions with ModRM (unless `plain`): any of these opcodes behind any of these prefixes."""

    prefixes: Sequence[str]  # in hexadecimal
    map: str  # bytes before the opcode, likewise
    first: int
    last: int
    immediate: int = 0  # bytes of it
    plain: bool = False


_ANY, _SSE = ("", "", "", "66", "f0", "f2", "f3", "64", "65", "67"), ("", "66", "f2", "f3")
_REPEATED = ("", "f3", "f2", "66f3", "67f3", "64")
# Of these each is as likely: a row with many opcodes stands in several pieces.
INTEGER = (
    *(Row(_ANY, "", first, first + 3) for first in range(0, 0x40, 8)),
    Row(("", "66"), "", 0x80, 0x80, 1), Row(("", "f0"), "", 0x81, 0x81, 4), Row(_ANY, "", 0x83, 0x83, 1),
    Row(_ANY, "", 0x84, 0x8B), Row(("", "67"), "", 0x8D, 0x8D), Row(("",), "", 0x63, 0x63),
    Row(("",), "", 0x69, 0x69, 4), Row(("", "66"), "", 0x6B, 0x6B, 1), Row(("", "66"), "", 0xC0, 0xC1, 1),
    Row(("", "66"), "", 0xD0, 0xD3), Row(_ANY, "", 0xF7, 0xF7), Row(("", "66", "f0"), "", 0xFE, 0xFE),
    Row(("",), "", 0xC6, 0xC6, 1), Row(("",), "", 0xC7, 0xC7, 4), Row(("",), "", 0x8F, 0x8F),
    Row(("", "66"), "0f", 0x40, 0x4F), Row(("",), "0f", 0x90, 0x9F), Row(("", "66", "f0"), "0f", 0xA3, 0xA3),
    Row(("", "f0"), "0f", 0xAB, 0xAB), Row(("", "66"), "0f", 0xB3, 0xB3), Row(("", "f0"), "0f", 0xBA, 0xBA, 1),
    Row(("",), "0f", 0xA4, 0xA4, 1), Row(("", "66"), "0f", 0xAD, 0xAD), Row(("",), "0f", 0xAF, 0xAF),
    Row(("", "f0"), "0f", 0xB0, 0xB1), Row(("", "66"), "0f", 0xB6, 0xB7), Row(("", "f3", "66"), "0f", 0xBC, 0xBF),
    Row(("", "f0"), "0f", 0xC0, 0xC1), Row(("", "f0", "66"), "0f", 0xC7, 0xC7), Row(("", "66"), "0f38", 0xF0, 0xF6),
)  # fmt: skip
STRINGS = (
    *(Row(_REPEATED, "", opcode, opcode + 1, plain=True) for opcode in (0xA4, 0xA6, 0xAA, 0xAC, 0xAE, 0xA4, 0xAA)),
    Row(_REPEATED, "", 0x6C, 0x6F, plain=True),
)
STACK = (
    Row(("", "66"), "", 0x50, 0x53, plain=True), Row(("", "66"), "", 0x58, 0x5B, plain=True),
    Row(("",), "", 0x68, 0x68, 4, plain=True), Row(("",), "", 0x6A, 0x6A, 1, plain=True),
    Row(("", "66"), "", 0x9C, 0x9D, plain=True), Row(("", "48", "66"), "", 0xC3, 0xC3, plain=True),
    Row(("", "48"), "", 0xCA, 0xCB, plain=True), Row(("",), "", 0xC9, 0xC9, plain=True),
    Row(("",), "", 0xFF, 0xFF), Row(("",), "0f", 0xA0, 0xA1, plain=True), Row(("",), "0f", 0xA8, 0xA9, plain=True),
)  # fmt: skip
VECTORS = (
    Row(_SSE, "0f", 0x10, 0x17), Row(_SSE, "0f", 0x28, 0x2F), Row(_SSE, "0f", 0x51, 0x5F), Row(_SSE, "0f", 0x60, 0x6F),
    Row(("66", ""), "0f", 0x70, 0x73, 1), Row(_SSE, "0f", 0x74, 0x7F), Row(_SSE, "0f", 0xC2, 0xC2, 1),
    Row(("", "66"), "0f", 0xC4, 0xC6, 1), Row(_SSE, "0f", 0xD0, 0xEF), Row(_SSE, "0f", 0xF0, 0xFF),
    Row(("", "66"), "0f38", 0x00, 0x41), Row(("66",), "0f38", 0xDB, 0xDF), Row(("66",), "0f3a", 0x08, 0x17, 1),
    Row(("66",), "0f3a", 0x20, 0x63, 1), Row(("", "f3"), "0f", 0xAE, 0xAE), Row(("",), "0f", 0x18, 0x1F),
    Row(("",), "0f", 0xC3, 0xC3),
)  # fmt: skip
X87 = (Row(("", "9b"), "", 0xD8, 0xDF),)
SYSTEM = (
    Row(("",), "0f", 0x00, 0x01), Row(("",), "0f", 0x01, 0x01), Row(("",), "0f", 0x02, 0x03),
    Row(("",), "0f", 0x20, 0x23), Row(("", "f3"), "0f", 0x06, 0x0B, plain=True),
    Row(("",), "0f", 0x30, 0x35, plain=True), Row(("",), "", 0x8C, 0x8C), Row(("", "66"), "0f", 0xB2, 0xB5),
    Row(("f3",), "0f", 0xAE, 0xAE), Row(("",), "0f", 0xA2, 0xA2, plain=True), Row(("",), "", 0xCC, 0xCF, plain=True),
)  # fmt: skip


def move(register: int, value: int) -> bytes:
    """MOV of an immediate: the shortest."""
    value &= (1 << 64) - 1
    extended = register >> 3
    if value < 1 << 32:
        return (b"\x41" if extended else b"") + bytes([0xB8 | register & 7]) + value.to_bytes(4, "little")
    return bytes([0x48 | extended, 0xB8 | register & 7]) + value.to_bytes(8, "little")


def in_memory(opcode: bytes, register: int, base: int, displacement: int, *, wide: bool = False) -> bytes:
    """An instruction with an operand at base + displacement. Prefixes stand before its REX: not in `opcode`."""
    rex = 0x40 | wide << 3 | (register >> 3) << 2 | base >> 3
    sib = b"\x24" if base & 7 == RSP else b""
    address = bytes([0x80 | (register & 7) << 3 | base & 7]) + sib + (displacement & 0xFFFF_FFFF).to_bytes(4, "little")
    return (bytes([rex]) if rex != 0x40 else b"") + opcode + address


def store(base: int, displacement: int, value: int) -> bytes:
    """Of 4 bytes."""
    return in_memory(b"\xc7", 0, base, displacement) + (value & 0xFFFF_FFFF).to_bytes(4, "little")


def of_registers(opcode: bytes, register: int, other: int, *, wide: bool = False) -> bytes:
    rex = 0x40 | wide << 3 | (register >> 3) << 2 | other >> 3
    return (
        (bytes([rex]) if rex != 0x40 else b"") + opcode + bytes([0xC0 | (register & 7) << 3 | other & 7])
    )  # such as MOV rm, register


def write_msr(number: int, value: int) -> list[bytes]:
    return [move(RCX, number), move(RAX, value & 0xFFFF_FFFF), move(RDX, value >> 32 & 0xFFFF_FFFF), WRMSR]


def jump(distance: int, condition: int | None = None, *, call: bool = False) -> bytes:
    """From behind it."""
    offset = (distance & 0xFFFF_FFFF).to_bytes(4, "little")
    if condition is not None:
        return bytes([0x0F, 0x80 | condition]) + offset
    return (b"\xe8" if call else b"\xe9") + offset


def drawn(random: Random, rows: Sequence[Row], bases: Sequence[int]) -> bytes:
    """One of the rows', with registers that are not RSP most of the time, and memory at `bases`."""
    row = random.choice(rows)
    code = bytes.fromhex(random.choice(row.prefixes))
    opcode = bytes.fromhex(row.map) + bytes([random.randint(row.first, row.last)])
    rex = 0x48 * (random.random() < 0.4)
    address = b""
    if not row.plain:
        register = random.choice(GENERAL) if random.random() < 0.98 else random.randrange(16)
        more, address = _operand(random, register, bases)
        rex |= more
    return code + (bytes([rex]) if rex else b"") + opcode + address + random.randbytes(row.immediate)


def _operand(random: Random, register: int, bases: Sequence[int]) -> tuple[int, bytes]:
    """REX's bits, 0 if it need not be; then ModRM, SIB and displacement."""
    rex, field = (0x44 if register >> 3 else 0), (register & 7) << 3
    kind = random.random()
    if kind < 0.4:
        return rex, bytes([0xC0 | field | random.choice(GENERAL)])
    if kind < 0.45:  # relative to RIP
        return rex, bytes([field | 5]) + random.randrange(-0x800, 0x800).to_bytes(4, "little", signed=True)
    base = random.choice(bases)
    rex |= 0x41 if base >> 3 else 0
    if kind < 0.5:  # with an index, which leads nowhere most of the time
        sib = random.randrange(4) << 6 | random.choice(GENERAL) << 3 | base & 7
        return rex, bytes([0x40 | field | 4, sib, random.randrange(256)])
    sib_byte = b"\x24" if base & 7 == RSP else b""
    if random.random() < 0.6:
        return rex, bytes([0x40 | field | base & 7]) + sib_byte + bytes([random.choice((0, 8, 0x10, 0x30, 0x7F, 0xF8))])
    offset = random.choice((16 * random.randrange(0x80), random.randrange(0x1000), 0xFFC, 0xFFF))
    return rex, bytes([0x80 | field | base & 7]) + sib_byte + offset.to_bytes(4, "little")
