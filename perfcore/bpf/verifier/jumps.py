"""Conditional jumps: which ways there are, and what is known on each."""

from __future__ import annotations

from perfcore.bpf.instructions import JEQ, JMP, JMP32, JNE, Instruction, compare
from perfcore.bpf.refusal import malformed, unsafe
from perfcore.bpf.verifier import scalar
from perfcore.bpf.verifier.scalar import Scalar
from perfcore.bpf.verifier.state import Kind, Reg, State, number


def check_goto(instruction: Instruction) -> None:
    unused = instruction.imm if instruction.cls == JMP else instruction.offset
    if instruction.by_register or instruction.src or instruction.dst or unused:
        raise malformed("BPF_JA uses reserved fields")


def branch(state: State, instruction: Instruction) -> tuple[State | None, State | None]:
    """The states where the jump is not taken, and where it is; None: never. `state` becomes one of them."""
    regs = state.regs
    if instruction.by_register:
        if instruction.imm:
            raise malformed("BPF_JMP uses reserved fields")
        source = regs[instruction.src]
        if source.kind is Kind.NOT_INIT:
            raise unsafe(f"R{instruction.src} !read_ok")
    else:
        if instruction.src:
            raise malformed("BPF_JMP uses reserved fields")
        source = number(scalar.const(instruction.imm))
    dst = regs[instruction.dst]
    if dst.kind is Kind.NOT_INIT:
        raise unsafe(f"R{instruction.dst} !read_ok")
    if dst.is_pointer or source.is_pointer:
        return _compared_pointer(state, instruction, dst, source)
    return _compared_numbers(state, instruction, dst, source)


def _compared_numbers(
    state: State, instruction: Instruction, dst: Reg, source: Reg
) -> tuple[State | None, State | None]:
    bits = 32 if instruction.cls == JMP32 else 64
    operation = instruction.operation
    if dst.scalar.is_const and source.scalar.is_const:
        holds = compare(operation, dst.scalar.value, source.scalar.value, bits)
        return (None, state) if holds else (state, None)
    held = scalar.refine(operation, dst.scalar, source.scalar, bits)
    failed = scalar.refine_not(operation, dst.scalar, source.scalar, bits)
    taken = state.copy() if held is not None and failed is not None else state
    ways: list[State | None] = []
    for way, known in ((state, failed), (taken, held)):
        if known is None:
            ways.append(None)
            continue
        _learn(way, dst, instruction.dst, known[0])
        if instruction.by_register:
            _learn(way, source, instruction.src, known[1])
        ways.append(way)
    return ways[0], ways[1]


def _learn(state: State, reg: Reg, index: int, known: Scalar) -> None:
    """Of a register, and of all that have the same number."""
    if known == reg.scalar:
        return
    learned = number(known, reg.id)
    state.regs[index] = learned
    if reg.id:
        for frame, where, other, spilled in list(state.all_regs()):
            if other.id == reg.id and other.kind is Kind.SCALAR and other.scalar == reg.scalar:
                state.put(frame, where, learned, spilled)


def _compared_pointer(
    state: State, instruction: Instruction, dst: Reg, source: Reg
) -> tuple[State | None, State | None]:
    """Of pointers nothing is learned but whether they are null."""
    taken = state.copy()
    equal = instruction.operation == JEQ
    if instruction.cls == JMP and instruction.operation in (JEQ, JNE) and dst.is_pointer and source.is_null:
        if dst.null:
            mark_null(taken if equal else state, dst, is_null=True)
            mark_null(state if equal else taken, dst, is_null=False)
        elif dst.kind not in (Kind.FUNC, Kind.OBJECT):
            return (state, None) if equal else (None, state)
    return state, taken


def mark_null(state: State, pointer: Reg, *, is_null: bool) -> None:
    """What was found of a pointer holds for its copies. What is null need not be given back."""
    for frame, where, reg, spilled in list(state.all_regs()):
        if reg.null and reg.id == pointer.id:
            known = number(scalar.const(0)) if is_null else reg._replace(null=False, id=0)
            state.put(frame, where, known, spilled)
    if is_null and pointer.ref:
        state.refs = tuple(ref for ref in state.refs if ref != pointer.ref)
