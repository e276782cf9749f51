"""ALU instructions: on numbers, and on pointers, of which few are allowed."""

from __future__ import annotations

from perfcore.bpf.instructions import (
    ADD,
    ALU,
    ALU64,
    AND,
    ARSH,
    DIV,
    END,
    FRAME_POINTER,
    LSH,
    MOD,
    MOV,
    NEG,
    OR,
    RSH,
    SUB,
    XOR,
    Instruction,
    swapped,
)
from perfcore.bpf.refusal import malformed, unsafe
from perfcore.bpf.verifier import scalar
from perfcore.bpf.verifier.accesses import MAX_OFFSET
from perfcore.bpf.verifier.state import UNKNOWN, Kind, Reg, State, number
from perfcore.bpf.verifier.subject import Subject

_NAMES = {ADD: "+=", SUB: "-=", AND: "&=", OR: "|=", XOR: "^="}


def alu(subject: Subject, state: State, instruction: Instruction) -> None:
    """Check it, and put its result into its register."""
    operation = instruction.operation
    _check_fields(instruction)
    regs = state.regs
    dst, name = regs[instruction.dst], f"R{instruction.dst}"
    if instruction.by_register and operation != END:
        source = regs[instruction.src]
        if source.kind is Kind.NOT_INIT:
            raise unsafe(f"R{instruction.src} !read_ok")
    else:
        source = number(scalar.const(instruction.imm))
    if operation != MOV and dst.kind is Kind.NOT_INIT:
        raise unsafe(f"{name} !read_ok")
    if instruction.dst == FRAME_POINTER:
        raise unsafe("frame pointer is read only")
    if operation == MOV:
        regs[instruction.dst] = _moved(subject, state, instruction, source)
    elif operation == END:
        regs[instruction.dst] = _with_bytes_in_order(instruction, dst)
    elif operation == NEG:
        regs[instruction.dst] = UNKNOWN if dst.is_pointer else _of_numbers(instruction, dst, dst)
    else:
        regs[instruction.dst] = _computed(instruction, name, dst, source)


def _check_fields(instruction: Instruction) -> None:
    operation, offset = instruction.operation, instruction.offset
    wide = instruction.cls == ALU64
    bits = 64 if wide else 32
    if operation == END:
        wrong = instruction.src or offset or instruction.imm not in (16, 32, 64) or (wide and instruction.by_register)
        if wrong:
            raise malformed("BPF_END uses reserved fields")
    elif operation == NEG:
        if instruction.by_register or instruction.src or offset or instruction.imm:
            raise malformed("BPF_NEG uses reserved fields")
    elif operation == MOV:
        extended = (0, 8, 16, 32) if wide else (0, 8, 16)
        if offset not in (extended if instruction.by_register else (0,)) or _unused_is_set(instruction):
            raise malformed("BPF_MOV uses reserved fields")
    else:
        if _unused_is_set(instruction) or offset not in ((0, 1) if operation in (DIV, MOD) else (0,)):
            raise malformed("BPF_ALU uses reserved fields")
        if operation in (DIV, MOD) and not instruction.by_register and not instruction.imm:
            raise malformed("div by zero")
        if operation in (LSH, RSH, ARSH) and not instruction.by_register and not 0 <= instruction.imm < bits:
            raise malformed(f"invalid shift {instruction.imm}")


def _unused_is_set(instruction: Instruction) -> bool:
    return bool(instruction.imm if instruction.by_register else instruction.src)


def _moved(subject: Subject, state: State, instruction: Instruction, source: Reg) -> Reg:
    """Both registers have the same number then, so that what is found out of one holds for the other."""
    size = instruction.offset // 8
    if instruction.cls == ALU:
        if source.is_pointer:
            return number(scalar.UNKNOWN_BY_BYTES[4])
        known = scalar.truncated(scalar.sign_extended(source.scalar, size) if size else source.scalar, 4)
    elif size:
        known = scalar.UNKNOWN if source.is_pointer else scalar.sign_extended(source.scalar, size)
    else:
        known = source.scalar
    if source.is_pointer and not size:
        return source
    if source.is_pointer or known != source.scalar:
        return number(known)
    if not instruction.by_register or known.is_const:
        return number(known)
    if not source.id:
        source = source._replace(id=subject.new_id())
        state.regs[instruction.src] = source
    return source


