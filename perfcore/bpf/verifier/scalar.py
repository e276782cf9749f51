"""Scalar: what is known of a number in a register: its bits, and its bounds, signed and unsigned.

Whatever an operation gives holds for every number that its operands may be; it may be less than could be known.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from perfcore.bpf.instructions import (
    ADD,
    AND,
    ARSH,
    DIV,
    JEQ,
    JGE,
    JGT,
    JLE,
    JLT,
    JNE,
    JSET,
    JSGE,
    JSGT,
    JSLE,
    JSLT,
    LSH,
    MOD,
    MUL,
    NEG,
    OR,
    RSH,
    SUB,
    XOR,
    compute,
    signed,
)
from perfcore.bpf.verifier import tnum
from perfcore.bpf.verifier.tnum import MASK64, Tnum

U64_MAX, U32_MAX = MASK64, (1 << 32) - 1
S64_MAX, S64_MIN = (1 << 63) - 1, -(1 << 63)


class Scalar(NamedTuple):
    """64 bits."""

    bits: Tnum
    umin: int
    umax: int
    smin: int
    smax: int

    @property
    def is_const(self) -> bool:
        return self.umin == self.umax

    @property
    def value(self) -> int:
        """Of a constant, unsigned."""
        return self.umin

    def contains(self, other: Scalar) -> bool:
        return (
            self.umin <= other.umin
            and other.umax <= self.umax
            and self.smin <= other.smin
            and other.smax <= self.smax
            and self.bits.contains(other.bits)
        )

    def __str__(self) -> str:
        if self.is_const:
            return f"{signed(self.value, 64)}"
        known = []
        if (self.smin, self.smax) != (S64_MIN, S64_MAX):
            known += [f"smin={self.smin}", f"smax={self.smax}"]
        if (self.umin, self.umax) != (0, U64_MAX):
            known += [f"umin={self.umin}", f"umax={self.umax}"]
        if self.bits.mask not in (MASK64, (1 << self.umax.bit_length()) - 1):
            known.append(f"var_off=({self.bits.value:#x}; {self.bits.mask:#x})")
        return f"({','.join(known)})" if known else "()"


UNKNOWN = Scalar(tnum.UNKNOWN, 0, U64_MAX, S64_MIN, S64_MAX)
UNKNOWN_BY_BYTES = {size: Scalar(tnum.UNKNOWN.low(8 * size), 0, (1 << 8 * size) - 1, 0, (1 << 8 * size) - 1)
                    for size in (1, 2, 4)} | {8: UNKNOWN}  # fmt: skip


@cache
def const(value: int) -> Scalar:
    value &= MASK64
    number = signed(value, 64)
    return Scalar(Tnum(value, 0), value, value, number, number)


def between(least: int, most: int) -> Scalar:
    """Unsigned."""
    return _settled(tnum.UNKNOWN, least, most, S64_MIN, S64_MAX) or UNKNOWN


def signed_between(least: int, most: int) -> Scalar:
    return _settled(tnum.UNKNOWN, 0, U64_MAX, least, most) or UNKNOWN


def _settled(bits: Tnum, umin: int, umax: int, smin: int, smax: int) -> Scalar | None:
    """Each of what is known told of the others. None: there is no such number."""
    for _ in range(2):
        umin, umax = max(umin, bits.value), min(umax, bits.value | bits.mask)
        if smin >= 0 or smax < 0:  # one sign: both orders are the same
            umin, umax = max(umin, smin & MASK64), min(umax, smax & MASK64)
        if umax <= S64_MAX or umin > S64_MAX:
            smin, smax = max(smin, signed(umin, 64)), min(smax, signed(umax, 64))
        if umin > umax or smin > smax:
            return None
        common = tnum.between(umin, umax)
        if (bits.value ^ common.value) & ~bits.mask & ~common.mask & MASK64:
            return None
        bits = bits.intersect(common)
    if bits.is_const:
        return const(bits.value)
    return Scalar(bits, umin, umax, smin, smax)


def _known_bits(bits: Tnum, umin: int = 0, umax: int = U64_MAX, smin: int = S64_MIN, smax: int = S64_MAX) -> Scalar:
    known = _settled(bits, umin, umax, smin, smax)
    assert known is not None, f"an operation gives nothing: {bits} {umin} {umax} {smin} {smax}"
    return known


# ---- operations


def operate(operation: int, a: Scalar, b: Scalar, bits: int = 64, offset: int = 0) -> Scalar:
    """An ALU operation; those of 32 bits clear the upper ones."""
    if bits == 32:
        a, b = truncated(a, 4), truncated(b, 4)
    if a.is_const and b.is_const:
        return const(compute(operation, a.value, b.value, bits, offset))
    if operation in (LSH, RSH, ARSH):
        return _shifted(operation, a, b, bits)
    if operation == NEG:
        operation, a, b = SUB, const(0), a
    found = _UNSIGNED_DIVISION[operation](a, b) if operation in _UNSIGNED_DIVISION else _OPERATIONS[operation](a, b)
    if operation in _UNSIGNED_DIVISION and offset:
        found = UNKNOWN
    return truncated(found, 4) if bits == 32 else found


def truncated(scalar: Scalar, size: int) -> Scalar:
    """The low `size` bytes, with zeroes above."""
    most = (1 << 8 * size) - 1
    if scalar.umax <= most:
        return scalar
    low = scalar.bits.low(8 * size)
    if scalar.umin >> 8 * size == scalar.umax >> 8 * size:
        return _known_bits(low, scalar.umin & most, scalar.umax & most)
    if size < 8 and scalar.smin >> 8 * size == scalar.smax >> 8 * size:
        return _known_bits(low, scalar.smin & most, scalar.smax & most)
    return _known_bits(low)


def sign_extended(scalar: Scalar, size: int) -> Scalar:
    """The low `size` bytes, as a signed number."""
    low = truncated(scalar, size)
    sign = 1 << 8 * size - 1
    if low.is_const:
        return const(signed(low.value, 8 * size))
    if low.umax < sign:
        return low
    if low.umin >= sign:
        return operate(OR, low, const(-sign))
    return signed_between(-sign, sign - 1)


def _added(a: Scalar, b: Scalar) -> Scalar:
    umin, umax = a.umin + b.umin, a.umax + b.umax
    if umin >> 64 != umax >> 64:
        umin, umax = 0, U64_MAX
    return _known_bits(a.bits.add(b.bits), umin & MASK64, umax & MASK64, *_within(a.smin + b.smin, a.smax + b.smax))


def _subtracted(a: Scalar, b: Scalar) -> Scalar:
    umin, umax = a.umin - b.umax, a.umax - b.umin
    if umin >> 64 != umax >> 64:
        umin, umax = 0, U64_MAX
    return _known_bits(a.bits.sub(b.bits), umin & MASK64, umax & MASK64, *_within(a.smin - b.smax, a.smax - b.smin))


def _within(smin: int, smax: int) -> tuple[int, int]:
    return (smin, smax) if smin >= S64_MIN and smax <= S64_MAX else (S64_MIN, S64_MAX)


def _multiplied(a: Scalar, b: Scalar) -> Scalar:
    most = a.umax * b.umax
    bounds = (a.umin * b.umin, most) if most <= U64_MAX else (0, U64_MAX)
    corners = [x * y for x in (a.smin, a.smax) for y in (b.smin, b.smax)]
    return _known_bits(a.bits.multiply(b.bits), *bounds, *_within(min(corners), max(corners)))


def _anded(a: Scalar, b: Scalar) -> Scalar:
    smin = 0 if a.smin >= 0 or b.smin >= 0 else S64_MIN
    return _known_bits(a.bits.bitwise_and(b.bits), 0, min(a.umax, b.umax), smin)


def _ored(a: Scalar, b: Scalar) -> Scalar:
    return _known_bits(a.bits.bitwise_or(b.bits), max(a.umin, b.umin))


def _xored(a: Scalar, b: Scalar) -> Scalar:
    return _known_bits(a.bits.bitwise_xor(b.bits))


def _quotient(a: Scalar, b: Scalar) -> Scalar:
    """0 where the divisor is."""
    return between(0, a.umax // max(b.umin, 1))


def _modulo(a: Scalar, b: Scalar) -> Scalar:
    """The dividend itself where the divisor is 0."""
    return between(0, min(a.umax, b.umax - 1) if b.umin else a.umax)


def _shifted(operation: int, a: Scalar, b: Scalar, bits: int) -> Scalar:
    """By a constant; by another number nothing is known but that it does not grow to the right."""
    most = U64_MAX if bits == 64 else U32_MAX
    if not b.is_const:
        return between(0, a.umax if operation == RSH else most)
    by = b.value & bits - 1
    if operation == RSH:
        return _known_bits(a.bits.shifted_right(by), a.umin >> by, a.umax >> by)
    if operation == LSH:
        fits = a.umax << by <= most
        bounds = (a.umin << by, a.umax << by) if fits else (0, U64_MAX)
        found = _known_bits(a.bits.shifted_left(by), *bounds)
        return truncated(found, bits // 8)
    wide = a if bits == 64 else sign_extended(a, 4)
    return truncated(signed_between(wide.smin >> by, wide.smax >> by), bits // 8)


_OPERATIONS = {ADD: _added, SUB: _subtracted, MUL: _multiplied, AND: _anded, OR: _ored, XOR: _xored}
_UNSIGNED_DIVISION = {DIV: _quotient, MOD: _modulo}

# ---- comparisons

NEGATED = {JEQ: JNE, JNE: JEQ, JGT: JLE, JLE: JGT, JLT: JGE, JGE: JLT, JSGT: JSLE, JSLE: JSGT, JSLT: JSGE, JSGE: JSLT}
_MIRRORED = {JGT: JLT, JLT: JGT, JGE: JLE, JLE: JGE, JSGT: JSLT, JSLT: JSGT, JSGE: JSLE, JSLE: JSGE}


def refine(operation: int, a: Scalar, b: Scalar, bits: int) -> tuple[Scalar, Scalar] | None:
    """What both are known to be where `a OP b` holds; None: it never does."""
    if bits == 64:
        return _refined(operation, a, b)
    if operation in _SIGNED_SETS:
        found = _refined(operation, sign_extended(a, 4), sign_extended(b, 4))
    else:
        found = _refined(operation, truncated(a, 4), truncated(b, 4))
    return None if found is None else (_of_low_half(a, found[0]), _of_low_half(b, found[1]))


def refine_not(operation: int, a: Scalar, b: Scalar, bits: int) -> tuple[Scalar, Scalar] | None:
    """... where it does not hold."""
    if operation in NEGATED:
        return refine(NEGATED[operation], a, b, bits)
    common = a.bits.value & b.bits.value
    return None if (common & U32_MAX if bits == 32 else common) else (a, b)


_SIGNED_SETS = (JSGT, JSGE, JSLT, JSLE)


def _of_low_half(whole: Scalar, half: Scalar) -> Scalar:
    """`half`, where that is all of the register."""
    if whole.umax > U32_MAX:
        low = half.bits.low(32)
        return _settled(whole.bits.intersect(Tnum(low.value, low.mask | MASK64 ^ U32_MAX)), *whole[1:]) or whole
    return truncated(half, 4)


def _refined(operation: int, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar] | None:
    if operation in (JLT, JLE, JSLT, JSLE):
        found = _refined(_MIRRORED[operation], b, a)
        return None if found is None else (found[1], found[0])
    first, second = _REFINEMENTS[operation](a, b)
    return None if first is None or second is None else (first, second)


Refined = tuple[Scalar | None, Scalar | None]


def _equal(a: Scalar, b: Scalar) -> Refined:
    if (a.bits.value ^ b.bits.value) & ~a.bits.mask & ~b.bits.mask & MASK64:
        return None, None
    bits = a.bits.intersect(b.bits)
    both = _settled(bits, max(a.umin, b.umin), min(a.umax, b.umax), max(a.smin, b.smin), min(a.smax, b.smax))
    return both, both


def _different(a: Scalar, b: Scalar) -> Refined:
    if a.is_const and b.is_const and a.value == b.value:
        return None, None
    return _without(a, b), _without(b, a)


def _without(a: Scalar, b: Scalar) -> Scalar | None:
    """`a` is not the constant `b`: known where that is one of its bounds."""
    if not b.is_const:
        return a
    value, number = b.value, signed(b.value, 64)
    umin, umax = a.umin + (a.umin == value), a.umax - (a.umax == value)
    return _settled(a.bits, umin, umax, a.smin + (a.smin == number), a.smax - (a.smax == number))


def _above(a: Scalar, b: Scalar) -> Refined:
    return (
        _settled(a.bits, max(a.umin, b.umin + 1), a.umax, a.smin, a.smax),
        _settled(b.bits, b.umin, min(b.umax, a.umax - 1), b.smin, b.smax),
    )


def _at_least(a: Scalar, b: Scalar) -> Refined:
    return (
        _settled(a.bits, max(a.umin, b.umin), a.umax, a.smin, a.smax),
        _settled(b.bits, b.umin, min(b.umax, a.umax), b.smin, b.smax),
    )


def _signed_above(a: Scalar, b: Scalar) -> Refined:
    return (
        _settled(a.bits, a.umin, a.umax, max(a.smin, b.smin + 1), a.smax),
        _settled(b.bits, b.umin, b.umax, b.smin, min(b.smax, a.smax - 1)),
    )


def _signed_at_least(a: Scalar, b: Scalar) -> Refined:
    return (
        _settled(a.bits, a.umin, a.umax, max(a.smin, b.smin), a.smax),
        _settled(b.bits, b.umin, b.umax, b.smin, min(b.smax, a.smax)),
    )


def _common_bits(a: Scalar, b: Scalar) -> Refined:
    """JSET: some bit is set in both. Which one is not remembered: programs that ask for many flags would have a state
    for each set of them."""
    if not (a.bits.value | a.bits.mask) & (b.bits.value | b.bits.mask):
        return None, None
    return a, b


_REFINEMENTS = {
    JEQ: _equal,
    JNE: _different,
    JGT: _above,
    JGE: _at_least,
    JSGT: _signed_above,
    JSGE: _signed_at_least,
    JSET: _common_bits,
}
