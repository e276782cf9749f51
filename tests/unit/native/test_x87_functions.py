"""x87's transcendental instructions give the number in extended format that is nearest to the true value.

The true value is of the operands as they are, with Intel's pi of 66 bits where an angle is reduced (Intel SDM vol. 1,
"Approximation of Pi"). mpmath computes it with 400 bits.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath
from mpmath import mpf

import c_programs
from unit.native.test_x87 import lines_here, lines_of_guest

FOLDER = Path(__file__).parent
ROUNDS = os.environ.get("X87_ROUNDS", "500")  # operands of each function
PRECISION_BITS = 400
BIAS, FRACTION_BITS, LEAST_EXPONENT = 16383, 63, -16445
HALF_OF_INTELS_PI, HALF_OF_INTELS_PI_BITS = 0x3243F6A8885A308D3, 65  # of them behind the binary point
ROUNDED_UP, OUT_OF_RANGE = 0x200, 0x400  # of the status word

Function = Callable[[mpf, mpf], mpf]


@dataclass(frozen=True, slots=True)
class Case:
    """A line of the program."""

    function: str
    y: mpf
    x: mpf
    result: mpf
    status: int

    @classmethod
    def parse(cls, line: str) -> Case:
        function, y, x, result, status = line.split()
        return cls(function, number(y), number(x), number(result), int(status, 16))


def number(text: str) -> mpf:
    sign_exponent, significand = (int(part, 16) for part in text.split(":"))
    magnitude = mpmath.ldexp(mpf(significand), ((sign_exponent & 0x7FFF) or 1) - BIAS - FRACTION_BITS)
    return -magnitude if sign_exponent >> 15 else magnitude


def reduced(angle: mpf) -> tuple[mpf, int]:
    right_angle = mpmath.ldexp(mpf(HALF_OF_INTELS_PI), -HALF_OF_INTELS_PI_BITS)
    quadrants = int(mpmath.nint(angle / right_angle))
    return angle - quadrants * right_angle, quadrants % 4


def sine(_: mpf, angle: mpf) -> mpf:
    rest, quadrant = reduced(angle)
    return (-1 if quadrant & 2 else 1) * (mpmath.cos(rest) if quadrant & 1 else mpmath.sin(rest))


def cosine(_: mpf, angle: mpf) -> mpf:
    rest, quadrant = reduced(angle)
    return (-1 if (quadrant + 1) & 2 else 1) * (mpmath.sin(rest) if quadrant & 1 else mpmath.cos(rest))


FUNCTIONS: dict[str, Function] = {
    "f2xm1": lambda _, x: mpmath.expm1(x * mpmath.ln2),
    "fyl2x": lambda y, x: y * mpmath.log(x) / mpmath.ln2,
    "fyl2xp1": lambda y, x: y * mpmath.log1p(x) / mpmath.ln2,
    "fpatan": mpmath.atan2,
    "fsin": sine,
    "fcos": cosine,
    "fptan": lambda y, x: sine(y, x) / cosine(y, x),
    "sine_of_fsincos": sine,
    "cosine_of_fsincos": cosine,
}


def is_nearest(case: Case) -> bool:
    true = FUNCTIONS[case.function](case.y, case.x)
    if not true:
        return not case.result
    last_bit = mpmath.ldexp(mpf(1), max(int(mpmath.frexp(true)[1]) - 1 - FRACTION_BITS, LEAST_EXPONENT))
    return bool(abs(case.result - true) <= last_bit / 2)


def same_status(ours: Case, here: Case) -> bool:
    """But for which way it was rounded."""
    return not (ours.status ^ here.status) & ~ROUNDED_UP


@mpmath.workprec(PRECISION_BITS)
def test_results_are_the_nearest_numbers(tmp_path: Path) -> None:
    program = c_programs.build(FOLDER / "x87_functions.c", "x86_64", tmp_path / "functions")
    cases = [Case.parse(line) for line in lines_of_guest(program, ROUNDS)]
    assert {case.function for case in cases} == set(FUNCTIONS)
    assert [case for case in cases if not case.status & OUT_OF_RANGE and not is_nearest(case)] == []
    if platform.machine() == "x86_64":
        here = [Case.parse(line) for line in lines_here(program, ROUNDS)]
        assert [pair for pair in zip(cases, here, strict=True) if not same_status(*pair)] == []
