"""Arguments of probes: Linux's fetch-arg grammar, from text to what a hit tells. As parse_probe_arg() in trace_probe.c.

``NAME=VALUE:TYPE``, where VALUE is ``%REGISTER``, ``@ADDRESS``, ``@+OFFSET`` in the file, ``$stack``, ``$stackN``,
``$retval``, ``$comm``, ``\\IMMEDIATE``, or ``+OFFSET(VALUE)`` for what is in memory there. TYPE may be an array's,
``u32[4]``, and a bit field's, ``b4@8/32``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from emulator.linux.errors import E2BIG, LinuxError
from perfcore.abi.tracepoints import Value
from perfcore.events.kstrtox import unsigned
from perfcore.events.probes.error_log import TracingError
from perfcore.events.probes.fetch_types import DEFAULT, FETCH_TYPES, FetchType, ProbeField
from perfcore.events.probes.fetch_values import POINTER, FetchValue, Kind, Where, Word, outer_part, parse_value
from perfcore.events.probes.moment import Moment, read_number, read_string

_FIRST_WORD = 2  # of a line, that is an argument
MOST_ARGUMENTS = 128  # MAX_TRACE_ARGS
_MOST_ARRAY = 64  # MAX_ARRAY_LEN
_MOST_NAME = 32  # MAX_ARG_NAME_LEN
_MOST_TEXT = 63  # MAX_ARGSTR_LEN
_MOST_BYTES = 3072  # MAX_PROBE_EVENT_SIZE: of all arguments, strings' contents apart
_RESERVED = {"common_type", "common_flags", "common_preempt_count", "common_pid", "common_tgid"} | {
    *("__probe_ip", "__probe_ret_ip", "__probe_func")
}
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NOT_MEMORY = "String accepts only memory argument"  # an array, too
_BITS = re.compile(r"b(?P<width>\w+)@(?P<offset>\w+)/(?P<size>\w+)")

Fetch = Callable[[Moment, int], Value]
"""With how many bytes there are for a string."""


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


def is_name(text: str) -> bool:
    """is_good_name()"""
    return _NAME.fullmatch(text) is not None


def parse_arguments(texts: Collection[str], where: Where) -> tuple[Argument, ...]:
    """Raises LinuxError."""
    if len(texts) > MOST_ARGUMENTS:
        why = f"{len(texts)} arguments: a probe has at most {MOST_ARGUMENTS}"
        raise TracingError(E2BIG, "Too many arguments are specified", _FIRST_WORD, 0, why)
    arguments: list[Argument] = []
    for number, text in enumerate(texts, start=1):
        arguments.append(_parse(text, number, {argument.name for argument in arguments}, where))
        if sum(argument.field.size for argument in arguments) > _MOST_BYTES:
            raise LinuxError(E2BIG, f"argument {text!r}: up to this one, they have more than {_MOST_BYTES} bytes")
    return tuple(arguments)


def _parse(text: str, number: int, taken: Collection[str], where: Where) -> Argument:
    """traceprobe_parse_probe_arg()"""
    word = Word(text, _FIRST_WORD + number - 1)
    name, equals, body = text.partition("=")
    if not equals:
        name, body = f"arg{number}", text
    _check_name(name, word, taken)
    at = len(text) - len(body)
    if not body:
        raise word.wrong("No argument expression", at, "there is nothing behind the name")
    if len(body) > _MOST_TEXT:
        why = f"behind the name there are at most {_MOST_TEXT} characters"
        raise word.wrong("Argument expression is too long", at, why, E2BIG)
    value_text, colon, type_text = body.partition(":")
    type, count, bits = _parse_type(value_text, type_text if colon else None, word, at)
    value = parse_value(value_text, where, word, at)
    at += outer_part(value_text) + (len(value_text) + 1 if colon else 0)  # where the kernel's parser has come to
    if type.is_string:
        fetch = _fetch_strings(value, count, word, at)
    else:
        fetch = _fetch_numbers(value, type, count, bits, word, at)
    return Argument(name, body, type, count, fetch)


def _check_name(name: str, word: Word, taken: Collection[str]) -> None:
    if len(name) > _MOST_NAME:
        raise word.wrong("Argument name is too long", 0, f"its name has at most {_MOST_NAME} letters")
    if not name:
        raise word.wrong("Argument name is not specified", 0, "there is no name before =")
    if not is_name(name):
        raise word.wrong("Argument name must follow the same rules as C identifiers", 0, f"{name} is no name")
    if name in taken or name in _RESERVED:
        raise word.wrong("This argument name is already used", 0, f"{name} is another field's name")


# ---- types


def _parse_type(
    value: str, type_text: str | None, word: Word, at: int
) -> tuple[FetchType, int, tuple[int, int] | None]:
    """The type, an array's length or 0, and a bit field's offset and width. `at`: where the value begins."""
    count = 0
    if type_text is not None:
        at += len(value) + 1
    if type_text is not None and "[" in type_text:
        type_text, _, length = type_text.partition("[")
        count = _array_length(length, word, at + len(type_text) + 1)
    if value in ("$comm", "$COMM") or value.startswith('\\"'):
        if count or type_text not in (None, "string"):
            raise word.wrong("$comm and immediate-string only accepts string type", at, "its type is string")
        return FETCH_TYPES["string"], 0, None
    if type_text is None:
        return DEFAULT, count, None
    bits = _BITS.fullmatch(type_text)
    type = FETCH_TYPES.get(f"u{bits['size']}" if bits is not None else type_text)
    if type is None:
        why = f"its type is one of {' '.join(FETCH_TYPES)}, or bWIDTH@OFFSET/SIZE"
        raise word.wrong("Unknown type is specified", at, why)
    if bits is None:
        return type, count, None
    width, offset = unsigned(bits["width"]), unsigned(bits["offset"])
    if not width or offset is None or width + offset > 8 * type.size:
        at += outer_part(value)
        raise word.wrong("Invalid bitfield", at, f"the bits are some of {8 * type.size}")
    return type, count, (offset, width)


def _array_length(text: str, word: Word, at: int) -> int:
    """Behind the opening bracket."""
    number, closed, behind = text.partition("]")
    if not closed:
        raise word.wrong("Array is not closed", at + len(text), "there is no ]")
    if behind:
        raise word.wrong("Array has wrong suffix", at + len(number) + 1, f"there is {behind} behind ]")
    length = unsigned(number)
    if not length:
        raise word.wrong("Invalid array size", at, f"an array's type ends in [1] to [{_MOST_ARRAY}]")
    if length > _MOST_ARRAY:
        raise word.wrong("Array number is too big", at, f"an array's type ends in [1] to [{_MOST_ARRAY}]")
    return length


# ---- what is told


def _fetch_numbers(
    value: FetchValue, type: FetchType, count: int, bits: tuple[int, int] | None, word: Word, at: int
) -> Fetch:
    size, sign = type.size, 1 << 8 * type.size - 1
    offset, width = bits or (0, 8 * size)

    def wrapped(number: int | None) -> int:
        number = (number or 0) % (2 * sign) >> offset & (1 << width) - 1
        return number - 2 * sign if type.is_signed and number & sign else number

    if count and value.kind is not Kind.MEMORY:
        raise word.wrong(_NOT_MEMORY, at, "an array is in memory")
    if value.kind is not Kind.MEMORY:
        return lambda moment, room: wrapped(value.number(moment))

    def element(moment: Moment, address: int | None, index: int) -> int:
        return wrapped(None if address is None else read_number(moment, address + index * size, size))

    if not count:
        return lambda moment, room: element(moment, value.number(moment), 0)

    def array(moment: Moment, room: int) -> Value:
        address = value.number(moment)
        return tuple(element(moment, address, index) for index in range(count))

    return array


def _fetch_strings(value: FetchValue, count: int, word: Word, at: int) -> Fetch:
    """A string at an address; of an array, at the address that each element is."""
    match value.kind:
        case Kind.COMM:
            return lambda moment, room: (moment.comm.encode("utf-8", "surrogateescape") + b"\0")[:room]
        case Kind.TEXT:  # it is the kernel's: as user memory, in which it is looked for, it is not there
            return lambda moment, room: b""
        case Kind.NUMBER:
            raise word.wrong(_NOT_MEMORY, at, "a string is in memory: +0(VALUE)")
    if count and value.kind is Kind.IMMEDIATE:
        raise word.wrong(_NOT_MEMORY, at, "an array is in memory")
    number = value.number

    def one(moment: Moment, room: int) -> Value:
        address = number(moment)
        return b"" if address is None else read_string(moment, address, room)

    def array(moment: Moment, room: int) -> Value:
        address = number(moment)
        found: list[bytes] = []
        for index in range(count):
            at = None if address is None else read_number(moment, address + index * POINTER)
            found.append(b"" if at is None else read_string(moment, at, room))
            room -= len(found[-1])
        return tuple(found)

    return array if count else one
