"""TypeWriter: C types become BTF. Documentation/bpf/btf.rst."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perfcore.abi.btf import ARRAY, ENUMERATOR, HEADER, MAGIC, MEMBER, PARAMETER, TYPE, VERSION, Kind

_SIGNED, _BOOL = 1, 4  # encodings of an INT
POINTER_BYTES, ENUM_BYTES = 8, 4
_INTS = {  # by the names that compilers give them: bytes, encoding
    "char": (1, 0),
    "signed char": (1, _SIGNED),
    "unsigned char": (1, 0),
    "short int": (2, _SIGNED),
    "short unsigned int": (2, 0),
    "int": (4, _SIGNED),
    "unsigned int": (4, 0),
    "long int": (8, _SIGNED),
    "long unsigned int": (8, 0),
    "long long int": (8, _SIGNED),
    "long long unsigned int": (8, 0),
    "_Bool": (1, _BOOL),
}
_SPELLED = {  # as C has them besides
    "short": "short int",
    "unsigned short": "short unsigned int",
    "unsigned": "unsigned int",
    "long": "long int",
    "unsigned long": "long unsigned int",
    "long long": "long long int",
    "unsigned long long": "long long unsigned int",
}
_ARRAY = re.compile(r"(?P<of>.*?)\s*\[(?P<count>[0-9]+)\]\Z")
_UNION_FLAG = 1 << 31  # of a FWD


@dataclass(frozen=True, slots=True)
class Function:
    """A prototype: C types, and the names of the parameters."""

    returns: str
    parameters: tuple[tuple[str, str], ...]


Members = Sequence[tuple[str, str]]
"""C type and name of each; a member without a name is a structure or union, whose members are its own."""


@dataclass(frozen=True, slots=True)
class Declarations:
    """What the names of types mean: `typedefs` to a C type, or to a prototype, of which they are pointers; `structures`
    by `struct NAME` or `union NAME` to their members, as C lays them out. `anonymous` ones have a name here that is not
    written. `enums` by `enum NAME` to their values. Whatever is not declared is known to exist, and no more.
    """

    typedefs: Mapping[str, str | Function]
    structures: Mapping[str, Members]
    anonymous: frozenset[str] = frozenset()
    enums: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


class TypeWriter:
    """Numbers are given in the order in which types are first wanted."""

    def __init__(self, declarations: Declarations) -> None:
        self._declared = declarations
        self._types: list[bytes] = []
        self._strings = bytearray(b"\0")
        self._places: dict[str, int] = {"": 0}
        self._numbers: dict[str, int] = {"void": 0}
        self._sizes: dict[int, tuple[int, int]] = {}  # of those that have one, and their alignment

    def data(self) -> bytes:
        """All of it, with its header."""
        types = b"".join(self._types)
        header = HEADER.pack(MAGIC, VERSION, 0, HEADER.size, 0, len(types), len(types), len(self._strings))
        return header + types + bytes(self._strings)

    # ---- by C's names

    def number(self, c_type: str) -> int:
        """Of a C type."""
        text = " ".join(c_type.replace("*", " * ").split())
        text = _SPELLED.get(text, text)
        found = self._numbers.get(text)
        return self._add_named(text) if found is None else found

    def _add_named(self, text: str) -> int:
        array = _ARRAY.match(text)
        if array is not None:
            return self._add_array(text, array["of"], int(array["count"]))
        if text.endswith("*"):
            return self._sized(text, self._add(Kind.PTR, reference=self.number(text[:-1])), POINTER_BYTES)
        if text.endswith(" const"):
            return self._add_const(text, text[: -len(" const")])
        if text.startswith("const "):
            return self._add_const(text, text[len("const ") :])
        if text in _INTS:
            size, encoding = _INTS[text]
            behind = struct.pack("<I", encoding << 24 | 8 * size)
            return self._sized(text, self._add(Kind.INT, text, size, behind=behind), size)
        if text in self._declared.structures:
            return self._add_structure(text)
        if text in self._declared.enums:
            return self._add_enum(text)
        if text.startswith(("struct ", "union ")):
            kind, _, name = text.partition(" ")
            number = self._add(Kind.FWD, name, 0, flag=kind == "union")
            self._numbers[text] = number
            return number
        return self._add_typedef(text)

    def _add_const(self, text: str, of: str) -> int:
        inner = self.number(of)
        number = self._add(Kind.CONST, reference=inner)
        self._numbers[text] = number
        if inner in self._sizes:
            self._sizes[number] = self._sizes[inner]
        return number

    def _add_typedef(self, name: str) -> int:
        declared = self._declared.typedefs[name]
        if isinstance(declared, Function):
            inner = self._add(Kind.PTR, reference=self.prototype(declared))
            self._sizes[inner] = POINTER_BYTES, POINTER_BYTES
        else:
            inner = self.number(declared)
        number = self._add(Kind.TYPEDEF, name, inner)
        self._numbers[name] = number
        if inner in self._sizes:
            self._sizes[number] = self._sizes[inner]
        return number

    def _add_array(self, text: str, of: str, count: int) -> int:
        element, index = self.number(of), self.number("int")
        number = self._add(Kind.ARRAY, behind=ARRAY.pack(element, index, count))
        size, alignment = self._sizes[element]
        self._numbers[text] = number
        self._sizes[number] = size * count, alignment
        return number

    def _add_enum(self, text: str) -> int:
        values = self._declared.enums[text]
        behind = b"".join(ENUMERATOR.pack(self._string(name), value) for name, value in values.items())
        number = self._add(Kind.ENUM, text.removeprefix("enum "), ENUM_BYTES, count=len(values), behind=behind)
        return self._sized(text, number, ENUM_BYTES)

    def _add_structure(self, text: str) -> int:
        kind, _, name = text.partition(" ")
        is_union = kind == "union"
        number = self._numbers[text] = self._reserve()
        members, end, widest = b"", 0, 1
        for c_type, member in self._declared.structures[text]:
            of = self.number(c_type)
            size, alignment = self._sizes[of]
            at = 0 if is_union else -(-end // alignment) * alignment
            members += MEMBER.pack(self._string(member), of, 8 * at)
            end, widest = max(end, at + size), max(widest, alignment)
        size = -(-end // widest) * widest
        written = "" if text in self._declared.anonymous else name
        count = len(self._declared.structures[text])
        self._types[number - 1] = self._encoded(Kind.UNION if is_union else Kind.STRUCT, written, size, count, members)
        self._sizes[number] = size, widest
        return number

    # ---- functions

    def prototype(self, function: Function) -> int:
        parameters = [(self._string(name), self.number(c_type)) for c_type, name in function.parameters]
        behind = b"".join(PARAMETER.pack(*parameter) for parameter in parameters)
        return self._add(Kind.FUNC_PROTO, "", self.number(function.returns), count=len(parameters), behind=behind)

    def function(self, name: str, function: Function) -> int:
        """BTF_KIND_FUNC, static."""
        return self._add(Kind.FUNC, name, self.prototype(function))

    # ---- as BTF

    def _sized(self, text: str, number: int, size: int) -> int:
        self._numbers[text] = number
        self._sizes[number] = size, size
        return number

    def _reserve(self) -> int:
        """The number of a type that is written once its parts are known: they may be of itself."""
        self._types.append(b"")
        return len(self._types)

    def _add(
        self, kind: Kind, name: str = "", reference: int = 0, *, count: int = 0, flag: bool = False, behind: bytes = b""
    ) -> int:
        """`reference`: a type, or the size."""
        self._types.append(self._encoded(kind, name, reference, count, behind, flag=flag))
        return len(self._types)

    def _encoded(
        self, kind: Kind, name: str, reference: int, count: int, behind: bytes, *, flag: bool = False
    ) -> bytes:
        info = kind << 24 | count | (_UNION_FLAG if flag else 0)
        return TYPE.pack(self._string(name), info, reference) + behind

    def _string(self, text: str) -> int:
        found = self._places.get(text)
        if found is None:
            found = self._places[text] = len(self._strings)
            self._strings += text.encode() + b"\0"
        return found
