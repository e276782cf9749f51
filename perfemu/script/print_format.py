"""print_format: a tracepoint's raw data as its `print fmt` says: C's printf with expressions over REC.

As libtraceevent does it: numbers are read without sign and formatted as their conversion says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from perfcore.perfdata.trace_formats import TraceField, TraceFormat
from perfemu.script.expressions import Expression, ExpressionProblem, Parser, field_bytes, field_text, unsigned

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d+|\*)?(?:\.(?P<precision>\d+|\*))?(?P<long>hh|h|ll|l|L|z|j)?(?P<kind>[a-zA-Z%])"
)
_POINTER_KINDS = re.compile(r"[SsFfBR]")  # addresses of functions, whose names a file does not tell
_SIZES = {"hh": 1, "h": 2, "l": 8, "ll": 8, "L": 8, "z": 8, "j": 8}  # bytes
Piece = Callable[[bytes], str]


def printer(format: TraceFormat) -> Callable[[bytes], str]:
    """The function that makes the text of raw data."""
    try:
        pieces = _pieces(format)
    except ExpressionProblem:
        return lambda data: _all_fields(format, data)

    def text(data: bytes) -> str:
        return "".join([piece(data) for piece in pieces])

    return text


def _pieces(format: TraceFormat) -> list[Piece]:
    """Raises ExpressionProblem for what is not understood."""
    parser = Parser(format.print_format, format.fields)
    template = parser.string()
    arguments = []
    while parser.takes(","):
        arguments.append(parser.expression())
    if not parser.at_end:
        raise ExpressionProblem("something follows the last argument")
    left = iter(arguments)
    pieces: list[Piece] = []
    at = 0
    for found in _CONVERSION.finditer(template):
        if found.start() < at:
            continue
        if found.start() > at:
            pieces.append(_constant(template[at : found.start()]))
        at = found.end()
        if found["kind"] == "p" and _POINTER_KINDS.match(template, at):
            at += 1
        elif found["kind"] == "p" and template[at : at + 1].isalpha():
            raise ExpressionProblem("a kind of pointer")
        pieces.append(_piece(found, left))
    pieces.append(_constant(template[at:]))
    return pieces


def _constant(text: str) -> Piece:
    return lambda data: text


def _piece(found: re.Match[str], arguments: Iterator[Expression]) -> Piece:
    kind = found["kind"]
    if kind == "%":
        return _constant("%")
    try:
        stars = [next(arguments) if found[part] == "*" else None for part in ("width", "precision")]
        value = next(arguments)
    except StopIteration:
        raise ExpressionProblem("fewer arguments than conversions") from None
    make = _MAKERS.get(kind)
    if make is None:
        raise ExpressionProblem(f"%{kind}")
    size = _SIZES.get(found["long"] or "", 4)
    flags, width, precision = found["flags"], found["width"] or "", found["precision"]

    def text(data: bytes) -> str:
        numbers = ["" if star is None else str(star.number(data)) for star in stars]
        most = numbers[1] or precision
        return make(flags, numbers[0] or width.replace("*", ""), most, size, value, data)

    return text


def _signed(flags: str, width: str, most: str | None, size: int, value: Expression, data: bytes) -> str:
    number = value.number(data) & (1 << 8 * size) - 1
    if number >> 8 * size - 1:
        number -= 1 << 8 * size
    return f"%{flags}{width}{'' if most is None else '.' + most}d" % number


def _unsigned_as(conversion: str) -> Callable[..., str]:
    def make(flags: str, width: str, most: str | None, size: int, value: Expression, data: bytes) -> str:
        number = value.number(data) & (1 << 8 * size) - 1
        if not number:
            flags = flags.replace("#", "")  # C's zero has no prefix
        prefix = ""
        if conversion == "o" and "#" in flags:
            flags, prefix = flags.replace("#", ""), "0"  # Python's would be 0o
        return prefix + f"%{flags}{width}{'' if most is None else '.' + most}{conversion}" % number

    return make


def _string(flags: str, width: str, most: str | None, size: int, value: Expression, data: bytes) -> str:
    return f"%{flags}{width}{'' if most is None else '.' + most}s" % value.text(data)


def _character(flags: str, width: str, most: str | None, size: int, value: Expression, data: bytes) -> str:
    return f"%{flags}{width}s" % chr(value.number(data) & 0xFF)


def _pointer(flags: str, width: str, most: str | None, size: int, value: Expression, data: bytes) -> str:
    number = unsigned(value.number(data))
    return f"%{flags}{width}s" % (f"{number:#x}" if number else "(nil)")


_MAKERS: dict[str, Callable[..., str]] = {
    "d": _signed,
    "i": _signed,
    "u": _unsigned_as("d"),
    "x": _unsigned_as("x"),
    "X": _unsigned_as("X"),
    "o": _unsigned_as("o"),
    "s": _string,
    "c": _character,
    "p": _pointer,
}


def _all_fields(format: TraceFormat, data: bytes) -> str:
    """libtraceevent's words for a `print fmt` that it does not understand."""
    own = [field for field in format.fields.values() if not field.name.startswith("common_")]
    return "[FAILED TO PARSE]" + "".join(f" {field.name}={_content(field, data)}" for field in own)


def _content(field: TraceField, data: bytes) -> str:
    if not field.is_array:
        number = int.from_bytes(data[field.offset : field.offset + field.size], "little", signed=field.signed)
        return str(number) if field.signed else f"{number:#x}" if "*" in field.type or field.size == 8 else str(number)
    if "char" in field.type:
        return field_text(field, data)
    return f"ARRAY[{', '.join(f'{byte:02x}' for byte in field_bytes(field, data))}]"
