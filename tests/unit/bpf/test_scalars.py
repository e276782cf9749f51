"""What the verifier knows of a number holds for every number that it may be: random ones, and those at the edges."""

from __future__ import annotations

from random import Random

import pytest

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
    MASK64,
    MOD,
    MUL,
    NEG,
    OR,
    RSH,
    SUB,
    XOR,
    compare,
    compute,
    signed,
)
from perfcore.bpf.verifier import scalar
from perfcore.bpf.verifier.scalar import Scalar
from perfcore.bpf.verifier.tnum import Tnum

OPERATIONS = (ADD, SUB, MUL, DIV, MOD, OR, AND, XOR, LSH, RSH, ARSH, NEG)
COMPARISONS = (JEQ, JNE, JGT, JGE, JLT, JLE, JSET, JSGT, JSGE, JSLT, JSLE)


def number(random: Random) -> int:
    return random.choice(
        (
            random.getrandbits(64),
            random.getrandbits(32),
            random.randrange(16),
            -random.randrange(1, 300) & MASK64,
            ((1 << random.randrange(64)) + random.randrange(-2, 3)) & MASK64,
        )
    )


def something_known(random: Random, value: int) -> Scalar:
    """A scalar that `value` is one of: by bits, by an unsigned or a signed comparison, a constant, or nothing known."""
    mask = random.getrandbits(64) & random.getrandbits(64)
    least, most = max(value - number(random), 0), min(value + number(random), MASK64)
    of_sign = signed(value, 64)
    below = scalar.refine(JSLE, scalar.UNKNOWN, scalar.const(min(of_sign + number(random), scalar.S64_MAX)), 64)
    by_bits = scalar.operate(OR, scalar.operate(AND, scalar.UNKNOWN, scalar.const(mask)), scalar.const(value & ~mask))
    assert below is not None
    return random.choice((scalar.const(value), scalar.UNKNOWN, scalar.between(least, most), below[0], by_bits))


def holds(known: Scalar, value: int) -> bool:
    return (
        known.umin <= value <= known.umax
        and known.smin <= signed(value, 64) <= known.smax
        and known.bits.contains(Tnum(value, 0))
    )


@pytest.mark.parametrize("seed", range(4))
def test_what_is_known_holds(seed: int) -> None:
    random = Random(seed)
    for _ in range(1000):
        a, b = number(random), number(random)
        known_a, known_b = something_known(random, a), something_known(random, b)
        assert holds(known_a, a)
        for bits in (32, 64):
            operation = random.choice(OPERATIONS)
            offset = random.randrange(2) if operation in (DIV, MOD) else 0
            result = scalar.operate(operation, known_a, known_b, bits, offset)
            assert holds(result, compute(operation, a, b, bits, offset)), (operation, bits, a, b, known_a, known_b)
            comparison = random.choice(COMPARISONS)
            refine = scalar.refine if compare(comparison, a, b, bits) else scalar.refine_not
            both = refine(comparison, known_a, known_b, bits)
            assert both is not None, (comparison, bits, a, b, known_a, known_b)
            assert holds(both[0], a), (comparison, bits, a, b, known_a, known_b)
            assert holds(both[1], b), (comparison, bits, a, b, known_a, known_b)
        for size in (1, 2, 4):
            assert holds(scalar.truncated(known_a, size), a & (1 << 8 * size) - 1)
            assert holds(scalar.sign_extended(known_a, size), signed(a, 8 * size) & MASK64)


@pytest.mark.parametrize(
    ("known", "least", "most"),
    [
        (scalar.operate(AND, scalar.UNKNOWN, scalar.const(12)), 0, 12),
        (scalar.operate(RSH, scalar.UNKNOWN, scalar.const(60)), 0, 15),
        (scalar.operate(MOD, scalar.UNKNOWN, scalar.const(10)), 0, 9),
        (scalar.operate(ADD, scalar.between(3, 5), scalar.between(10, 20)), 13, 25),
        (scalar.operate(SUB, scalar.between(10, 20), scalar.between(3, 5)), 5, 17),
        (scalar.operate(MUL, scalar.between(2, 3), scalar.between(4, 5)), 8, 15),
        (scalar.operate(LSH, scalar.between(1, 3), scalar.const(4)), 16, 48),
        (scalar.operate(ADD, scalar.UNKNOWN, scalar.const(1), 32), 0, 0xFFFF_FFFF),
        (scalar.truncated(scalar.UNKNOWN, 2), 0, 0xFFFF),
    ],
)
def test_it_is_what_can_be_known(known: Scalar, least: int, most: int) -> None:
    assert (known.umin, known.umax) == (least, most)


def test_what_never_is_so_is_known() -> None:
    small = scalar.between(0, 5)
    assert scalar.refine(JGT, small, scalar.const(5), 64) is None
    assert scalar.refine_not(JLE, small, scalar.const(5), 64) is None
    assert scalar.refine(JEQ, small, scalar.const(6), 64) is None
    assert scalar.refine(JSLT, small, scalar.const(0), 64) is None
    assert scalar.refine(JSET, small, scalar.const(8), 64) is None
    assert scalar.refine_not(JSET, scalar.const(8), scalar.const(8), 64) is None
    assert scalar.refine(JGT, scalar.UNKNOWN, scalar.const(MASK64), 64) is None
