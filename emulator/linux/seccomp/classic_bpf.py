"""Classic BPF programs over struct seccomp_data: what is one (kernel/seccomp.c), and what it says."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

INSTRUCTION = struct.Struct("<HBBI")  # struct sock_filter
MOST_INSTRUCTIONS = 4096  # BPF_MAXINSNS
DATA_BYTES = 64  # struct seccomp_data
MEMORY_WORDS = 16  # BPF_MEMWORDS
MASK = (1 << 32) - 1

# uapi/linux/bpf_common.h
LD, LDX, ST, STX, ALU, JMP, RET, MISC = range(8)
IMM, ABS, MEM, LEN = 0x00, 0x20, 0x60, 0x80
K, X, A = 0x00, 0x08, 0x10
JA, JEQ, JGT, JGE, JSET = 0x00, 0x10, 0x20, 0x30, 0x40
DIV, LSH, RSH, NEG = 0x30, 0x60, 0x70, 0x80
TXA = MISC | 0x80
CLASS, OPERATION, SOURCE = 0x07, 0xF0, 0x08

ARITHMETIC: dict[int, Callable[[int, int], int]] = {
    0x00: lambda a, b: a + b,
    0x10: lambda a, b: a - b,
    0x20: lambda a, b: a * b,
    DIV: lambda a, b: a // b,
    0x40: lambda a, b: a | b,
    0x50: lambda a, b: a & b,
    LSH: lambda a, b: a << (b & 31),
    RSH: lambda a, b: a >> (b & 31),
    0xA0: lambda a, b: a ^ b,
}
CONDITIONS: dict[int, Callable[[int, int], bool]] = {
    JEQ: lambda a, b: a == b,
    JGT: lambda a, b: a > b,
    JGE: lambda a, b: a >= b,
    JSET: lambda a, b: bool(a & b),
}
# Those that seccomp takes: no packet's bytes, and no remainder.
CODES = {
    LD | ABS, LD | LEN, LDX | LEN, LD | IMM, LDX | IMM, LD | MEM, LDX | MEM, ST, STX, RET | K, RET | A, MISC, TXA,
    ALU | NEG, JMP | JA,
    *(ALU | operation | source for operation in ARITHMETIC for source in (K, X)),
    *(JMP | condition | source for condition in CONDITIONS for source in (K, X)),
}  # fmt: skip


class Instruction(NamedTuple):
    """struct sock_filter"""

    code: int
    if_true: int  # instructions to skip
    if_false: int
    k: int


class Malformed(Exception):
    """A program that the kernel does not take; says why."""


def parse(data: bytes) -> tuple[Instruction, ...]:
    """Raises Malformed. Every path of what it gives back ends, with a value."""
    program = tuple(Instruction(*fields) for fields in INSTRUCTION.iter_unpack(data))
    for place, one in enumerate(program):
        why = _what_is_wrong(one, len(program) - place - 1)
        if why:
            raise Malformed(f"instruction {place}: {why}")
    if program[-1].code not in (RET | K, RET | A):
        raise Malformed("the last instruction does not return")
    _check_memory(program)
    return program


def _what_is_wrong(one: Instruction, behind: int) -> str:
    """`behind`: how many instructions follow."""
    code, k = one.code, one.k
    if code not in CODES:
        return f"code {code:#x} is none of seccomp's"
    if code == LD | ABS and (k >= DATA_BYTES or k & 3):
        return f"offset {k} is no word of struct seccomp_data"
    if code in (LD | MEM, LDX | MEM, ST, STX) and k >= MEMORY_WORDS:
        return f"memory has no word {k}"
    if code == ALU | DIV | K and k == 0:
        return "division by 0"
    if code in (ALU | LSH | K, ALU | RSH | K) and k >= 32:
        return f"a shift by {k}"
    if code & CLASS == JMP:
        farthest = k if code == JMP | JA else max(one.if_true, one.if_false)
        if farthest >= behind:
            return "a jump behind the end"
    return ""


def _check_memory(program: Sequence[Instruction]) -> None:
    """No word is read that has not been written on every way to it (check_load_and_stores)."""
    everything = (1 << MEMORY_WORDS) - 1
    at = [everything] * len(program)  # words that all jumps to an instruction have written
    written = 0
    for place, (code, if_true, if_false, k) in enumerate(program):
        written &= at[place]
        if code in (ST, STX):
            written |= 1 << k
        elif code in (LD | MEM, LDX | MEM):
            if not written >> k & 1:
                raise Malformed(f"instruction {place}: word {k} of the memory has not been written")
        elif code & CLASS == JMP:
            for skipped in (k,) if code == JMP | JA else (if_true, if_false):
                at[place + 1 + skipped] &= written
            written = everything


class ClassicProgram:
    """One that has been checked, in its own eight bytes an instruction: a guest may have many.

    It is a function of the words that it loads: `loads` are their places in a struct seccomp_data.
    """

    __slots__ = ("_data", "length", "loads")

    def __init__(self, data: bytes) -> None:
        """Raises Malformed."""
        program = parse(data)
        self._data = data
        self.length = len(program)
        self.loads = frozenset(one.k >> 2 for one in program if one.code == LD | ABS)

    def answer(self, words: Sequence[int]) -> int:
        """What it returns for the 16 words of a struct seccomp_data."""
        return _execute(self._data, words)


def _execute(program: bytes, words: Sequence[int]) -> int:
    a = x = place = 0
    memory = [0] * MEMORY_WORDS
    while True:
        code, if_true, if_false, k = INSTRUCTION.unpack_from(program, place * INSTRUCTION.size)
        place += 1
        kind = code & CLASS
        if kind == RET:
            return a if code == RET | A else k
        if kind in (LD, LDX):
            mode = code & 0xE0
            loaded = {IMM: k, LEN: DATA_BYTES}.get(mode)
            if loaded is None:
                loaded = words[k >> 2] if mode == ABS else memory[k]
            if kind == LD:
                a = loaded
            else:
                x = loaded
        elif kind in (ST, STX):
            memory[k] = a if kind == ST else x
        elif kind == MISC:
            if code == TXA:
                a = x
            else:
                x = a
        elif code == JMP | JA:
            place += k
        elif kind == JMP:
            place += if_true if CONDITIONS[code & OPERATION](a, x if code & SOURCE else k) else if_false
        elif code == ALU | NEG:
            a = -a & MASK
        else:
            operand = x if code & SOURCE else k
            if code & OPERATION == DIV and operand == 0:
                return 0  # bpf_convert_filter: that ends the program
            a = ARITHMETIC[code & OPERATION](a, operand) & MASK
