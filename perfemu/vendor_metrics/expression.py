"""Expressions of metrics, in the grammar of tools/perf/util/expr.y and expr.l.

A name may be an event, ``cpu@EVENT\\,cmask\\=1@``, where ``@`` stands for a slash and a backslash quotes what would be
an operator, or another metric. Literals begin with ``#``: ``#slots``, ``#smt_on``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Values = Mapping[str, float]
_Computes = Callable[[Values], float]
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.:@\\]))|(?P<literal>#\w+)"
    r"|(?P<name>(?:[A-Za-z0-9_.:@?]|\\.)+)|(?P<operator>[-+*/%<>&|^(),]))"
)
_BINARY: tuple[dict[str, Callable[[float, float], float]], ...] = (  # from those that bind least on
    {"|": lambda a, b: float(bool(a) or bool(b))},
    {"^": lambda a, b: float(bool(a) != bool(b))},
    {"&": lambda a, b: float(bool(a) and bool(b))},
    {"<": lambda a, b: float(a < b), ">": lambda a, b: float(a > b)},
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b if b else math.nan,  # as perf
        "%": lambda a, b: math.fmod(a, b) if b else math.nan,
    },
)
_FUNCTIONS: dict[str, Callable[[float, float], float]] = {
    "min": min,
    "max": max,
    "d_ratio": lambda a, b: a / b if b else 0.0,
}


class ExpressionError(ValueError):
    """What does not follow the grammar, and where."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A formula: the names in it (events or metrics; literals with their ``#``), and what it comes to."""

    text: str
    names: tuple[str, ...]  # in their order, each once
    compute: Callable[[Values], float]


def parse(text: str) -> Expression:
    """Raises ExpressionError."""
    parser = _Parser(text)
    compute = parser.whole()
    return Expression(text, tuple(dict.fromkeys(parser.names)), compute)


class _Parser:
    def __init__(self, text: str) -> None:
        self.names: list[str] = []
        self._text = text
        self._tokens = self._split()
        self._next = 0

    def whole(self) -> _Computes:
        compute = self._choice()
        if self._next < len(self._tokens):
            raise ExpressionError(f"'{self._text}': '{self._peek()}' is one too many")
        return compute

    def _split(self) -> list[tuple[str, str]]:
        tokens, at = [], 0
        text = self._text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise ExpressionError(f"'{self._text}': '{text[at:].strip()[:1]}' is not of an expression")
            tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        return tokens

    def _peek(self) -> str:
        return self._tokens[self._next][1] if self._next < len(self._tokens) else ""

    def _take(self, expected: str = "") -> tuple[str, str]:
        if self._next >= len(self._tokens):
            raise ExpressionError(f"'{self._text}' ends where {expected or 'a value'} is due")
        token = self._tokens[self._next]
        if expected and token[1] != expected:
            raise ExpressionError(f"'{self._text}': '{token[1]}' where {expected} is due")
        self._next += 1
        return token

    def _choice(self) -> _Computes:
        """``a if condition else b``"""
        then = self._binary(0)
        if self._peek() != "if":
            return then
        self._take("if")
        condition = self._binary(0)
        self._take("else")
        otherwise = self._choice()
        return lambda values: then(values) if condition(values) else otherwise(values)

    def _binary(self, level: int) -> _Computes:
        if level == len(_BINARY):
            return self._operand()
        left = self._binary(level + 1)
        while (operator := self._peek()) in _BINARY[level]:
            self._take()
            left = _applied(_BINARY[level][operator], left, self._binary(level + 1))
        return left

    def _operand(self) -> _Computes:
        kind, text = self._take()
        if text == "-":
            operand = self._operand()
            return lambda values: -operand(values)
        if text == "(":
            inner = self._choice()
            self._take(")")
            return inner
        if kind == "number":
            number = float(text)
            return lambda values: number
        if text in _FUNCTIONS:
            self._take("(")
            first = self._choice()
            self._take(",")
            second = self._choice()
            self._take(")")
            return _applied(_FUNCTIONS[text], first, second)
        if kind not in ("name", "literal") or text in ("if", "else"):
            raise ExpressionError(f"'{self._text}': '{text}' where a value is due")
        name = unquoted(text)
        self.names.append(name)
        return lambda values: values[name]


def _applied(function: Callable[[float, float], float], left: _Computes, right: _Computes) -> _Computes:
    return lambda values: function(left(values), right(values))


def unquoted(name: str) -> str:
    """As an event is typed: ``cpu/EVENT,cmask=1/``."""
    return re.sub(r"\\(.)", r"\1", name.replace("@", "/"))
