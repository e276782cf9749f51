"""Functions that rows of differences.toml name: whether two final states differ only as the row's reason says."""

from __future__ import annotations

import re
import struct

from tests.instructions.comparison import Accept
from tests.instructions.form import Case
from tests.instructions.protocol import FAULT_WORDS, States
from tests.instructions.x86_64.forms import ALL_MEMORY, MEMORY, STACK
from tests.instructions.x86_64.state import LAYOUT, extended

_RCX, _RSP = LAYOUT.index("rcx"), LAYOUT.index("rsp")
_RFLAGS, _ZF = LAYOUT.index("rflags"), 1 << 6
_FIRST_XMM, _FIRST_MEMORY = LAYOUT.index("xmm0"), LAYOUT.index("memory+0x0")
_MXCSR, _SI_CODE, _SI_ADDR = LAYOUT.index("mxcsr"), LAYOUT.index("si_code"), LAYOUT.index("si_addr")
_CF, _AF, _OF = 1 << 0, 1 << 4, 1 << 11
_SHIFT = re.compile(r"(\w+) [rm](\d+)(?:, r\d+)??(?:, (imm8|imm|r8))?(?: \(.*)?$")
_LOW_HALF = 0xFFFF_FFFF
_X87_WORDS, _ERROR_SUMMARY = LAYOUT.index("x87_words"), 0x80 << 16
_FIRST_X87, _ROUNDED_UP = LAYOUT.index("st0"), 0x200 << 16  # C1
_SIGFPE, _SIGSEGV = 8, 11
_STATUS_AT, _LOW_WORD = 16, 0xFFFF
_MAPERR, _ACCERR = 1, 2
_STACK_TOP, _STACK_BYTES = 0x7FFF_FFFF_F000, 8 << 20
_PAGE, _VECTOR = 4096, 16
_WORD_BITS = 16
_COUNT_MASK = 31


def count_beyond_operand(case: Case, reference: States, machine: States) -> bool:
    """Of a double shift of 16 bits: by CL, or by the immediate at its end."""
    count = case.encoding.code[-1] if case.form.name.endswith("imm8") else reference.before[_RCX]
    return count & _COUNT_MASK > _WORD_BITS and reference.after[0] == machine.after[0]


def shifted_flags(case: Case, reference: States, machine: States) -> bool:
    """Of shifts and rotations: OF where the count is neither 0 nor 1; of shifts also AF where it is not 0, and CF
    where it is the operand's size or more."""
    mnemonic, operand, by = _SHIFT.match(case.form.name).groups()  # type: ignore[union-attr]
    size = int(operand)
    count = {"imm8": case.encoding.code[-1], "r8": reference.before[_RCX], None: 1}.get(by, 1)
    count &= 63 if size == 64 else _COUNT_MASK
    undefined = _OF if count > 1 else 0
    if mnemonic[0] == "s" and count:
        undefined |= _AF | (_CF if count >= size else 0)
    words = differing(case, reference, machine)
    return all(word == _RFLAGS and not (one ^ other) & ~undefined for word, one, other in words)


def differing(case: Case, reference: States, machine: States) -> list[tuple[int, int, int]]:
    """(word, reference's, machine's) of those that differ; without memory that the case does not use."""
    uses_memory = case.encoding.kind & (MEMORY | STACK | ALL_MEMORY)
    words = slice(None if uses_memory else LAYOUT.words - LAYOUT.memory_words)
    pairs = zip(reference.after[words], machine.after[words], strict=True)
    return [(word, one, other) for word, (one, other) in enumerate(pairs) if one != other]


def zero_source(case: Case, reference: States, machine: States) -> bool:
    """The destination's upper half, of a scan that found no bit: ZF is set in both. Other flags are undefined."""
    found_nothing = all(state.after[_RFLAGS] & _ZF for state in (reference, machine))
    words = [words for words in differing(case, reference, machine) if words[0] != _RFLAGS]
    return found_nothing and all(one & _LOW_HALF == other & _LOW_HALF for _, one, other in words)


def approximation(case: Case, reference: States, machine: States) -> bool:
    """Registers' floats within twice 1.5 * 2^-12 of each other: each is that near to the true value."""
    for word, one, other in differing(case, reference, machine):
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
    """Only the reference faults: of bytes that the mask does not select; or MASKMOVQ does elsewhere, as MMX."""
    if reference.after[:_SI_ADDR] == machine.after[:_SI_ADDR] and reference.after[0] == _SIGSEGV:
        words = differing(case, reference, machine)
        return all(word == _SI_ADDR or (_X87_WORDS <= word < _FIRST_XMM and word != _MXCSR) for word, _, _ in words)
    return (reference.after[0], machine.after[0]) == (_SIGSEGV, 0)


