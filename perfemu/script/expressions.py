"""expressions: C as tracepoints' print formats have it: operators, casts, fields of REC, and the kernel's helpers."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perfcore.perfdata.trace_formats import TraceField

_TOKEN = re.compile(
    r"\s*(?P<token>\"(?:[^\"\\]|\\.)*\"|0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*|\w+|->|<<|>>|<=|>=|==|!=|&&|\|\||'(?:[^'\\]|\\.)'"
    r"|[-+*/%&|^~!<>?:(){}\[\],])|\s*(?P<end>$)"
)
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*$")
_NAME = re.compile(r"[A-Za-z_]\w*$")
_MASK_64 = (1 << 64) - 1
_MOST_NESTED = 100


class ExpressionProblem(Exception):
    """What the print format says is not understood."""


def unsigned(number: int) -> int:
    return number & _MASK_64


def _signed_64(number: int) -> int:
    number &= _MASK_64
    return number - (1 << 64) if number >> 63 else number


@dataclass(frozen=True, slots=True)
class Expression:
    """As a number, and as what %s shows."""

    number: Callable[[bytes], int]
    text: Callable[[bytes], str]


def field_bytes(field: TraceField, data: bytes) -> bytes:
    """The bytes of a field, or those to which it points."""
    if not field.location:
        return data[field.offset : field.offset + field.size]
    word = int.from_bytes(data[field.offset : field.offset + 4], "little")
    start = word & 0xFFFF
    if field.location == "__rel_loc":
        start += field.offset + field.size
    return data[start : start + (word >> 16)]


def field_text(field: TraceField, data: bytes) -> str:
    """A string; an array's end or a NUL ends it."""
    return field_bytes(field, data).split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _divided(left: int, right: int) -> int:
    return 0 if not right else int(abs(left) // abs(right)) * (1 if (left < 0) == (right < 0) else -1)


def _remainder(left: int, right: int) -> int:
    return left - right * _divided(left, right) if right else 0


_Binary = Callable[[int, int], int]
_LEVELS: tuple[dict[str, _Binary], ...] = (  # loosest first
    {"||": lambda left, right: int(bool(left or right))},
    {"&&": lambda left, right: int(bool(left and right))},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge},
    {"<<": lambda left, right: left << (right & 63), ">>": lambda left, right: left >> (right & 63)},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": _divided, "%": _remainder},
)
_UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": lambda value: int(not value),
}
_TYPE = re.compile(
    r"unsigned|signed|long|int|short|char|const|struct|enum|void|_?[bB]ool|(?:__)?[us](?:8|16|32|64)|__[lb]e(?:16|32|64)"
    r"|u?int(?:8|16|32|64)_t|(?:s?size|pid|dev|ino|l?off|mode|gfp|sector|uid|gid|umode|uintptr)_t"
)
_TYPE_SIZES = (("64", 8), ("32", 4), ("16", 2), ("8", 1), ("long", 8), ("char", 1), ("short", 2), ("bool", 1))
_EIGHT_BYTES = frozenset({"size_t", "ssize_t", "ino_t", "loff_t", "off_t", "sector_t", "uintptr_t"})
_UNSIGNED_TYPES = re.compile(r"unsigned|\b_*u\d+|uint|size_t\b|_le|_be|ino_t|sector_t|bool|Bool|gfp_t|dev_t|mode_t")


def _type_size(words: list[str]) -> int:
    if "*" in words or any(word in _EIGHT_BYTES for word in words):
        return 8
    return next((size for part, size in _TYPE_SIZES if any(part in word for word in words)), 4)


