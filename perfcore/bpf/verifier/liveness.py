"""Which registers' values still matter before an instruction: the others need not be alike for states to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from perfcore.bpf.instructions import (
    ALU,
    ALU64,
    ATOMIC,
    CALL,
    CMPXCHG,
    END,
    EXIT,
    FETCH,
    FRAME_POINTER,
    JA,
    JMP,
    JMP32,
    LD,
    LDX,
    MOV,
    NEG,
    STX,
    Instruction,
)

Uses = tuple[int, int]
"""Registers that are read, and those that are written: bits."""
_CLOBBERED = 0b11_1111  # R0 to R5, by a call


def live_registers(
    instructions: Sequence[Instruction],
    successors: Mapping[int, tuple[int, ...]],
    arguments: Callable[[Instruction], int],
) -> dict[int, int]:
    """By instruction: bits. `arguments`: how many a call takes."""
    uses = {pc: _uses(instructions[pc], arguments) for pc in successors}
    before: dict[int, list[int]] = {pc: [] for pc in successors}
    for pc, following in successors.items():
        for target in following:
            before[target].append(pc)
    live = dict.fromkeys(successors, 0)
    waiting = sorted(successors)  # the last ones first
    queued = set(waiting)
    while waiting:
        pc = waiting.pop()
        queued.remove(pc)
        after = 0
        for target in successors[pc]:
            after |= live[target]
        read, written = uses[pc]
        now = after & ~written | read | 1 << FRAME_POINTER
        if now != live[pc]:
            live[pc] = now
            for each in before[pc]:
                if each not in queued:
                    queued.add(each)
                    waiting.append(each)
    return live


def _uses(instruction: Instruction, arguments: Callable[[Instruction], int]) -> Uses:
    dst, src = 1 << instruction.dst, 1 << instruction.src
    source = src if instruction.by_register else 0
    if instruction.cls in (ALU, ALU64):
        if instruction.operation == MOV:
            return source, dst
        return dst | (0 if instruction.operation in (NEG, END) else source), dst
    if instruction.cls in (JMP, JMP32):
        return _uses_of_jump(instruction, dst | source, arguments)
    if instruction.cls == LD:
        return 0, dst
    if instruction.cls == LDX:
        return src, dst
    if instruction.cls == STX and instruction.mode == ATOMIC:
        if instruction.imm == CMPXCHG:
            return dst | src | 1, 1
        return dst | src, src if instruction.imm & FETCH else 0
    return dst | (src if instruction.cls == STX else 0), 0


def _uses_of_jump(instruction: Instruction, compared: int, arguments: Callable[[Instruction], int]) -> Uses:
    if instruction.operation == CALL:
        return ((1 << arguments(instruction)) - 1) << 1, _CLOBBERED
    if instruction.operation == EXIT:
        return 1, 0
    return (0 if instruction.operation == JA else compared), 0
