"""RustName: mangled names made from RFC 2603's grammar, at random; not all of them could be a compiler's."""

from __future__ import annotations

from random import Random
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

_DIGITS = digits + ascii_lowercase + ascii_uppercase
_NAMES = ("foo", "bar", "_x", "9lives", "a", "Vec", "i32", "core")
_DEEPEST = 6


def base_62(value: int) -> str:
    """0 is ``_``, 1 is ``0_``."""
    if not value:
        return "_"
    text = ""
    value -= 1
    while value or not text:
        text = _DIGITS[value % 62] + text
        value //= 62
    return text + "_"


class RustName:
    """One name: `text`."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._text = ""
        self._depth = 0
        self._lifetimes = 0
        self._paths: list[int] = []  # where they begin, for references back
        self._types: list[int] = []
        self._path()
        self.text = "_R" + self._text

    def _some(self, *tokens: str) -> None:
        self._text += self._chance.choice(tokens)

    def _maybe(self, token: str, chance: float = 0.3) -> bool:
        chosen = self._chance.random() < chance
        self._text += token if chosen else ""
        return chosen

    def _number(self, below: int) -> int:
        value = self._chance.randrange(below)
        self._text += base_62(value)
        return value

    def _times(self, most: int) -> range:
        return range(self._chance.randrange(most + 1))

    def _disambiguator(self) -> None:
        if self._maybe("s"):
            self._number(70)

    def _name(self) -> None:
        name = self._chance.choice(_NAMES)
        self._text += f"{len(name)}{'_' if name[0] not in ascii_letters else ''}{name}"

    def _identifier(self) -> None:
        self._disambiguator()
        self._name()

    def _back(self, places: list[int]) -> bool:
        if not places or self._chance.random() > 0.1:
            return False
        self._text += "B" + base_62(self._chance.choice(places))
        return True

    def _path(self) -> None:
        if self._back(self._paths):
            return
        at = len(self._text)
        self._depth += 1
        kind = self._chance.choice("CNNNMXYI" if self._depth < _DEEPEST else "C")
        self._text += kind
        if kind == "N":
            self._some(*"tvCSQ")
            self._path()
        if kind in "MX":
            self._disambiguator()
            self._path()
        if kind in "MXY":
            self._type()
        if kind in "XYI":
            self._path()
        if kind == "I":
            for _ in self._times(2):
                self._argument()
            self._text += "E"
        if kind in "CN":
            self._identifier()
        self._depth -= 1
        self._paths.append(at)

    def _argument(self) -> None:
        if self._maybe("L", 0.2):
            self._number(self._lifetimes + 1)
        elif self._maybe("K", 0.2):
            self._constant()
        else:
            self._type()

    def _constant(self) -> None:
        kinds = ("p", "b0_", "b1_", "c61_", "c5c_", "ca_", "c1f600_")
        self._some(*kinds, "h0_", "jff_", "lna_", "x80_", "y7ffffffff_")

    def _binder(self) -> int:
        return self._number(3) + 1 if self._maybe("G", 0.4) else 0

    def _type(self) -> None:
        if self._back(self._types):
            return
        at = len(self._text)
        self._depth += 1
        kind = self._chance.choice("hlcbuezRQPOASTFD+" if self._depth < _DEEPEST else "hlce")
        self._text += kind.strip("+")
        if kind in "RQ" and self._maybe("L", 0.5):
            self._number(self._lifetimes + 1)
        if kind in "RQPOAS":
            self._type()
        if kind == "A":
            self._constant()
        if kind == "T":
            for _ in self._times(2):
                self._type()
            self._text += "E"
        if kind in "FD":
            bound = self._binder()
            self._lifetimes += bound
            self._function() if kind == "F" else self._traits()
            self._lifetimes -= bound
        if kind == "D":
            self._text += "L"
            self._number(self._lifetimes + 1)
        if kind == "+":
            self._path()
        self._depth -= 1
        self._types.append(at)

    def _function(self) -> None:
        self._maybe("U")
        if self._maybe("K"):
            self._some("C", "9rust_call")
        for _ in self._times(2):
            self._type()
        self._text += "E"
        self._type()

    def _traits(self) -> None:
        for _ in self._times(2):
            self._path()
            for _ in self._times(1):
                self._text += "p"
                self._name()
                self._type()
        self._text += "E"
