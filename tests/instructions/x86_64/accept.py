"""Functions that rows of differences.toml name: whether two final states differ only as the row's reason says."""

from __future__ import annotations

import struct

from tests.instructions.comparison import Accept
from tests.instructions.form import Case
from tests.instructions.protocol import FAULT_WORDS, States
from tests.instructions.x86_64.state import LAYOUT, extended

_RCX = LAYOUT.index("rcx")
_RFLAGS, _ZF = LAYOUT.index("rflags"), 1 << 6
_FIRST_XMM = LAYOUT.index("xmm0")
_LOW_HALF = 0xFFFF_FFFF
_X87_WORDS, _ERROR_SUMMARY = LAYOUT.index("x87_words"), 0x80 << 16
_FIRST_X87, _ROUNDED_UP = LAYOUT.index("st0"), 0x200 << 16  # C1
_SIGFPE, _SIGSEGV = 8, 11
_WORD_BITS = 16
_COUNT_MASK = 31


def count_beyond_operand(case: Case, reference: States, machine: States) -> bool:
    """Of a double shift of 16 bits: by CL, or by the immediate at its end."""
    count = case.encoding.code[-1] if case.form.name.endswith("imm8") else reference.before[_RCX]
    return count & _COUNT_MASK > _WORD_BITS and reference.after[0] == machine.after[0]


def differing(reference: States, machine: States) -> list[tuple[int, int, int]]:
    """(word, reference's, machine's) of those that differ."""
    pairs = zip(reference.after, machine.after, strict=True)
    return [(word, one, other) for word, (one, other) in enumerate(pairs) if one != other]


def zero_source(case: Case, reference: States, machine: States) -> bool:
    """The destination's upper half, of a scan that found no bit: ZF is set in both."""
    return all(
        state.after[_RFLAGS] & _ZF for state in (reference, machine)
    ) and all(one & _LOW_HALF == other & _LOW_HALF for _, one, other in differing(reference, machine))  # fmt: skip


def approximation(case: Case, reference: States, machine: States) -> bool:
    """Registers' floats within twice 1.5 * 2^-12 of each other: each is that near to the true value."""
    for word, one, other in differing(reference, machine):
        if not _FIRST_XMM <= word < _FIRST_XMM + 32:
            return False
        for shift in (0, 32):
            first, second = (_single(value >> shift & _LOW_HALF) for value in (one, other))
            if one >> shift & _LOW_HALF == other >> shift & _LOW_HALF:
                continue
            if not (first == second or abs(first - second) <= abs(first) * 2 * 1.5 / 4096):
                return False
    return True


def _single(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]  # type: ignore[no-any-return]


def faulted(case: Case, reference: States, machine: States) -> bool:
    """The same fault at the same place."""
    return reference.after[0] != 0 and reference.after[:FAULT_WORDS] == machine.after[:FAULT_WORDS]


def unselected(case: Case, reference: States, machine: States) -> bool:
    """Only the reference faults: of bytes that the mask does not select."""
    return (reference.after[0], machine.after[0]) == (_SIGSEGV, 0)


def pending_exception(case: Case, reference: States, machine: States) -> bool:
    """Of the x87, before the instruction: only the machine raises it."""
    return bool(reference.before[_X87_WORDS] & _ERROR_SUMMARY) and (reference.after[0], machine.after[0]) == (
        0,
        _SIGFPE,
    )


def last_place(case: Case, reference: States, machine: States) -> bool:
    """Results of the x87 that are neighbours, and which way they were rounded."""
    words = {word for word, one, other in differing(reference, machine) if one ^ other != _ROUNDED_UP}
    numbers = {(word - _FIRST_X87) // 2 for word in words}
    return numbers <= set(range(8)) and all(
        abs(_ordered(reference.after, number) - _ordered(machine.after, number)) <= 1 for number in numbers
    )


def _ordered(state: tuple[int, ...], number: int) -> int:
    """ST(number), so that neighbours of the same sign are integers next to each other."""
    significand, exponent = extended(state, number)
    return exponent << 63 | significand & (1 << 63) - 1


def address(case: Case, reference: States, machine: States) -> bool:
    """Both fault, at the same place; nothing but what siginfo_t says of it differs."""
    return reference.after[3:] == machine.after[3:] and bool(reference.after[0] and machine.after[0])


FUNCTIONS: dict[str, Accept] = {
    "count_beyond_operand": count_beyond_operand, "zero_source": zero_source, "approximation": approximation,
    "faulted": faulted, "last_place": last_place, "pending_exception": pending_exception, "unselected": unselected,
    "address": address,
}  # fmt: skip
