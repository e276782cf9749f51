"""Arguments of probes: Linux's fetch-arg grammar, from text to what a hit tells. As parse_probe_arg() in trace_probe.c.

``NAME=VALUE:TYPE``, where VALUE is ``%REGISTER``, ``@ADDRESS``, ``@+OFFSET`` in the file, ``$stack``, ``$stackN``,
``$retval``, ``$comm``, ``\\IMMEDIATE``, or ``+OFFSET(VALUE)`` for what is in memory there. TYPE may be an array's,
``u32[4]``, and a bit field's, ``b4@8/32``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from emulator.linux.arch.architecture import Architecture
from emulator.linux.errors import E2BIG, EINVAL, LinuxError
from perfcore.abi.pt_regs import ARGUMENTS, OF_THE_KERNEL, PROGRAM_COUNTER, RESULT, find_saved
from perfcore.abi.tracepoints import Value
from perfcore.events.c_numbers import signed, unsigned
from perfcore.events.probes.fetch_types import DEFAULT, FETCH_TYPES, FetchType, ProbeField
from perfcore.events.probes.kernel_functions import KernelFunction
from perfcore.events.probes.moment import Moment, read_number, read_string

MOST_ARGUMENTS = 128  # MAX_TRACE_ARGS
_MOST_ARRAY = 64  # MAX_ARRAY_LEN
_MOST_NAME = 32  # MAX_ARG_NAME_LEN
_MOST_TEXT = 63  # MAX_ARGSTR_LEN
_MOST_STEPS = 15  # FETCH_INSN_MAX, and its end
_MOST_BYTES = 3072  # MAX_PROBE_EVENT_SIZE: of all arguments, strings' contents apart
_POINTER = 8  # bytes
_RESERVED = {"common_type", "common_flags", "common_preempt_count", "common_pid", "common_tgid"} | {
    *("__probe_ip", "__probe_ret_ip", "__probe_func")
}
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_BITS = re.compile(r"b(?P<width>\w+)@(?P<offset>\w+)/(?P<size>\w+)")

Number = Callable[[Moment], int | None]
"""None where memory on the way could not be read."""
Fetch = Callable[[Moment, int], Value]
"""With how many bytes there are for a string."""


class Where(NamedTuple):
    """Who defines it."""

    architecture: Architecture
    returns: bool  # the probe is at a function's return
    function: KernelFunction | None = None  # of the kernel; None: it is in a program
    address: int = 0  # of that function


@dataclass(frozen=True, slots=True)
class Argument:
    """One that has been understood."""

    name: str
    text: str  # behind the name
    type: FetchType
    count: int  # of an array; 0: it is none
    fetch: Fetch

    @property
    def field(self) -> ProbeField:
        return ProbeField(self.type.field, self.name, self.count)

    @property
    def print_format(self) -> str:
        one = self.type.print_format
        return f"{self.name}=" + (f"{{{','.join([one] * self.count)}}}" if self.count else one)

    @property
    def printed(self) -> list[str]:
        """C, over REC."""
        elements = [f"{self.name}[{index}]" for index in range(self.count)] or [self.name]
        return [f"__get_str({element})" if self.type.is_string else f"REC->{element}" for element in elements]

    def is_like(self, other: Argument) -> bool:
        """Whether one event can have both."""
        return (self.name, self.type, self.count) == (other.name, other.type, other.count)


class _Kind(Enum):
    """Of what a value was found to be."""

    NUMBER = auto()
    IMMEDIATE = auto()
    MEMORY = auto()  # the number is its address
    COMM = auto()
    TEXT = auto()  # an immediate string


class _Value(NamedTuple):
    kind: _Kind
    number: Number
    steps: int = 1  # of the kernel's program for it


def is_name(text: str) -> bool:
    """is_good_name()"""
    return _NAME.fullmatch(text) is not None


def parse_arguments(texts: Collection[str], where: Where) -> tuple[Argument, ...]:
    """Raises LinuxError."""
    if len(texts) > MOST_ARGUMENTS:
        raise LinuxError(E2BIG, f"{len(texts)} arguments: a probe has at most {MOST_ARGUMENTS}")
    arguments: list[Argument] = []
    for number, text in enumerate(texts, start=1):
        arguments.append(_parse(text, number, {argument.name for argument in arguments}, where))
        if sum(argument.field.size for argument in arguments) > _MOST_BYTES:
            raise LinuxError(E2BIG, f"argument {text!r}: up to this one, they have more than {_MOST_BYTES} bytes")
    return tuple(arguments)


def _wrong(text: str, why: str) -> LinuxError:
    return LinuxError(EINVAL, f"argument {text!r}: {why}")


def _parse(text: str, number: int, taken: Collection[str], where: Where) -> Argument:
    name, equals, body = text.partition("=")
    if not equals:
        name, body = f"arg{number}", text
    if not is_name(name) or len(name) > _MOST_NAME:
        raise _wrong(text, f"its name is a word of at most {_MOST_NAME} letters")
    if name in taken or name in _RESERVED:
        raise _wrong(text, f"{name} is another field's name")
    if not body:
        raise _wrong(text, "there is nothing behind the name")
    if len(body) > _MOST_TEXT:
        raise LinuxError(E2BIG, f"argument {text!r}: behind the name there are at most {_MOST_TEXT} characters")
    value_text, _, type_text = body.partition(":")
    type, count, bits = _parse_type(value_text, type_text if ":" in body else None, text)
    value = _parse_value(value_text, where, text)
    fetch = _fetch_strings(value, count, text) if type.is_string else _fetch_numbers(value, type, count, bits, text)
    return Argument(name, body, type, count, fetch)


# ---- types


def _parse_type(value: str, type_text: str | None, text: str) -> tuple[FetchType, int, tuple[int, int] | None]:
    """The type, an array's length or 0, and a bit field's offset and width."""
    count = 0
    if type_text is not None and "[" in type_text:
        type_text, _, length = type_text.partition("[")
        found = unsigned(length[:-1]) if length.endswith("]") else None
        if not found or found > _MOST_ARRAY:
            raise _wrong(text, f"an array's type ends in [1] to [{_MOST_ARRAY}]")
        count = found
    if value in ("$comm", "$COMM") or value.startswith('\\"'):
        if count or type_text not in (None, "string"):
            raise _wrong(text, "its type is string")
        return FETCH_TYPES["string"], 0, None
    if type_text is None:
        return DEFAULT, count, None
    bits = _BITS.fullmatch(type_text)
    type = FETCH_TYPES.get(f"u{bits['size']}" if bits is not None else type_text)
    if type is None:
        raise _wrong(text, f"its type is one of {' '.join(FETCH_TYPES)}, or bWIDTH@OFFSET/SIZE")
    if bits is None:
        return type, count, None
    width, offset = unsigned(bits["width"]), unsigned(bits["offset"])
    if not width or offset is None or width + offset > 8 * type.size:
        raise _wrong(text, f"the bits are some of {8 * type.size}")
    return type, count, (offset, width)


# ---- values


def _parse_value(text: str, where: Where, whole: str) -> _Value:
    match text[:1]:
        case "$":
            return _variable(text[1:], where, whole)
        case "%":
            return _register(text[1:], where, whole)
        case "@":
            if where.function is not None:
                raise _wrong(whole, "the modelled kernel has no memory of its own at known addresses")
            return _at(text[1:], whole)
        case "+" | "-":
            return _dereferenced(text, where, whole)
        case "\\":
            return _immediate(text[1:], whole)
    raise _wrong(whole, "a value begins with one of % @ $ + - \\")


def _register(name: str, where: Where, whole: str) -> _Value:
    isa = where.architecture.isa
    register = find_saved(isa, name)
    if register is None:
        raise _wrong(whole, f"{isa} has no register %{name}")
    if where.function is None:
        constant = None if register.native else register.user
    else:
        constant = _constant_in_kernel(name, where)
        if constant is None and not _is_passed(name, where.function, where):
            raise _wrong(whole, f"in {where.function.name} the modelled kernel does not know %{name}")
    if constant is not None:
        return _Value(_Kind.NUMBER, lambda moment: constant)
    number = where.architecture.register_names.index(register.native)
    return _Value(_Kind.NUMBER, lambda moment: moment.register(number))


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


def _of_function(name: str, function: KernelFunction, where: Where, whole: str) -> _Value:
    """$argN of one of the kernel's."""
    digits = name.removeprefix("arg")
    if digits == name or not digits.isdecimal() or not 0 < int(digits) <= len(function.parameters):
        raise _wrong(whole, f"in {function.name} the modelled kernel does not know ${name}")
    return _register(ARGUMENTS[where.architecture.isa][int(digits) - 1], where, whole)


