"""Accesses to memory: by loads and stores, and by the helpers that are given addresses."""

from __future__ import annotations

from emulator.linux.errors import EACCES
from perfcore.abi.bpf import MapFlag
from perfcore.bpf.instructions import ADD, RSH, STACK_BYTES, signed
from perfcore.bpf.refusal import Refusal, malformed, unsafe
from perfcore.bpf.verifier import scalar
from perfcore.bpf.verifier.scalar import Scalar
from perfcore.bpf.verifier.state import Kind, Reg, State, number
from perfcore.bpf.verifier.subject import Subject
from perfcore.bpf.verifier.traced import member

MAX_OFFSET = 1 << 29  # BPF_MAX_VAR_OFF: of a pointer from where it began


def check_pointer_may_be_used(reg: Reg, name: str) -> None:
    """It is one, and not null."""
    if reg.kind is Kind.NOT_INIT:
        raise unsafe(f"{name} !read_ok")
    if not reg.is_pointer or reg.null or reg.kind in (Kind.MAP_PTR, Kind.FUNC):
        raise unsafe(f"{name} invalid mem access '{reg.type_name}'")


def load(subject: Subject, state: State, reg: Reg, name: str, offset: int, size: int) -> Reg:
    """What a load of `size` bytes gives."""
    check_pointer_may_be_used(reg, name)
    at = scalar.operate(ADD, reg.scalar, scalar.const(offset))
    _check_alignment(reg, at, size)
    _note_pointer(subject, state, of_object=reg.kind is Kind.OBJECT)
    if reg.kind is Kind.STACK:
        return _load_from_stack(state, reg, name, at, size)
    if reg.kind is Kind.OBJECT:
        return member(subject.kernel_types().types, reg, name, at, size)
    if reg.kind is Kind.CTX:
        _check_context(subject, reg, name, offset, size)
        if subject.traced is not None:
            return subject.traced.argument(offset, size)
        return number(scalar.UNKNOWN_BY_BYTES[size])
    check_range(reg, name, at, size, write=False)
    known = _constant(reg, at, size)
    return number(scalar.UNKNOWN_BY_BYTES[size] if known is None else scalar.const(known))


def _note_pointer(subject: Subject, state: State, *, of_object: bool) -> None:
    """An instruction loads from objects of the kernel's, or never."""
    if subject.object_loads.setdefault(state.pc, of_object) != of_object:
        raise malformed("same insn cannot be used with different pointers")


def _constant(reg: Reg, at: Scalar, size: int) -> int | None:
    """Of a map that nobody can change any more."""
    data = reg.map.constant_bytes if reg.map is not None and reg.kind is Kind.MAP_VALUE else None
    if data is None or not at.is_const:
        return None
    return int.from_bytes(data[at.value : at.value + size], "little")


def store(subject: Subject, state: State, reg: Reg, name: str, offset: int, size: int, value: Reg) -> None:
    check_pointer_may_be_used(reg, name)
    if reg.kind is Kind.CTX:
        raise unsafe(f"{name}: invalid bpf_context access off={offset} size={size}: a context is only read")
    if reg.kind is Kind.OBJECT:
        raise unsafe("only read is supported")
    at = scalar.operate(ADD, reg.scalar, scalar.const(offset))
    _check_alignment(reg, at, size)
    if reg.kind is Kind.STACK:
        first, last = _stack_range(reg, name, at, size)
        frame = state.frames[reg.frame]
        frame.depth = max(frame.depth, STACK_BYTES - first)
        if value.is_pointer and size != 8:
            raise unsafe("invalid size of register spill")
        if first == last:
            frame.store(first, size, value)
        else:
            frame.forget(first, last - first + size)
    else:
        check_range(reg, name, at, size, write=True)


def change(state: State, reg: Reg, name: str, offset: int, size: int) -> None:
    """An atomic operation on memory."""
    check_pointer_may_be_used(reg, name)
    if reg.kind not in (Kind.STACK, Kind.MAP_VALUE, Kind.MEM):
        raise unsafe(f"BPF_ATOMIC stores into {name} {reg.type_name} is not allowed")
    check_memory(state, reg, name, scalar.const(size), write=True, offset=offset, aligned=size)