def pending_exception(case: Case, reference: States, machine: States) -> bool:
    """Of the x87, before the instruction: only the machine raises it; the reference may raise one of SSE."""
    pending = reference.before[_X87_WORDS] & _ERROR_SUMMARY
    return bool(pending) and machine.after[0] == _SIGFPE and reference.after[0] in (0, _SIGFPE)


def last_place(case: Case, reference: States, machine: States) -> bool:
    """Results of the x87 that are neighbours, and which way they were rounded."""
    words = {word for word, one, other in differing(case, reference, machine) if one ^ other != _ROUNDED_UP}
    numbers = {(word - _FIRST_X87) // 2 for word in words}
    return numbers <= set(range(8)) and all(
        abs(_ordered(reference.after, number) - _ordered(machine.after, number)) <= 1 for number in numbers
    )


def _ordered(state: tuple[int, ...], number: int) -> int:
    """ST(number), so that neighbours of the same sign are integers next to each other."""
    significand, exponent = extended(state, number)
    return exponent << 63 | significand & (1 << 63) - 1


def abandoned_store(case: Case, reference: States, machine: States) -> bool:
    """The x87 stored nothing: of memory that faults, the machine's status tells the exception already; or, of an
    exception that is not masked, it raises that here, and the reference with the next instruction that waits."""
    differ = {word for word, _, _ in differing(case, reference, machine)}
    if faulted(case, reference, machine):
        status = reference.after[_X87_WORDS] ^ machine.after[_X87_WORDS]
        return differ == {_X87_WORDS} and status & ~(_LOW_WORD << _STATUS_AT) == 0
    if (reference.after[0], machine.after[0]) == (_SIGSEGV, _SIGFPE):
        return differ <= {*range(FAULT_WORDS), _X87_WORDS}
    pending = reference.after[_X87_WORDS] & machine.after[_X87_WORDS] & _ERROR_SUMMARY
    return (
        bool(pending) and (reference.after[0], machine.after[0]) == (0, _SIGFPE)
        and differ <= {*range(FAULT_WORDS), LAYOUT.index("second_way")}
    )  # fmt: skip


def pushed(case: Case, reference: States, machine: States) -> bool:
    """A call that faults: the machine has written what lies below the stack pointer, and nothing else differs."""
    below = LAYOUT.words - LAYOUT.memory_words
    return (
        faulted(case, reference, machine) and reference.after[_RSP] == machine.after[_RSP]
        and all(word >= below for word, _, _ in differing(case, reference, machine))
    )  # fmt: skip


def second_half(case: Case, reference: States, machine: States) -> bool:
    """The same fault in the first of two pages; of the second one memory differs."""
    words = {word for word, _, _ in differing(case, reference, machine)}
    return (
        faulted(case, reference, machine)
        and reference.after[_SI_ADDR] % _PAGE > _PAGE - _VECTOR and all(word >= _FIRST_MEMORY for word in words)
    )  # fmt: skip


def of_the_stack(case: Case, reference: States, machine: States) -> bool:
    """A jump where the machine's stack lies, which is not executable, and nothing of the reference's."""
    faults = reference.after[:_SI_ADDR], machine.after[:_SI_ADDR]
    differ = {word for word, _, _ in differing(case, reference, machine)}
    return (
        faults == ((_SIGSEGV, _MAPERR), (_SIGSEGV, _ACCERR)) and differ == {_SI_CODE}
        and _STACK_TOP - _STACK_BYTES <= reference.after[_SI_ADDR] < _STACK_TOP
    )  # fmt: skip


def other_operand(case: Case, reference: States, machine: States) -> bool:
    """The same fault of another operand, which lies in the same page."""
    words = {word for word, _, _ in differing(case, reference, machine)}
    return (
        (reference.after[0], words) == (_SIGSEGV, {_SI_ADDR})
        and reference.after[_SI_ADDR] // _PAGE == machine.after[_SI_ADDR] // _PAGE
    )  # fmt: skip


def saved_image(case: Case, reference: States, machine: States) -> bool:
    """FXSAVE: what is reserved, and MXCSR_MASK; where it faults, how much it has written before."""
    words = differing(case, reference, machine)
    if reference.after[0]:
        return faulted(case, reference, machine) and all(word >= _FIRST_MEMORY for word, _, _ in words)
    return all(word >= _FIRST_MEMORY and not (one ^ other) & _LOW_WORD for word, one, other in words)


FUNCTIONS: dict[str, Accept] = {
    "count_beyond_operand": count_beyond_operand, "zero_source": zero_source, "approximation": approximation,
    "faulted": faulted, "last_place": last_place, "pending_exception": pending_exception, "unselected": unselected,
    "shifted_flags": shifted_flags, "saved_image": saved_image, "second_half": second_half, "pushed": pushed,
    "of_the_stack": of_the_stack, "other_operand": other_operand, "abandoned_store": abandoned_store,
}  # fmt: skip