def _variable(name: str, where: Where, whole: str) -> _Value:
    if name == "retval" and where.returns:
        return _Value(_Kind.NUMBER, lambda moment: moment.returned)
    if name in ("comm", "COMM"):
        return _Value(_Kind.COMM, lambda moment: None)
    if where.function is not None:
        return _of_function(name, where.function, where, whole)
    if name == "stack":
        return _Value(_Kind.NUMBER, lambda moment: moment.stack_pointer)
    digits = name.removeprefix("stack")
    if digits != name and digits.isdecimal():
        offset = _POINTER * int(digits)
        return _Value(_Kind.NUMBER, lambda moment: read_number(moment, moment.stack_pointer + offset) or 0)
    raise _wrong(whole, f"there is no ${name} here")


def _at(text: str, whole: str) -> _Value:
    """Memory at an address, or at an offset of the probed file."""
    if text.startswith("+"):
        offset = signed(text[1:])
        if offset is None:
            raise _wrong(whole, f"@{text} is no offset in the file")
        return _Value(_Kind.MEMORY, lambda moment: moment.file_base + offset, 2)
    address = unsigned(text)
    if address is None:
        raise _wrong(whole, f"@{text} is no address; in a program symbols are not known here")
    return _Value(_Kind.MEMORY, lambda moment: address, 2)


