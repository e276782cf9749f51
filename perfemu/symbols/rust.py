"""rust: Rust's v0 mangling, from RFC 2603, shown as perf does: without hashes of crates and types of constants."""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_lowercase, ascii_uppercase, digits

_BASE_62 = {char: value for value, char in enumerate(digits + ascii_lowercase + ascii_uppercase)}
_BASIC_TYPES = {
    "a": "i8", "b": "bool", "c": "char", "d": "f64", "e": "str", "f": "f32", "h": "u8", "i": "isize", "j": "usize",
    "l": "i32", "m": "u32", "n": "i128", "o": "u128", "p": "_", "s": "i16", "t": "u16", "u": "()", "v": "...",
    "x": "i64", "y": "u64", "z": "!",
}  # fmt: skip
_SPECIAL_NAMESPACES = {"C": "closure", "S": "shim"}
_UNSIGNED, _SIGNED = "htmyoj", "aslxni"  # types of constants
_ESCAPES = {"\t": r"\t", "\r": r"\r", "\n": r"\n"}  # quotes and backslashes stay, as perf has them
_MOST_STEPS = 5000  # of parsing: references back may stand for exponentially much
_MOST_NESTED = 100
_LONGEST = 16_384  # characters of a name for people


class _NoRustName(Exception):
    """The text does not follow the grammar."""


def demangle_v0(name: str) -> str | None:
    """The readable form of ``_R...``; None if it is none. What a compiler has put behind a dot is left out."""
    symbol = name.partition(".")[0]
    if not symbol.startswith("_R") or not symbol.isascii() or symbol[2:3] not in ascii_uppercase:
        return None  # a digit there would be a later version of the mangling
    reader = _Reader(symbol[2:])
    try:
        text = reader.path(in_value=True)
        if not reader.at_end:
            reader.path(in_value=False)  # the crate for which it was instantiated
        return text if reader.at_end else None
    except _NoRustName:
        return None


