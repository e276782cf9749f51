"""Btf: the types of a kernel, as it carries them itself: CONFIG_DEBUG_INFO_BTF, Documentation/bpf/btf.rst.

Where the members of its structures lie is read here, not known.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from perfcore.abi.btf import AGGREGATES, ALIASES, ARRAY, BEHIND, HEADER, MAGIC, MEMBER, TYPE, VERSION, Kind

_MAGIC = struct.pack("<HBBI", MAGIC, VERSION, 0, HEADER.size)  # how its header begins
_BITFIELD_OFFSET = (1 << 24) - 1  # of a member's offset, where the structure's kind_flag is set
_POINTER_BYTES = 8
_MOST_DEEP = 32  # types behind a type: a kernel has fewer
_MOST_MEMBERS = 100_000  # that are looked at for one
_MOST_BYTES = 64 << 20  # of types, and of names
_MOST_TRIES = 4  # of what only looks like a header


_SIZED = (Kind.INT, *AGGREGATES, Kind.ENUM, Kind.FLOAT, Kind.ENUM64)
_BYTES_BEHIND = [BEHIND.get(kind, (0, 0)) for kind in range(32)]


class BtfProblem(Exception):
    """It has no such type, or makes no sense."""


class Member(NamedTuple):
    """Of a structure: where it lies in it, and how long it is, in bytes."""

    offset: int
    size: int


class Btf:
    """Raises BtfProblem, here and when asked for what is not there."""

    def __init__(self, data: bytes | memoryview) -> None:
        """`data` begins with the header."""
        try:
            *_, length, type_at, type_bytes, string_at, string_bytes = HEADER.unpack_from(data)
        except struct.error:
            raise BtfProblem("it has no header") from None
        if max(type_bytes, string_bytes) > _MOST_BYTES:
            raise BtfProblem(f"it has more than {_MOST_BYTES >> 20} MiB")
        self._types = bytes(data[length + type_at : length + type_at + type_bytes])
        self._strings = bytes(data[length + string_at : length + string_at + string_bytes])
        if len(self._types) != type_bytes or len(self._strings) != string_bytes or not string_bytes:
            raise BtfProblem("it is cut")
        try:
            self._at = list(self._walk())
        except struct.error:
            raise BtfProblem("its types are cut") from None
        self._named: dict[tuple[int, int], int] = {}  # (name, kind) -> number of the first such type

    @classmethod
    def find(cls, memory: bytes) -> Btf | None:
        """In a kernel's image; None if there is none."""
        at = -1
        for _ in range(_MOST_TRIES):
            at = memory.find(_MAGIC, at + 1)
            if at < 0:
                break
            try:
                found = cls(memoryview(memory)[at:])
                if len(found._at) > 1:
                    return found
            except BtfProblem:
                continue
        return None

    def _walk(self) -> Iterator[int]:
        """Where each type lies. Number 0 is void, and lies nowhere."""
        yield 0
        at, end, info_of = 0, len(self._types), struct.Struct("<I").unpack_from
        while at < end:
            yield at
            (info,) = info_of(self._types, at + 4)
            fixed, each = _BYTES_BEHIND[info >> 24 & 0x1F]
            at += TYPE.size + fixed + each * (info & 0xFFFF)

    def _string(self, at: int) -> bytes:
        return self._strings[at : self._strings.find(b"\0", at)]

    def _type(self, number: int) -> tuple[int, int, int, int, int]:
        """Name, kind, number of parts, size or type, and where the rest lies."""
        if not 0 < number < len(self._at):
            raise BtfProblem(f"there is no type {number}")
        at = self._at[number]
        name, info, size = TYPE.unpack_from(self._types, at)
        return name, info >> 24 & 0x1F, info & 0xFFFF | info >> 31 << 16, size, at + TYPE.size

    def _find(self, name: str, kinds: Iterable[int]) -> int:
        text = b"\0" + name.encode() + b"\0"
        at = self._strings.find(text) + 1
        if not at:
            raise BtfProblem(f"it has no {name}")
        if not self._named:
            self._index()
        found = next((self._named[at, kind] for kind in kinds if (at, kind) in self._named), None)
        if found is None:
            raise BtfProblem(f"it has no {name}")
        return found

    def _index(self) -> None:
        unpack, types = TYPE.unpack_from, self._types
        for number in range(1, len(self._at)):
            name, info, _ = unpack(types, self._at[number])
            if name:
                self._named.setdefault((name, info >> 24 & 0x1F), number)

    def _bare(self, number: int) -> int:
        """Without the names and qualifiers around it."""
        for _ in range(_MOST_DEEP):
            _, kind, _, target, _ = self._type(number)
            if kind not in ALIASES:
                return number
            number = target
        raise BtfProblem(f"type {number} is of itself")

    def _size(self, number: int, deep: int = 0) -> int:
        number = self._bare(number)
        _, kind, _, size, at = self._type(number)
        if kind == Kind.PTR:
            return _POINTER_BYTES
        if kind == Kind.ARRAY and deep < _MOST_DEEP:
            element, _, count = ARRAY.unpack_from(self._types, at)
            return int(count) * self._size(element, deep + 1)
        if kind not in _SIZED:
            raise BtfProblem(f"type {number} has no size")
        return int(size)

    def _members(self, number: int, base: int = 0, deep: int = 0) -> Iterator[tuple[bytes, int, int]]:
        """Name, offset in bytes and type of each; those of members without a name as their own."""
        _, kind, parts, _, at = self._type(self._bare(number))
        if kind not in AGGREGATES or deep > _MOST_DEEP:
            return
        for index in range(parts & 0xFFFF):
            name, member, offset = MEMBER.unpack_from(self._types, at + index * MEMBER.size)
            bits = offset & _BITFIELD_OFFSET if parts >> 16 else offset
            if name:
                yield self._string(name), base + bits // 8, member
            else:
                yield from self._members(member, base + bits // 8, deep + 1)

    def size(self, name: str) -> int:
        """Of struct NAME, in bytes."""
        return self._size(self._find(name, AGGREGATES))

    def member(self, structure: str, path: str) -> Member:
        """Of struct STRUCTURE: a member, or with dots one of a structure that it is."""
        number, offset = self._find(structure, AGGREGATES), 0
        for name in path.encode().split(b"."):
            members = islice(self._members(number), _MOST_MEMBERS)
            found = next(((at, kind) for each, at, kind in members if each == name), None)
            if found is None:
                raise BtfProblem(f"struct {structure} has no {path}")
            offset, number = offset + found[0], found[1]
        return Member(offset, self._size(number))

    def has_member(self, structure: str, path: str) -> bool:
        try:
            self.member(structure, path)
        except BtfProblem:
            return False
        return True

    def enumerator(self, name: str, constant: str) -> int:
        """The value of a constant of enum NAME."""
        number = self._find(name, (Kind.ENUM,))
        _, _, parts, _, at = self._type(number)
        for index in range(parts & 0xFFFF):
            text, value = struct.unpack_from("<II", self._types, at + 8 * index)
            if self._string(text) == constant.encode():
                return int(value)
        raise BtfProblem(f"enum {name} has no {constant}")

    def variable(self, section: str, name: str) -> int:
        """Where a variable lies in a section, in bytes."""
        wanted = self._find(name, (Kind.VAR,))
        _, _, parts, _, at = self._type(self._find(section, (Kind.DATASEC,)))
        for index in range(parts & 0xFFFF):
            variable, offset, _ = struct.unpack_from("<III", self._types, at + 12 * index)
            if variable == wanted:
                return int(offset)
        raise BtfProblem(f"{section} has no {name}")