def _dereferenced(text: str, where: Where, whole: str) -> _Value:
    number, opened, inner = text.partition("(")
    inner, closed, _ = inner.rpartition(")")
    if number[1:2] == "u":  # memory of user space, as all is in a program
        number = number[0] + number[2:]
    offset = signed(number.removeprefix("+"))
    if not opened or not closed or offset is None or number.startswith(("+-", "++")):
        raise _wrong(whole, "memory is written +OFFSET(VALUE) or -OFFSET(VALUE)")
    below = _parse_value(inner, where, whole)
    if below.kind in (_Kind.COMM, _Kind.TEXT):
        raise _wrong(whole, f"{inner} is no address")
    steps = below.steps + 1
    if steps > _MOST_STEPS:
        raise _wrong(whole, "too many memory accesses")
    address = _loaded(below)

    def moved(moment: Moment) -> int | None:
        at = address(moment)
        return None if at is None else at + offset

    return _Value(_Kind.MEMORY, moved, steps)


def _loaded(value: _Value) -> Number:
    """As a 64-bit number."""
    if value.kind is not _Kind.MEMORY:
        return value.number
    address = value.number

    def load(moment: Moment) -> int | None:
        at = address(moment)
        return None if at is None else read_number(moment, at)

    return load


def _immediate(text: str, whole: str) -> _Value:
    if text.startswith('"'):
        if not text.endswith('"') or len(text) < 2:
            raise _wrong(whole, "the string is not closed")
        return _Value(_Kind.TEXT, lambda moment: None)
    number = signed(text) if text.startswith("-") else unsigned(text)
    if number is None:
        raise _wrong(whole, f"\\{text} is no number")
    return _Value(_Kind.IMMEDIATE, lambda moment: number)


# ---- what is told


def _fetch_numbers(value: _Value, type: FetchType, count: int, bits: tuple[int, int] | None, text: str) -> Fetch:
    size, sign = type.size, 1 << 8 * type.size - 1
    offset, width = bits or (0, 8 * size)

    def wrapped(number: int | None) -> int:
        number = (number or 0) % (2 * sign) >> offset & (1 << width) - 1
        return number - 2 * sign if type.is_signed and number & sign else number

    if count and value.kind is not _Kind.MEMORY:
        raise _wrong(text, "an array is in memory")
    if value.kind is not _Kind.MEMORY:
        return lambda moment, room: wrapped(value.number(moment))

    def element(moment: Moment, address: int | None, index: int) -> int:
        return wrapped(None if address is None else read_number(moment, address + index * size, size))

    if not count:
        return lambda moment, room: element(moment, value.number(moment), 0)

    def array(moment: Moment, room: int) -> Value:
        address = value.number(moment)
        return tuple(element(moment, address, index) for index in range(count))

    return array


def _fetch_strings(value: _Value, count: int, text: str) -> Fetch:
    """A string at an address; of an array, at the address that each element is."""
    match value.kind:
        case _Kind.COMM:
            return lambda moment, room: (moment.comm.encode("utf-8", "surrogateescape") + b"\0")[:room]
        case _Kind.TEXT:  # it is the kernel's: as user memory, in which it is looked for, it is not there
            return lambda moment, room: b""
        case _Kind.NUMBER:
            raise _wrong(text, "a string is in memory: +0(VALUE)")
    if count and value.kind is _Kind.IMMEDIATE:
        raise _wrong(text, "an array is in memory")
    number = value.number

    def one(moment: Moment, room: int) -> Value:
        address = number(moment)
        return b"" if address is None else read_string(moment, address, room)

    def array(moment: Moment, room: int) -> Value:
        address = number(moment)
        found: list[bytes] = []
        for index in range(count):
            at = None if address is None else read_number(moment, address + index * _POINTER)
            found.append(b"" if at is None else read_string(moment, at, room))
            room -= len(found[-1])
        return tuple(found)

    return array if count else one