class _Reader:
    """Reads one name. The productions of the RFC's grammar, each of which returns what it means."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._steps = 0
        self._nested = 0
        self._lifetimes = 0  # that binders around have introduced

    @property
    def at_end(self) -> bool:
        return self._at == len(self._text)

    def _take(self) -> str:
        if self.at_end:
            raise _NoRustName
        self._at += 1
        return self._text[self._at - 1]

    def _takes(self, char: str) -> bool:
        """Whether it comes next; then it is taken."""
        found = self._text.startswith(char, self._at)
        self._at += found
        return found

    def _until_e(self, production: Callable[[], str]) -> list[str]:
        found = []
        while not self._takes("E"):
            found.append(production())
        return found

    def _guarded(self, production: Callable[[], str]) -> str:
        self._steps += 1
        self._nested += 1
        if self._steps > _MOST_STEPS or self._nested > _MOST_NESTED:
            raise _NoRustName
        text = production()
        if len(text) > _LONGEST:
            raise _NoRustName
        self._nested -= 1
        return text

    # ---- numbers and identifiers

    def _base_62(self) -> int:
        """``_`` is 0, ``0_`` is 1."""
        if self._takes("_"):
            return 0
        value = 0
        while (char := self._take()) != "_":
            if char not in _BASE_62:
                raise _NoRustName
            value = value * 62 + _BASE_62[char]
            if value >> 64:
                raise _NoRustName
        return value + 1

    def _optional_base_62(self, tag: str) -> int:
        return self._base_62() + 1 if self._takes(tag) else 0

    def _identifier(self) -> tuple[str, int]:
        """The name and its disambiguator."""
        disambiguator = self._optional_base_62("s")
        return self._undisambiguated(), disambiguator

    def _undisambiguated(self) -> str:
        is_punycode = self._takes("u")
        size_at = self._at
        if not self._takes("0"):
            while self._text[self._at : self._at + 1] in digits and not self.at_end:
                self._at += 1
        if self._at == size_at or self._at - size_at > 6:
            raise _NoRustName
        size = int(self._text[size_at : self._at])
        self._takes("_")  # where the name begins with a digit or another underscore
        name = self._text[self._at : self._at + size]
        self._at += size
        if len(name) != size:
            raise _NoRustName
        return _from_punycode(name) if is_punycode else name

    def _back(self, production: Callable[[], str]) -> str:
        """What stands at an earlier place."""
        here = self._at - 1
        target = self._base_62()
        if target >= here:
            raise _NoRustName
        after, self._at = self._at, target
        text = production()
        self._at = after
        return text

    # ---- paths

    def path(self, in_value: bool) -> str:
        """``in_value``: generic arguments follow two colons, as in expressions."""
        return self._guarded(lambda: self._path(in_value))

    def _path(self, in_value: bool) -> str:
        match self._take():
            case "C":
                return self._identifier()[0]
            case "N":
                return self._nested_path(in_value)
            case "M":
                self._impl_path()
                return f"<{self._type()}>"
            case "X":
                self._impl_path()
                return self._as_trait()
            case "Y":
                return self._as_trait()
            case "I":
                return self._open_generics(in_value) + ">"
            case "B":
                return self._back(lambda: self.path(in_value))
        raise _NoRustName

    def _nested_path(self, in_value: bool) -> str:
        namespace = self._take()
        if not namespace.isalpha():
            raise _NoRustName
        outer = self.path(in_value)
        name, disambiguator = self._identifier()
        if namespace.isupper():
            kind = _SPECIAL_NAMESPACES.get(namespace, namespace)
            return f"{outer}::{{{kind}{':' if name else ''}{name}#{disambiguator}}}"
        return f"{outer}::{name}" if name else outer

    def _impl_path(self) -> None:
        """Where an impl stands; that is not shown."""
        self._optional_base_62("s")
        self.path(in_value=False)

    def _as_trait(self) -> str:
        type_ = self._type()
        return f"<{type_} as {self.path(in_value=False)}>"

    def _open_generics(self, in_value: bool) -> str:
        """Behind an ``I``, without the last ``>``."""
        outer = self.path(in_value)
        return f"{outer}{'::' if in_value else ''}<{', '.join(self._until_e(self._generic_argument))}"

    def _generic_argument(self) -> str:
        if self._takes("L"):
            return self._lifetime(self._base_62())
        return self._constant() if self._takes("K") else self._type()

    # ---- lifetimes

    def _lifetime(self, index: int) -> str:
        """0 is erased; others count outwards from the innermost that a binder has introduced."""
        if not index:
            return "'_"
        if index > self._lifetimes:
            raise _NoRustName
        depth = self._lifetimes - index
        return f"'{ascii_lowercase[depth]}" if depth < 26 else f"'_{depth}"

    def _bound(self, production: Callable[[], str]) -> str:
        """``for<'a>`` before what is inside of it."""
        count = self._optional_base_62("G")
        if count > _MOST_NESTED:
            raise _NoRustName
        self._lifetimes += count
        names = ", ".join(self._lifetime(count - number) for number in range(count))
        text = (f"for<{names}> " if count else "") + production()
        self._lifetimes -= count
        return text

    # ---- types

    def _type(self) -> str:
        return self._guarded(self._any_type)

    def _any_type(self) -> str:
        tag = self._take()
        if tag in _BASIC_TYPES:
            return _BASIC_TYPES[tag]
        match tag:
            case "R" | "Q":
                lifetime = self._base_62() if self._takes("L") else 0
                shown = f"{self._lifetime(lifetime)} " if lifetime else ""
                return f"&{shown}{'mut ' if tag == 'Q' else ''}{self._type()}"
            case "P":
                return f"*const {self._type()}"
            case "O":
                return f"*mut {self._type()}"
            case "A":
                type_ = self._type()
                return f"[{type_}; {self._constant()}]"
            case "S":
                return f"[{self._type()}]"
            case "T":
                types = self._until_e(self._type)
                return f"({', '.join(types)}{',' if len(types) == 1 else ''})"
            case "F":
                return self._bound(self._function)
            case "D":
                traits = self._bound(lambda: " + ".join(self._until_e(self._dyn_trait)))
                if not self._takes("L"):
                    raise _NoRustName
                lifetime = self._base_62()
                return f"dyn {traits}" + (f" + {self._lifetime(lifetime)}" if lifetime else "")
            case "B":
                return self._back(self._type)
        self._at -= 1
        return self.path(in_value=False)

    def _function(self) -> str:
        qualifiers = "unsafe " if self._takes("U") else ""
        if self._takes("K"):
            abi = "C" if self._takes("C") else self._undisambiguated().replace("_", "-")
            qualifiers += f'extern "{abi}" '
        parameters = ", ".join(self._until_e(self._type))
        result = "" if self._takes("u") else f" -> {self._type()}"
        return f"{qualifiers}fn({parameters}){result}"

    def _dyn_trait(self) -> str:
        """A trait; its associated types stand among its generic arguments."""
        text, is_open = self._maybe_open_path()
        while self._takes("p"):
            name = self._undisambiguated()
            text += f"{', ' if is_open else '<'}{name} = {self._type()}"
            is_open = True
        return text + (">" if is_open else "")

    def _maybe_open_path(self) -> tuple[str, bool]:
        if self._takes("I"):
            return self._open_generics(in_value=False), True
        if self._takes("B"):
            opened: list[bool] = []

            def earlier() -> str:
                text, is_open = self._maybe_open_path()
                opened.append(is_open)
                return text

            return self._guarded(lambda: self._back(earlier)), opened[0]
        return self.path(in_value=False), False

    # ---- constants

    def _constant(self) -> str:
        return self._guarded(self._any_constant)

    def _any_constant(self) -> str:
        tag = self._take()
        if tag == "B":
            return self._back(self._constant)
        if tag == "p":
            return "_"
        sign = "-" if tag in _SIGNED and self._takes("n") else ""
        number_at = self._at
        while self._take() != "_":
            if self._text[self._at - 1] not in "0123456789abcdef":
                raise _NoRustName
        number = self._text[number_at : self._at - 1]
        if tag in _UNSIGNED or tag in _SIGNED:
            return sign + (f"0x{number}" if len(number) > 16 else str(int(number or "0", 16)))
        if tag == "b" and number in ("0", "1"):
            return "true" if number == "1" else "false"
        if tag == "c" and number and int(number, 16) < 0x110000:
            return f"'{_escaped(chr(int(number, 16)))}'"
        raise _NoRustName


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if " " <= char <= "~" else f"\\u{{{ord(char):x}}}"


def _from_punycode(name: str) -> str:
    """RFC 3492, with an underscore in the place of the last hyphen."""
    basic, _, extended = name.rpartition("_")
    try:
        return (f"{basic}-{extended}" if basic else extended).encode("ascii").decode("punycode")
    except (UnicodeError, ValueError, OverflowError):
        return f"punycode{{{basic}-{extended}}}" if basic else f"punycode{{{extended}}}"
