"""What is said of a program without following it: opcodes, functions, jumps; every instruction is reached."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from emulator.linux.errors import E2BIG
from perfcore.bpf.instructions import (
    ABS,
    ALU,
    ALU64,
    ATOMIC,
    CALL,
    CALL_OPCODE,
    END,
    EXIT,
    EXIT_OPCODE,
    IND,
    JA,
    JMP,
    JMP32,
    JSLE,
    LD,
    LDX,
    LOAD_IMM64,
    MEM,
    MEMSX,
    NEG,
    PSEUDO_FUNC,
    REGISTER_SOURCE,
    REGISTERS,
    ST,
    STX,
    Instruction,
)
from perfcore.bpf.refusal import Refusal, malformed

_SECOND_HALF = 0  # the opcode of a 64-bit immediate's second half
_MOST_FUNCTIONS = 256  # BPF_MAX_SUBPROGS


def _known_opcodes() -> frozenset[int]:
    sizes = (0x00, 0x08, 0x10, 0x18)
    opcodes = {LOAD_IMM64, CALL_OPCODE, EXIT_OPCODE, JMP | JA, JMP32 | JA}
    sources = (0, REGISTER_SOURCE)
    operations, comparisons = set(range(0, END, 0x10)) - {NEG}, set(range(0x10, JSLE + 1, 0x10)) - {CALL, EXIT}
    opcodes |= {cls | op | source for cls in (ALU, ALU64) for op in operations for source in sources}
    opcodes |= {ALU | NEG, ALU64 | NEG, ALU | END, ALU | END | REGISTER_SOURCE, ALU64 | END}
    opcodes |= {cls | op | source for cls in (JMP, JMP32) for op in comparisons for source in sources}
    opcodes |= {cls | MEM | size for cls in (LDX, ST, STX) for size in sizes}
    opcodes |= {LDX | MEMSX | size for size in (0x00, 0x08, 0x10)}
    opcodes |= {STX | ATOMIC | size for size in (0x00, 0x18)}
    opcodes |= {LD | mode | size for mode in (ABS, IND) for size in (0x00, 0x08, 0x10)}
    return frozenset(opcodes)


_OPCODES = _known_opcodes()


def check_opcodes(instructions: Sequence[Instruction]) -> None:
    """Each is one that exists, and 64-bit immediates are whole."""
    pc = 0
    while pc < len(instructions):
        instruction = instructions[pc]
        if instruction.opcode not in _OPCODES:
            raise malformed(f"unknown opcode {instruction.opcode:02x}")
        if instruction.dst >= REGISTERS or instruction.src >= REGISTERS:
            raise malformed(f"R{max(instruction.dst, instruction.src)} is invalid")
        if instruction.opcode == LOAD_IMM64:
            rest = instructions[pc + 1] if pc + 1 < len(instructions) else None
            if rest is None or rest.opcode != _SECOND_HALF or rest.dst or rest.src or rest.offset:
                raise malformed("invalid bpf_ld_imm64 insn")
            pc += 1
        pc += 1


def _named_function(pc: int, instruction: Instruction) -> int | None:
    """Where the function begins that an instruction calls, or gives to a helper."""
    if instruction.is_call_of_program or (instruction.opcode == LOAD_IMM64 and instruction.src == PSEUDO_FUNC):
        return pc + 1 + instruction.imm
    return None


def functions(instructions: Sequence[Instruction]) -> list[int]:
    """Where the program's functions begin, in order; the first is what is run. add_subprog_and_kfunc()"""
    entries = {0}
    for pc, instruction in enumerate(instructions):
        target = _named_function(pc, instruction)
        if target is None:
            continue
        if not 0 <= target < len(instructions):
            raise malformed(f"call to invalid destination {target}")
        entries.add(target)
        if len(entries) > _MOST_FUNCTIONS:
            raise Refusal(E2BIG, "too many subprograms")
    return sorted(entries)


def callees(instructions: Sequence[Instruction], entries: Sequence[int]) -> Mapping[int, set[int]]:
    """By function, as all of these by where they begin: those that it calls, or gives to helpers."""
    found: dict[int, set[int]] = {entry: set() for entry in entries}
    for pc, instruction in enumerate(instructions):
        target = _named_function(pc, instruction)
        if target is not None:
            found[entries[bisect_right(entries, pc) - 1]].add(target)
    return found


class Flow:
    """Where each instruction may go on within its function, and which are come to in several ways."""

    def __init__(self, instructions: Sequence[Instruction], entries: Sequence[int]) -> None:
        """Raises Refusal: a jump leaves its function, one ends without an exit, an instruction is never reached."""
        self._instructions = instructions
        self.entries = entries
        self.successors: dict[int, tuple[int, ...]] = {}
        for first, end in zip(entries, (*entries[1:], len(instructions)), strict=True):
            self._check_function(first, end)
        self.joins = self._joins()

    def _check_function(self, first: int, end: int) -> None:
        last = self._instructions[end - 1]
        if last.opcode not in (EXIT_OPCODE, JMP | JA, JMP32 | JA):
            raise malformed("last insn is not an exit or jmp")
        waiting = [first]
        while waiting:
            pc = waiting.pop()
            if pc in self.successors:
                continue
            self.successors[pc] = following = self._after(pc, first, end)
            waiting += following
        pc = first
        while pc < end:
            if pc not in self.successors:
                raise malformed(f"unreachable insn {pc}")
            pc += 2 if self._instructions[pc].opcode == LOAD_IMM64 else 1

    def _after(self, pc: int, first: int, end: int) -> tuple[int, ...]:
        instruction = self._instructions[pc]
        if instruction.opcode == _SECOND_HALF:
            raise malformed(f"jump into the middle of ldimm64 insn {pc - 1}")
        following = pc + (2 if instruction.opcode == LOAD_IMM64 else 1)
        if instruction.opcode == EXIT_OPCODE:
            return ()
        if not instruction.is_jump or instruction.opcode == CALL_OPCODE:
            return (self._inside(pc, following, first, end),)
        target = self._inside(pc, pc + 1 + instruction.jump_distance, first, end)
        if not instruction.is_conditional:
            return (target,)
        return (self._inside(pc, following, first, end), target)

    @staticmethod
    def _inside(pc: int, target: int, first: int, end: int) -> int:
        if not first <= target < end:
            raise malformed(f"jump out of range from insn {pc} to {target}")
        return target

    def _joins(self) -> frozenset[int]:
        """Come to by more than one way, or by a jump backwards."""
        came: dict[int, int] = {}
        found = set()
        for pc, following in self.successors.items():
            for target in following:
                if target in came or target <= pc:
                    found.add(target)
                came[target] = pc
        return frozenset(found)
