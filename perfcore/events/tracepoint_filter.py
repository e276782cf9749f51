"""Filters of tracepoints: which occurrences an event hears of. As kernel/trace/trace_events_filter.c has them.

``prev_pid != 0 && (next_comm ~ "perf*" || !(next_prio < 100))``: a field, an operator and a value, joined by ``&&``,
which binds closer, and ``||``, each behind any number of ``!``. Numbers are compared as the field's C type; strings
stand in quotes. Besides the event's own fields and the common ones there are ``COMM`` and ``CPU``, of where it happens.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from fnmatch import translate

from emulator.linux.errors import EINVAL, ENOENT, EPERM, ESRCH, LinuxError
from perfcore.abi.tracepoints import FilterField, TracepointEvent, Value
from perfcore.events.kstrtox import signed, unsigned

Fields = Mapping[str, Value]
Filter = Callable[[Fields], bool]
"""Whether an occurrence with these fields is wanted."""

_OPERATORS: Mapping[str, Callable[[int, int], bool]] = {  # in the order in which the kernel tries them
    "~": operator.eq,
    "!=": operator.ne,
    "==": operator.eq,
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "&": lambda value, mask: bool(value & mask),
}
_OF_STRINGS = ("~", "!=", "==")
_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?[0-9]\w*")
_SIGNS = re.compile(r"\"[^\"]*\"|'[^']*'|[()\"']")
_STRING = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_SPACE = re.compile(r"\s*")
_TOO_MANY = "Too many terms in predicate expression"
_ILLEGAL = "Illegal operation for field type"
_WORD_BITS = 64
_MOST_NESTED = 100  # of parentheses; more than anybody writes, and fewer than exhaust our stack


class FilterError(LinuxError):
    """`told`: in the kernel's words (ERRORS of trace_events_filter.c); `at`: where in the text."""

    def __init__(self, code: int, told: str, at: int, why: str) -> None:
        super().__init__(code, why)
        self.told = told
        self.at = at


def parse_filter(text: str, event: TracepointEvent) -> Filter:
    """Raises LinuxError, which says what is wrong and where. The codes are the kernel's, EINVAL for most."""
    return _Parser(text, event.filter_fields).whole()


class _Parser:
    """One text, from left to right."""

    def __init__(self, text: str, fields: Mapping[str, FilterField]) -> None:
        self._text, self._at = text, 0
        self._fields = fields
        self._nested = 0

    def whole(self) -> Filter:
        self._check_closed()
        wanted = self._any()
        if self._at < len(self._text):
            raise self._wrong(_TOO_MANY, self._at, "an operator && or || is expected", EPERM)
        return wanted

    def _check_closed(self) -> None:
        """calc_stack(): before all else, and its -1, -2 and -3 reach the caller."""
        opened: list[int] = []
        for found in _SIGNS.finditer(self._text):
            sign, at = found.group(), found.start()
            if sign == "(":
                opened.append(at)
            elif sign == ")" and not opened:
                raise self._wrong("Too few '('", at, "a parenthesis has not been opened", EPERM)
            elif sign == ")":
                opened.pop()
            elif len(sign) == 1:
                raise self._wrong("Missing matching quote", at, "a string is not closed", ESRCH)
        if opened:
            raise self._wrong("Too many '('", opened[-1], "a parenthesis is not closed", ENOENT)

    def _any(self) -> Filter:
        parts = [self._all()]
        while self._takes("||"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else lambda fields: any(part(fields) for part in parts)

    def _all(self) -> Filter:
        parts = [self._one()]
        while self._takes("&&"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda fields: all(part(fields) for part in parts)

    def _one(self) -> Filter:
        negated = False
        while self._takes("!"):
            negated = not negated
        wanted = self._group() if self._takes("(") else self._predicate()
        return (lambda fields: not wanted(fields)) if negated else wanted

    def _group(self) -> Filter:
        self._nested += 1
        if self._nested > _MOST_NESTED:
            raise self._wrong("Too many '('", self._at, "too many parentheses are open")
        wanted = self._any()
        if not self._takes(")"):
            raise self._wrong(_TOO_MANY, self._at, "an operator && or || is expected", EPERM)
        self._nested -= 1
        return wanted

    def _predicate(self) -> Filter:
        begins = self._at
        name = self._take(_NAME)
        if name is None:
            raise self._no_field()
        field = self._fields.get(name)
        if field is None:
            raise self._wrong("Field not found", begins + len(name) + 1, f"there is no field {name!r}")
        sign = next((sign for sign in _OPERATORS if self._takes(sign)), None)
        if sign is None:
            why = f"an operator is expected: one of {' '.join(_OPERATORS)}"
            raise self._wrong("Invalid operator", self._at + 1, why)
        behind = self._at + 1  # the first character of the value: where the kernel says that it is wrong
        string = self._take(_STRING)
        if string is not None:
            return self._of_string(field, sign, string[1:-1], behind)
        number = self._take(_NUMBER)
        if number is None:
            told = "Invalid value (did you forget quotes)?"
            raise self._wrong(told, behind, "a number or a string in quotes is expected")
        return self._of_number(field, sign, number, behind)

    def _no_field(self) -> FilterError:
        why = "the name of a field is expected"
        if self._text.startswith(("&", "|"), self._at):
            return self._wrong("Error", 0, why, EPERM)
        is_end = self._at == len(self._text)
        return self._wrong("Meaningless filter expression" if is_end else "Field not found", self._at, why)

    def _of_string(self, field: FilterField, sign: str, string: str, at: int) -> Filter:
        if not field.is_string:
            raise self._wrong("Expecting numeric field", at, f"field {field.name} is a number")
        if sign not in _OF_STRINGS:
            raise self._wrong(_ILLEGAL, at, f"strings are not compared by {sign}")
        name = field.name
        if sign == "~":
            matches = re.compile(translate(string)).match
            return lambda fields: matches(str(fields[name])) is not None
        if sign == "!=":
            return lambda fields: fields[name] != string
        return lambda fields: fields[name] == string

    def _of_number(self, field: FilterField, sign: str, text: str, at: int) -> Filter:
        if field.is_string:
            raise self._wrong("Expecting string field", at, f"field {field.name} is a string")
        if sign == "~" or field.bits not in (8, 16, 32, _WORD_BITS):
            raise self._wrong(_ILLEGAL, at, f"field {field.name} is not compared by {sign}")
        number = signed(text) if text.startswith("-") else unsigned(text)
        limits = range(-(1 << _WORD_BITS - 1), 1 << _WORD_BITS - 1) if field.is_signed else range(1 << _WORD_BITS)
        if number is None or number not in limits:
            raise self._wrong("Illegal integer value", at, f"{text} is no number of field {field.name}")
        compare, name = _OPERATORS[sign], field.name
        value = field.wrapped(number)
        return lambda fields: compare(field.wrapped(_number(fields[name])), value)

    # ---- the text

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        self._skip()
        return found.group()

    def _takes(self, sign: str) -> bool:
        if not self._at:
            self._skip()
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        self._skip()
        return True

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._at)
        assert found is not None, "any number of spaces"
        self._at = found.end()

    def _wrong(self, told: str, at: int, why: str, code: int = EINVAL) -> FilterError:
        return FilterError(code, told, at, f"filter {self._text!r}: {why}, at character {self._at + 1}")


def _number(value: Value) -> int:
    assert isinstance(value, int), "the field is a number"
    return value