class Parser:
    """Of one print format. Every method raises ExpressionProblem for what it does not understand."""

    def __init__(self, text: str, fields: Mapping[str, TraceField]) -> None:
        self._fields = fields
        self._tokens = _tokens(text)
        self._at = 0
        self._nested = 0
        self._helpers: dict[str, Callable[[], Expression]] = {
            "__get_str": self._get_string,
            "__get_rel_str": self._get_string,
            "__print_flags": self._flags,
            "__print_flags_u64": self._flags,
            "__print_symbolic": self._symbolic,
            "__print_symbolic_u64": self._symbolic,
            "__print_hex": lambda: self._hex(" "),
            "__print_hex_str": lambda: self._hex(""),
            "__get_dynamic_array_len": self._array_length,
            "sizeof": self._sizeof,
            "__builtin_expect": self._expected,
        }

    @property
    def at_end(self) -> bool:
        return self._at == len(self._tokens)

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def takes(self, token: str) -> bool:
        """Whether it comes next; then it is taken."""
        if self._next() != token:
            return False
        self._at += 1
        return True

    def _needs(self, token: str) -> None:
        if not self.takes(token):
            raise ExpressionProblem(f"'{token}' expected, not '{self._next()}'")

    def _take(self) -> str:
        token = self._next()
        if not token:
            raise ExpressionProblem("it ends too early")
        self._at += 1
        return token

    def string(self) -> str:
        """One string of neighbouring literals."""
        if not self._next().startswith('"'):
            raise ExpressionProblem("a string expected")
        parts = []
        while self._next().startswith('"'):
            parts.append(_literal(self._take()))
        return "".join(parts)

    def expression(self) -> Expression:
        self._nested += 1
        if self._nested > _MOST_NESTED:
            raise ExpressionProblem("too deep")
        made = self._conditional()
        self._nested -= 1
        return made

    def _conditional(self) -> Expression:
        condition = self._binary(0)
        if not self.takes("?"):
            return condition
        yes = self.expression()
        self._needs(":")
        no = self.expression()
        return Expression(
            lambda data: (yes if condition.number(data) else no).number(data),
            lambda data: (yes if condition.number(data) else no).text(data),
        )

    def _binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (operation := _LEVELS[level].get(self._next())) is not None:
            self._at += 1
            left = _operated(operation, left, self._binary(level + 1))
        return left

    def _unary(self) -> Expression:
        operation = _UNARY.get(self._next())
        if operation is None:
            return self._primary()
        self._at += 1
        inner = self._unary()
        return _number(lambda data: _signed_64(operation(inner.number(data))))

    def _primary(self) -> Expression:
        token = self._next()
        if token.startswith('"'):
            text = self.string()
            return Expression(lambda data: 0, lambda data: text)
        if self.takes("("):
            return self._cast() if _TYPE.fullmatch(self._next()) else self._inside()
        if self.takes("REC"):
            return self._field()
        if self.takes("*"):
            return self._element_at()
        self._at += 1
        if token in self._helpers:
            self._needs("(")
            made = self._helpers[token]()
            self._needs(")")
            return made
        if token.startswith("'"):
            code = ord(_literal(f'"{token[1:-1]}"') or "\0")
            return _number(lambda data: code)
        if found := _NUMBER.match(token):
            value = int(found[1], 16 if found[1][:2] in ("0x", "0X") else 8 if found[1][0] == "0" else 10)
            return _number(lambda data: value)
        if _NAME.match(token) and self._next() != "(":
            return _UNKNOWN_CONSTANT
        raise ExpressionProblem(f"'{token}'")

    def _inside(self) -> Expression:
        made = self.expression()
        self._needs(")")
        return made

    def _type(self) -> list[str]:
        words: list[str] = []
        while _TYPE.fullmatch(self._next()) or self._next() == "*" or (words and words[-1] in ("struct", "enum")):
            words.append(self._take())
        return words

    def _cast(self) -> Expression:
        words = self._type()
        self._needs(")")
        inner = self._unary()
        size = _type_size(words)
        is_unsigned = bool(_UNSIGNED_TYPES.search(" ".join(words)))

        def number(data: bytes) -> int:
            value = inner.number(data) & (1 << 8 * size) - 1
            return value if is_unsigned or not value >> 8 * size - 1 else value - (1 << 8 * size)

        return Expression(number, inner.text)

    def _named_field(self) -> TraceField:
        name = self._take()
        field = self._fields.get(name)
        if field is None:
            raise ExpressionProblem(f"no field '{name}'")
        return field

    def _field(self) -> Expression:
        self._needs("->")
        field = self._named_field()
        if self.takes("["):
            index = self.expression()
            self._needs("]")
            return self._element(field, index)
        if field.is_array:
            return Expression(lambda data: int.from_bytes(field_bytes(field, data)[:8], "little"),
                              lambda data: field_text(field, data))  # fmt: skip
        start, end = field.offset, field.offset + field.size
        return _number(lambda data: int.from_bytes(data[start:end], "little"), pointer=True)

    def _element(self, field: TraceField, index: Expression) -> Expression:
        size = field.element_size

        def number(data: bytes) -> int:
            at = max(index.number(data), 0) * size
            return int.from_bytes(field_bytes(field, data)[at : at + size], "little")

        return _number(number)

    def _element_at(self) -> Expression:
        """What a pointer to a dynamic array points to."""
        raise ExpressionProblem("a pointer")

    def _get_string(self) -> Expression:
        field = self._named_field()
        return Expression(lambda data: 0, lambda data: field_text(field, data))

    def _array_length(self) -> Expression:
        field = self._named_field()
        return _number(lambda data: len(field_bytes(field, data)))

    def _expected(self) -> Expression:
        value = self.expression()
        self._needs(",")
        self.expression()
        return value

    def _sizeof(self) -> Expression:
        if _TYPE.fullmatch(self._next()):
            size = _type_size(self._type())
            return _number(lambda data: size)
        raise ExpressionProblem("sizeof an expression")

    def _pairs(self) -> list[tuple[int, str]]:
        """``{ value, "name" }`` as often as there are."""
        pairs = []
        while self.takes(","):
            self._needs("{")
            value = self.expression()
            self._needs(",")
            if self._next().startswith('"'):
                number = -1 if value is _UNKNOWN_CONSTANT else _signed_64(value.number(b""))
                pairs.append((number, self.string()))
            else:
                self.expression()  # NULL ends the list
            self._needs("}")
        return pairs

    def _flags(self) -> Expression:
        value = self.expression()
        self._needs(",")
        delimiter = self.string()
        pairs = self._pairs()

        def text(data: bytes) -> str:
            left = unsigned(value.number(data))
            parts = []
            for bits, name in pairs:
                if not left and bits < 0:
                    parts.append(name)
                    break
                if bits > 0 and left & bits == bits:
                    parts.append(name)
                    left &= ~bits
            return delimiter.join([*parts, f"{left:#x}"] if left else parts)

        return Expression(value.number, text)

    def _symbolic(self) -> Expression:
        value = self.expression()
        names = dict(reversed(self._pairs()))

        def text(data: bytes) -> str:
            number = _signed_64(value.number(data))
            return names.get(number) or (f"{unsigned(number):#x}" if number not in names else "")

        return Expression(value.number, text)

    def _hex(self, between: str) -> Expression:
        self._needs("REC")
        self._needs("->")
        field = self._named_field()
        self._needs(",")
        length = self.expression()

        def text(data: bytes) -> str:
            return between.join(f"{byte:02x}" for byte in field_bytes(field, data)[: length.number(data)])

        return Expression(lambda data: 0, text)


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionProblem(f"'{text[at : at + 10]}'")
        if match["token"]:
            found.append(match["token"])
        at = match.end()
    return found


def _literal(token: str) -> str:
    """C's escapes are Python's, as far as the kernel uses them."""
    try:
        return str(ast.literal_eval(token.replace("\n", "\\n")))
    except (ValueError, SyntaxError):
        raise ExpressionProblem(token) from None


def _number(number: Callable[[bytes], int], pointer: bool = False) -> Expression:
    """%s of a number is an address, of what a file cannot tell."""
    return Expression(number, lambda data: f"{unsigned(number(data)):x}" if pointer else str(number(data)))


_UNKNOWN_CONSTANT = _number(lambda data: 0)  # a constant of the kernel's, which a file does not tell


def _operated(operation: _Binary, left: Expression, right: Expression) -> Expression:
    return _number(
        lambda data: _signed_64(int(operation(_signed_64(left.number(data)), _signed_64(right.number(data)))))
    )