def check_memory(
    state: State, reg: Reg, name: str, size: Scalar, *, write: bool, offset: int = 0, aligned: int = 1
) -> None:
    """`size` bytes, as many as it may be, for a helper. What it writes to the stack is known no more."""
    check_pointer_may_be_used(reg, name)
    if reg.kind is Kind.CTX:
        raise unsafe(f"{name} type=ctx expected=memory")
    at = scalar.operate(ADD, reg.scalar, scalar.const(offset))
    _check_alignment(reg, at, aligned, strict=aligned > 1)
    if reg.kind is not Kind.STACK:
        check_range(reg, name, at, size.umax, write=write)
        return
    first, last = _stack_range(reg, name, at, size.umax)
    frame = state.frames[reg.frame]
    frame.depth = max(frame.depth, STACK_BYTES - first)
    if write and size.umax:
        frame.forget(first, last - first + size.umax)


def check_range(reg: Reg, name: str, at: Scalar, size: int, *, write: bool) -> None:
    """Of what is in a map or in memory of a fixed size."""
    if reg.kind is Kind.MAP_KEY and write:
        raise unsafe(f"{name}: write into a map's key")
    limit = reg.size
    if reg.map is not None:
        request = reg.map.request
        forbidden = MapFlag.RDONLY_PROG if write else MapFlag.WRONLY_PROG
        if reg.kind is Kind.MAP_VALUE and request.flags & forbidden:
            raise unsafe(f"{'write into' if write else 'read from'} map forbidden, value_size={request.value_size}")
        limit = limit or (request.key_size if reg.kind is Kind.MAP_KEY else request.value_size)
    if at.smin < 0:
        raise unsafe(f"{name} min value is negative: it may be {at.smin} bytes from the beginning of {reg.type_name}")
    if at.umax >= MAX_OFFSET:
        raise unsafe(f"{name} unbounded memory access, make sure to bounds check any such access")
    if at.umax + size > limit:
        what = f"off={at.umax} size={size}"
        raise unsafe(
            f"invalid access to {reg.type_name}, {reg.kind.value}_size={limit} {what}: {name} is beyond its end"
        )


def _check_alignment(reg: Reg, at: Scalar, size: int, *, strict: bool = False) -> None:
    """Of the stack, and of atomic operations; other memory may be accessed at any address, as both ISAs do it."""
    if (strict or reg.kind is Kind.STACK) and not at.bits.is_aligned(size):
        raise unsafe(f"misaligned {'stack' if reg.kind is Kind.STACK else 'value'} access off {at} size {size}")


def _check_context(subject: Subject, reg: Reg, name: str, offset: int, size: int) -> None:
    if not reg.scalar.is_const:
        raise unsafe(f"variable ctx access var_off={reg.scalar} disallowed")
    if reg.scalar.value:
        raise unsafe(f"dereference of modified ctx ptr {name} off={signed(reg.scalar.value, 64)} disallowed")
    if not subject.kind.may_read(offset, size):
        raise unsafe(f"invalid bpf_context access off={offset} size={size}")
    subject.reads_context(offset + size)


# ---- the stack


def _stack_range(reg: Reg, name: str, at: Scalar, size: int) -> tuple[int, int]:
    """The first and the last byte where an access may begin."""
    if at.smin < -MAX_OFFSET or at.smax >= MAX_OFFSET:
        raise unsafe(f"invalid unbounded variable-offset access to stack {name}")
    first, last = at.smin + STACK_BYTES, at.smax + STACK_BYTES
    kind = "" if at.is_const else "variable-offset "
    why = f"invalid {kind}access to stack {name} off={at.smin} size={size}"
    if not 0 <= first < STACK_BYTES:
        raise unsafe(why)
    if last + size > STACK_BYTES:
        raise malformed(why)
    return first, last


def _load_from_stack(state: State, reg: Reg, name: str, at: Scalar, size: int) -> Reg:
    """What has not been written is some number, where the loader may know the kernel's memory."""
    first, last = _stack_range(reg, name, at, size)
    frame = state.frames[reg.frame]
    frame.depth = max(frame.depth, STACK_BYTES - first)
    if first != last:
        return number(scalar.UNKNOWN_BY_BYTES[size])
    for start, spilled in frame.overlapping(first, size):
        if spilled.reg.is_pointer:
            if start == first and size == spilled.size:
                return spilled.reg
            raise Refusal(EACCES, "invalid size of register fill")
        if start <= first and first + size <= start + spilled.size:
            return _part(spilled.reg, first - start, size, spilled.size)
    return number(scalar.UNKNOWN_BY_BYTES[size])


def _part(reg: Reg, skipped: int, size: int, of: int) -> Reg:
    if not skipped and size == of:
        return reg
    shifted = scalar.operate(RSH, reg.scalar, scalar.const(8 * skipped))
    return number(scalar.truncated(shifted, size))
