"""Types: what some BTF says, asked by number: of the kernel, or of a program. What is asked has been checked before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from perfcore.abi.btf import AGGREGATES, ALIASES, ARRAY, BEHIND, HEADER, MEMBER, PARAMETER, TYPE, Kind

_NUMBERS = frozenset({Kind.INT, Kind.ENUM, Kind.ENUM64})
_STRUCTURES = (*AGGREGATES, Kind.FWD)
_SIZED = _NUMBERS.union(AGGREGATES)
_MOST_DEEP = 32
POINTER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Parameter:
    """`target`: the structure that it is a pointer to; 0: it is a number to programs. -1: neither."""

    name: str
    target: int
    size: int  # bytes; 0: it has none
    is_pointer: bool = False


@dataclass(frozen=True, slots=True)
class Prototype:
    """Of a function."""

    parameters: tuple[Parameter, ...]
    returns: Parameter | None  # None: nothing


class Types:
    """All of one."""

    def __init__(self, data: bytes) -> None:
        *_, length, type_at, type_bytes, string_at, string_bytes = HEADER.unpack_from(data)
        self._types = data[length + type_at : length + type_at + type_bytes]
        self._strings = data[length + string_at : length + string_at + string_bytes]

    @cached_property
    def _places(self) -> list[int]:
        places, at = [0], 0
        while at < len(self._types):
            places.append(at)
            _, info, _ = TYPE.unpack_from(self._types, at)
            fixed, each = BEHIND[info >> 24 & 0x1F]
            at += TYPE.size + fixed + each * (info & 0xFFFF)
        return places

    def _type(self, number: int) -> tuple[int, int, int, int]:
        """Kind, how many parts, size or type, and where its parts are. 0 is void."""
        if not 0 < number < len(self._places):
            return 0, 0, 0, 0
        at = self._places[number]
        _, info, other = TYPE.unpack_from(self._types, at)
        return info >> 24 & 0x1F, info & 0xFFFF, other, at + TYPE.size

    def _string(self, at: int) -> str:
        end = self._strings.find(b"\0", at)
        return self._strings[at : max(end, at)].decode("utf-8", "replace")

    def name(self, number: int) -> str:
        if not 0 < number < len(self._places):
            return "void"
        return self._string(TYPE.unpack_from(self._types, self._places[number])[0])

    def kind(self, number: int) -> int:
        return self._type(number)[0]

    def _bare(self, number: int) -> int:
        """Without names and qualifiers around it."""
        for _ in range(_MOST_DEEP):
            kind, _, other, _ = self._type(number)
            if kind not in ALIASES:
                return number
            number = other
        return 0

    def size(self, number: int, deep: int = 0) -> int:
        """In bytes; 0 where it has none."""
        kind, _, other, at = self._type(self._bare(number))
        if kind == Kind.PTR:
            return POINTER_BYTES
        if kind == Kind.ARRAY:
            element, _, count = ARRAY.unpack_from(self._types, at)
            return self.size(element, deep + 1) * int(count) if deep < _MOST_DEEP else 0
        return other if kind in _SIZED else 0

    def _parameter(self, name: str, number: int) -> Parameter:
        bare = self._bare(number)
        kind, _, other, _ = self._type(bare)
        target = 0 if kind in _NUMBERS else -1
        if kind == Kind.PTR:
            pointed = self._bare(other)
            target = pointed if self._type(pointed)[0] in _STRUCTURES else 0
        return Parameter(name, target, self.size(bare), kind == Kind.PTR)

    def function(self, number: int) -> Prototype | None:
        """Of a FUNC; None where it is none."""
        kind, _, prototype, _ = self._type(number)
        return self.prototype(prototype) if kind == Kind.FUNC else None

    def function_pointer(self, number: int) -> Prototype | None:
        """Of what a typedef of a pointer to a function leads to."""
        kind, _, pointer, _ = self._type(number)
        if kind != Kind.TYPEDEF or self._type(pointer)[0] != Kind.PTR:
            return None
        return self.prototype(self._type(pointer)[2])

    def prototype(self, number: int) -> Prototype | None:
        kind, count, returned, at = self._type(number)
        if kind != Kind.FUNC_PROTO:
            return None
        parts = [PARAMETER.unpack_from(self._types, at + PARAMETER.size * index) for index in range(count)]
        parameters = tuple(self._parameter(self._string(name), type) for name, type in parts)
        return Prototype(parameters, self._parameter("", returned) if returned else None)

    def members(self, number: int) -> Sequence[tuple[str, int, int]]:
        """Name, type and offset in bytes of each member of a structure or union."""
        kind, count, _, at = self._type(number)
        if kind not in AGGREGATES:
            return ()
        parts = [MEMBER.unpack_from(self._types, at + MEMBER.size * index) for index in range(count)]
        return [(self._string(name), type, bits // 8) for name, type, bits in parts]

    def access(self, number: int, offset: int, size: int, deep: int = 0) -> Parameter | None:
        """What `size` bytes of a structure are, at an offset; None where no member has them."""
        for name, type, start in self.members(number):
            bare = self._bare(type)
            kind = self._type(bare)[0]
            inside = offset - start
            if not 0 <= inside <= self.size(bare) - size:
                continue
            found: Parameter | None = None
            if kind in AGGREGATES:
                found = self.access(bare, inside, size, deep + 1) if deep < _MOST_DEEP else None
            elif kind == Kind.ARRAY:
                found = Parameter(name, 0, size)
            elif kind != Kind.PTR or (not inside and size == POINTER_BYTES):
                found = self._parameter(name, bare)
            if found is not None:
                return found
        return None
