"""BPF instructions: Documentation/bpf/standardization/instruction-set.rst, RFC 9669."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

INSN_BYTES = 8
MAX_INSNS = 1_000_000  # BPF_COMPLEXITY_LIMIT_INSNS: of a program
STACK_BYTES = 512  # MAX_BPF_STACK
FRAMES = 8  # MAX_CALL_FRAMES
FRAME_POINTER = 10
REGISTERS = 11

# classes, the low three bits of the opcode
LD, LDX, ST, STX, ALU, JMP, JMP32, ALU64 = range(8)
REGISTER_SOURCE = 0x08  # BPF_X
SIZES = {0x00: 4, 0x08: 2, 0x10: 1, 0x18: 8}  # W, H, B, DW
IMM, MEM, MEMSX, ATOMIC = 0x00, 0x60, 0x80, 0xC0  # modes; ABS 0x20 and IND 0x40 are of packets
ABS, IND = 0x20, 0x40

# ALU operations, the high four bits
ADD, SUB, MUL, DIV, OR, AND, LSH, RSH, NEG, MOD, XOR, MOV, ARSH, END = range(0x00, 0xE0, 0x10)
# jumps
JA, JEQ, JGT, JGE, JSET, JNE, JSGT, JSGE, CALL, EXIT, JLT, JLE, JSLT, JSLE = range(0x00, 0xE0, 0x10)
# atomic operations, in the immediate
FETCH, XCHG, CMPXCHG = 0x01, 0xE1, 0xF1
ATOMIC_OPERATIONS = (*(op | fetch for op in (ADD, OR, AND, XOR) for fetch in (0, FETCH)), XCHG, CMPXCHG)

# what the source register says of a 64-bit immediate: BPF_PSEUDO_*
PSEUDO_MAP_FD, PSEUDO_MAP_VALUE, PSEUDO_BTF_ID, PSEUDO_FUNC, PSEUDO_MAP_IDX, PSEUDO_MAP_IDX_VALUE = range(1, 7)
PSEUDO_CALL, PSEUDO_KFUNC_CALL = 1, 2  # ... and of a call

LOAD_IMM64 = LD | IMM | 0x18
CALL_OPCODE, EXIT_OPCODE = JMP | CALL, JMP | EXIT
MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1


class Instruction(NamedTuple):
    """One of 8 bytes."""

    opcode: int
    dst: int
    src: int
    offset: int
    imm: int

    @property
    def cls(self) -> int:
        return self.opcode & 7

    @property
    def operation(self) -> int:
        return self.opcode & 0xF0

    @property
    def mode(self) -> int:
        return self.opcode & 0xE0

    @property
    def size(self) -> int:
        """Of an access, in bytes."""
        return SIZES[self.opcode & 0x18]

    @property
    def by_register(self) -> bool:
        return bool(self.opcode & REGISTER_SOURCE)

    @property
    def is_jump(self) -> bool:
        """Including calls and the exit."""
        return self.cls in (JMP, JMP32)

    @property
    def is_conditional(self) -> bool:
        return self.is_jump and self.operation not in (JA, CALL, EXIT)

    @property
    def is_call_of_program(self) -> bool:
        """Of one of the program's own functions."""
        return self.opcode == CALL_OPCODE and self.src == PSEUDO_CALL

    @property
    def jump_distance(self) -> int:
        """From the next instruction: of a jump, not of a call."""
        return self.imm if self.opcode == JMP32 | JA else self.offset


def decode(data: bytes) -> list[Instruction]:
    """struct bpf_insn, one after the other."""
    return [
        Instruction(opcode, registers & 15, registers >> 4, offset, imm)
        for opcode, registers, offset, imm in struct.iter_unpack("<BBhi", data)
    ]


def encode(instructions: Sequence[Instruction]) -> bytes:
    return b"".join(
        struct.pack("<BBhi", each.opcode, each.dst | each.src << 4, each.offset, each.imm) for each in instructions
    )


def signed(value: int, bits: int) -> int:
    """The low `bits` of `value`, as two's complement has them."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


Compare = Callable[[int, int], bool]
"""Of two numbers of the jump's width; the signed ones have been made so."""
UNSIGNED_COMPARISONS: dict[int, Compare] = {
    JEQ: lambda a, b: a == b,
    JNE: lambda a, b: a != b,
    JGT: lambda a, b: a > b,
    JGE: lambda a, b: a >= b,
    JLT: lambda a, b: a < b,
    JLE: lambda a, b: a <= b,
    JSET: lambda a, b: bool(a & b),
}
SIGNED_COMPARISONS: dict[int, Compare] = {
    JSGT: lambda a, b: a > b,
    JSGE: lambda a, b: a >= b,
    JSLT: lambda a, b: a < b,
    JSLE: lambda a, b: a <= b,
}


def compare(operation: int, a: int, b: int, bits: int) -> bool:
    """Whether a conditional jump is taken."""
    if operation in SIGNED_COMPARISONS:
        return SIGNED_COMPARISONS[operation](signed(a, bits), signed(b, bits))
    mask = (1 << bits) - 1
    return UNSIGNED_COMPARISONS[operation](a & mask, b & mask)


def compute(operation: int, a: int, b: int, bits: int, offset: int = 0) -> int:
    """An ALU operation on numbers of `bits`, as a processor does it. `offset` 1: DIV and MOD are signed."""
    mask = (1 << bits) - 1
    a, b = a & mask, b & mask
    return _OPERATIONS[operation](a, b, bits, offset) & mask


def _divided(a: int, b: int, bits: int, offset: int) -> int:
    if not b:
        return 0
    if not offset:
        return a // b
    dividend, divisor = signed(a, bits), signed(b, bits)
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _remainder(a: int, b: int, bits: int, offset: int) -> int:
    if not b:
        return a
    if not offset:
        return a % b
    dividend = signed(a, bits)
    rest = abs(dividend) % abs(signed(b, bits))
    return rest if dividend >= 0 else -rest


_OPERATIONS: dict[int, Callable[[int, int, int, int], int]] = {
    ADD: lambda a, b, bits, _: a + b,
    SUB: lambda a, b, bits, _: a - b,
    MUL: lambda a, b, bits, _: a * b,
    DIV: _divided,
    MOD: _remainder,
    OR: lambda a, b, bits, _: a | b,
    AND: lambda a, b, bits, _: a & b,
    XOR: lambda a, b, bits, _: a ^ b,
    LSH: lambda a, b, bits, _: a << (b & bits - 1),
    RSH: lambda a, b, bits, _: a >> (b & bits - 1),
    ARSH: lambda a, b, bits, _: signed(a, bits) >> (b & bits - 1),
    NEG: lambda a, b, bits, _: -a,
    MOV: lambda a, b, bits, offset: signed(b, offset) if offset else b,
}


def swapped(value: int, bits: int) -> int:
    """The low `bits` with their bytes in the other order."""
    return int.from_bytes((value & (1 << bits) - 1).to_bytes(bits // 8, "little"), "big")
