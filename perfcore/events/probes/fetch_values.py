"""Values of probes' arguments: what is looked at when a probe is hit. As parse_probe_arg() in trace_probe.c.

Of each the parser is told where in its word it begins (`at`), for the error log.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from emulator.linux.arch.architecture import Architecture
from emulator.linux.errors import EINVAL
from perfcore.abi.pt_regs import ARGUMENTS, OF_THE_KERNEL, PROGRAM_COUNTER, RESULT, find_saved
from perfcore.events.kstrtox import signed, unsigned
from perfcore.events.probes.error_log import TracingError
from perfcore.events.probes.kernel_functions import KernelFunction
from perfcore.events.probes.moment import Moment, read_number

POINTER = 8  # bytes
_MOST_STEPS = 15  # FETCH_INSN_MAX, and its end
_NO_REGISTER = "Invalid register name"
_NO_VARIABLE = "Invalid $-variable specified"
_OF_MEMORY = "memory is written +OFFSET(VALUE) or -OFFSET(VALUE)"

Number = Callable[[Moment], int | None]
"""None where memory on the way could not be read."""


class Word(NamedTuple):
    """An argument as it was written, and which word of the line it is."""

    text: str
    number: int

    def wrong(self, told: str, at: int, why: str, code: int = EINVAL) -> TracingError:
        """`told`: in the kernel's words; `at`: where in this one."""
        return TracingError(code, told, self.number, at, f"argument {self.text!r}: {why}")


class Where(NamedTuple):
    """Who defines it."""

    architecture: Architecture
    returns: bool  # the probe is at a function's return
    function: KernelFunction | None = None  # of the kernel; None: it is in a program
    address: int = 0  # of that function


class Kind(Enum):
    """Of what a value was found to be."""

    NUMBER = auto()
    IMMEDIATE = auto()
    MEMORY = auto()  # the number is its address
    COMM = auto()
    TEXT = auto()  # an immediate string


class FetchValue(NamedTuple):
    kind: Kind
    number: Number
    steps: int = 1  # of the kernel's program for it


def parse_value(text: str, where: Where, word: Word, at: int) -> FetchValue:
    """parse_probe_arg()"""
    match text[:1]:
        case "$":
            return _variable(text[1:], where, word, at)
        case "%":
            return _register(text[1:], where, word, at)
        case "@":
            if where.function is not None:
                of_file = text.startswith("@+")
                told = "File offset is not available with kprobe" if of_file else "Invalid memory address"
                raise word.wrong(told, at, "the modelled kernel has no memory of its own at known addresses")
            return _at(text[1:], word, at)
        case "+" | "-":
            return _dereferenced(text, where, word, at)
        case "\\":
            return _immediate(text[1:], word, at)
    of_btf = text[:1].isalpha() or text[:1] == "_"
    told = "BTF is not available or not supported" if of_btf else "Invalid fetch argument"
    raise word.wrong(told, at, "a value begins with one of % @ $ + - \\")


def _register(name: str, where: Where, word: Word, at: int) -> FetchValue:
    isa = where.architecture.isa
    register = find_saved(isa, name)
    if register is None:
        raise word.wrong(_NO_REGISTER, at, f"{isa} has no register %{name}")
    if where.function is None:
        constant = None if register.native else register.user
    else:
        constant = _constant_in_kernel(name, where)
        if constant is None and not _is_passed(name, where.function, where):
            why = f"in {where.function.name} the modelled kernel does not know %{name}"
            raise word.wrong(_NO_REGISTER, at, why)
    if constant is not None:
        return FetchValue(Kind.NUMBER, lambda moment: constant)
    number = where.architecture.register_names.index(register.native)
    return FetchValue(Kind.NUMBER, lambda moment: moment.register(number))


def _constant_in_kernel(name: str, where: Where) -> int | None:
    """Where a function begins."""
    isa = where.architecture.isa
    if where.returns:
        return None
    counter, behind = PROGRAM_COUNTER[isa]
    return where.address + behind if name == counter else OF_THE_KERNEL[isa].get(name)


def _is_passed(name: str, function: KernelFunction, where: Where) -> bool:
    """As a parameter that is known, or as what the function returns."""
    isa = where.architecture.isa
    if where.returns:
        return name == RESULT[isa]
    return bool(dict(zip(ARGUMENTS[isa], function.parameters, strict=False)).get(name))