def _with_bytes_in_order(instruction: Instruction, dst: Reg) -> Reg:
    """To little endian is to keep the low bytes."""
    bits = instruction.imm
    if dst.is_pointer:
        return number(scalar.UNKNOWN_BY_BYTES[bits // 8])
    swaps = instruction.cls == ALU64 or instruction.by_register
    if not swaps:
        return number(scalar.truncated(dst.scalar, bits // 8))
    if dst.scalar.is_const:
        return number(scalar.const(swapped(dst.scalar.value, bits)))
    return number(scalar.UNKNOWN_BY_BYTES[bits // 8])


def _of_numbers(instruction: Instruction, dst: Reg, source: Reg) -> Reg:
    bits = 64 if instruction.cls == ALU64 else 32
    return number(scalar.operate(instruction.operation, dst.scalar, source.scalar, bits, instruction.offset))


def _computed(instruction: Instruction, name: str, dst: Reg, source: Reg) -> Reg:
    operation = instruction.operation
    if not dst.is_pointer and not source.is_pointer:
        return _of_numbers(instruction, dst, source)
    if dst.is_pointer and source.is_pointer:
        if operation == SUB:
            return UNKNOWN if instruction.cls == ALU64 else number(scalar.UNKNOWN_BY_BYTES[4])
        raise unsafe(f"{name} pointer {_NAMES.get(operation, 'op')} pointer prohibited")
    if dst.is_pointer:
        return _offset(instruction, name, dst, source)
    if operation == ADD:
        return _offset(instruction, name, source, dst)
    if operation == SUB:
        raise unsafe(f"{name} tried to subtract pointer from scalar")
    raise unsafe(f"{name} pointer arithmetic with {_NAMES.get(operation, 'this')} operator prohibited")


def _offset(instruction: Instruction, name: str, pointer: Reg, by: Reg) -> Reg:
    """adjust_ptr_min_max_vals()"""
    operation = instruction.operation
    if instruction.cls == ALU:
        if operation == SUB:
            return number(scalar.UNKNOWN_BY_BYTES[4])
        raise unsafe(f"{name} 32-bit pointer arithmetic prohibited")
    if pointer.null:
        raise unsafe(f"{name} pointer arithmetic on {pointer.type_name} prohibited, null-check it first")
    if pointer.kind in (Kind.MAP_PTR, Kind.FUNC):
        raise unsafe(f"{name} pointer arithmetic on {pointer.type_name} prohibited")
    if operation not in (ADD, SUB):
        kind = "bitwise operator on pointer" if operation in (AND, OR, XOR) else "pointer arithmetic with this operator"
        raise unsafe(f"{name} {kind} prohibited")
    if operation == SUB and pointer.kind is Kind.STACK:
        raise unsafe(f"{name} subtraction from stack pointer prohibited")
    _check_offset(name, pointer, by.scalar)
    moved = scalar.operate(operation, pointer.scalar, by.scalar)
    _check_offset(name, pointer, moved)
    return pointer._replace(scalar=moved)


def _check_offset(name: str, pointer: Reg, offset: scalar.Scalar) -> None:
    """check_reg_sane_offset(): where it ends is checked when it is used, but never far from where it began."""
    if offset.is_const and abs(offset.smin) >= MAX_OFFSET:
        raise malformed(f"math between {pointer.type_name} pointer and {offset.smin} is not allowed")
    if offset.smin == scalar.S64_MIN:
        raise malformed(
            f"math between {pointer.type_name} pointer and register with unbounded min value is not allowed"
        )
    if offset.smin <= -MAX_OFFSET or offset.smin >= MAX_OFFSET:
        raise malformed(f"value {offset.smin} makes {pointer.type_name} pointer {name} be out of bounds")