def _of_function(name: str, function: KernelFunction, where: Where, word: Word, at: int) -> FetchValue:
    """$argN of one of the kernel's."""
    digits = name.removeprefix("arg")
    known = digits.isdecimal() and 0 < int(digits) <= len(function.parameters)
    if digits == name or not known:
        told = _NO_VARIABLE if digits == name else "Invalid argument number"
        raise word.wrong(told, at, f"in {function.name} the modelled kernel does not know ${name}")
    return _register(ARGUMENTS[where.architecture.isa][int(digits) - 1], where, word, at)


def _variable(name: str, where: Where, word: Word, at: int) -> FetchValue:
    if name == "retval":
        if not where.returns:
            raise word.wrong("$retval is not available on probe", at, "a function's result is known as it returns")
        return FetchValue(Kind.NUMBER, lambda moment: moment.returned)
    if name in ("comm", "COMM"):
        return FetchValue(Kind.COMM, lambda moment: None)
    if where.function is not None:
        return _of_function(name, where.function, where, word, at)
    if name == "stack":
        return FetchValue(Kind.NUMBER, lambda moment: moment.stack_pointer)
    digits = name.removeprefix("stack")
    if digits != name and digits.isdecimal():
        offset = POINTER * int(digits)
        return FetchValue(Kind.NUMBER, lambda moment: read_number(moment, moment.stack_pointer + offset) or 0)
    of_function = name.startswith("arg")
    told = "$arg* can be used only on function entry or exit" if of_function else _NO_VARIABLE
    raise word.wrong(told, at, f"there is no ${name} here")


def _at(text: str, word: Word, at: int) -> FetchValue:
    """Memory at an address, or at an offset of the probed file."""
    if text.startswith("+"):
        offset = signed(text[1:])
        if offset is None:
            raise word.wrong("Invalid file offset value", at, f"@{text} is no offset in the file")
        return FetchValue(Kind.MEMORY, lambda moment: moment.file_base + offset, 2)
    address = unsigned(text)
    if address is None:
        told = "Invalid memory address" if text[:1].isdecimal() else "Symbol is not available with uprobe"
        raise word.wrong(told, at, f"@{text} is no address; in a program symbols are not known here")
    return FetchValue(Kind.MEMORY, lambda moment: address, 2)


def _dereferenced(text: str, where: Where, word: Word, at: int) -> FetchValue:
    number, opened, inner = text.partition("(")
    if not opened:
        raise word.wrong("Dereference needs a brace", at, _OF_MEMORY)
    inside = at + outer_part(text)
    if number[1:2] == "u":  # memory of user space, as all is in a program
        number = number[0] + number[2:]
    offset = signed(number.removeprefix("+"))
    if offset is None or number.startswith(("+-", "++")):
        raise word.wrong("Invalid dereference offset", at, _OF_MEMORY)
    value, closed, _ = inner.rpartition(")")
    if not closed:
        raise word.wrong("Dereference brace is not closed", inside + len(inner), _OF_MEMORY)
    below = parse_value(value, where, word, inside)
    if below.kind in (Kind.COMM, Kind.TEXT):
        raise word.wrong("$comm can not be dereferenced", inside, f"{value} is no address")
    steps = below.steps + 1
    if steps > _MOST_STEPS:
        raise word.wrong("Dereference is too much nested", inside, "too many memory accesses")
    address = _loaded(below)

    def moved(moment: Moment) -> int | None:
        at = address(moment)
        return None if at is None else at + offset

    return FetchValue(Kind.MEMORY, moved, steps)


def _loaded(value: FetchValue) -> Number:
    """As a 64-bit number."""
    if value.kind is not Kind.MEMORY:
        return value.number
    address = value.number

    def load(moment: Moment) -> int | None:
        at = address(moment)
        return None if at is None else read_number(moment, at)

    return load


def _immediate(text: str, word: Word, at: int) -> FetchValue:
    if text.startswith('"'):
        if not text.endswith('"') or len(text) < 2:
            raise word.wrong("String is not closed with '\"'", at + 1 + len(text), "the string is not closed")
        return FetchValue(Kind.TEXT, lambda moment: None)
    number = signed(text) if text.startswith("-") else unsigned(text)
    if number is None:
        raise word.wrong("Invalid immediate value", at + 1, f"\\{text} is no number")
    return FetchValue(Kind.IMMEDIATE, lambda moment: number)


def outer_part(value: str) -> int:
    """How many characters of a dereference there are up to its parenthesis, as the kernel counts: without the u."""
    if value[:1] not in ("+", "-"):
        return 0
    number = value.partition("(")[0]
    return len(number) + 1 - (number[1:2] == "u")
