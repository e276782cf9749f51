"""Btf: types that a process has loaded. Documentation/bpf/btf.rst; what kernel/bpf/btf.c checks of its form.

Here is whether they are in order. What they say is asked of types.reader; the kernel's own are made by types.vmlinux.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cached_property

from emulator.linux.errors import E2BIG, EINVAL, LinuxError
from perfcore.bpf.objects import Shared

_MAGIC, _VERSION = 0xEB9F, 1
_HEADER = struct.Struct("<HBBIIIII")  # magic, version, flags, hdr_len, type_off, type_len, str_off, str_len
_TYPE = struct.Struct("<III")  # name_off, info, size or type
_MOST_BYTES = 16 << 20
_MOST_TYPES = 0xF_FFFF  # BTF_MAX_TYPE
_MOST_NAME = 0xFF_FFFF

# by BTF_KIND: bytes behind btf_type, and for each of `vlen` members
_KINDS = {
    1: (4, 0),  # INT
    2: (0, 0),  # PTR
    3: (12, 0),  # ARRAY
    4: (0, 12),  # STRUCT
    5: (0, 12),  # UNION
    6: (0, 8),  # ENUM
    7: (0, 0),  # FWD
    8: (0, 0),  # TYPEDEF
    9: (0, 0),  # VOLATILE
    10: (0, 0),  # CONST
    11: (0, 0),  # RESTRICT
    12: (0, 0),  # FUNC, whose vlen is its linkage
    13: (0, 8),  # FUNC_PROTO
    14: (4, 0),  # VAR
    15: (0, 12),  # DATASEC
    16: (0, 0),  # FLOAT
    17: (4, 0),  # DECL_TAG
    18: (0, 0),  # TYPE_TAG
    19: (0, 12),  # ENUM64
}
_WITHOUT_SIZE = frozenset({2, 8, 9, 10, 11, 12, 13, 14, 17, 18})  # btf_type.type is another type's number
_WITHOUT_NAME = frozenset({2, 3, 9, 10, 11, 13})
_NEED_NAME = frozenset({1, 7, 8, 12, 14, 15, 17, 18})


def _wrong(why: str) -> LinuxError:
    return LinuxError(EINVAL, f"BTF: {why}")


class Btf(Shared):
    """One that is in order."""

    name = b""
    is_kernels = False

    def __init__(self, data: bytes) -> None:
        """LinuxError as btf_parse() fails."""
        self.id = 0
        self.on_end: Callable[[Btf], None] = lambda btf: None
        self.data = data
        if len(data) > _MOST_BYTES:
            raise LinuxError(E2BIG, f"BTF of {len(data)} bytes")
        types, self._strings = _sections(data)
        self.count = self._check_types(types)

    def end(self) -> None:
        self.on_end(self)

    def _check_types(self, types: bytes) -> int:
        """How many there are; 0 is void."""
        at, number = 0, 0
        references = []
        while at < len(types):
            number += 1
            if len(types) - at < _TYPE.size:
                raise _wrong(f"type {number} is not whole")
            name, info, other = _TYPE.unpack_from(types, at)
            kind, members = info >> 24 & 0x1F, info & 0xFFFF
            if info & 0x60FF_0000 or kind not in _KINDS:
                raise _wrong(f"type {number} has info {info:#x}")
            self._check_name(number, kind, name)
            fixed, each = _KINDS[kind]
            size = _TYPE.size + fixed + each * members
            if members and not each and kind != 12:
                raise _wrong(f"type {number} of kind {kind} has no members")
            if len(types) - at < size:
                raise _wrong(f"type {number} is not whole")
            if kind in _WITHOUT_SIZE:
                references.append((number, other))
            at += size
        if number > _MOST_TYPES:
            raise LinuxError(E2BIG, f"{number} types")
        for type, other in references:
            if other > number:
                raise _wrong(f"type {type} is of type {other}, which does not exist")
        return number

    def _check_name(self, number: int, kind: int, name: int) -> None:
        if name > _MOST_NAME or name >= len(self._strings):
            raise _wrong(f"type {number}: its name is beyond the strings")
        named = self._strings[name] != 0
        if (named and kind in _WITHOUT_NAME) or (not named and kind in _NEED_NAME):
            raise _wrong(f"type {number} of kind {kind} has {'a' if named else 'no'} name")


class KernelBtf(Btf):
    """Of the kernel itself, which stays. `write` makes it, once somebody reads it."""

    name = b"vmlinux"
    is_kernels = True

    def __init__(self, write: Callable[[], bytes]) -> None:
        self.id = 0
        self._write = write

    @cached_property
    def data(self) -> bytes:  # type: ignore[override]
        return self._write()

    def end(self) -> None:
        """Nobody reads it, and it stays."""


def _sections(data: bytes) -> tuple[bytes, bytes]:
    """Types and strings. btf_parse_hdr(), btf_check_sec_info(), btf_parse_str_sec()"""
    if len(data) < _HEADER.size:
        raise _wrong(f"{len(data)} bytes have no header")
    magic, version, flags, length, type_at, type_size, string_at, string_size = _HEADER.unpack_from(data)
    if magic != _MAGIC or length < _HEADER.size or length > len(data):
        raise _wrong(f"magic {magic:#x}, a header of {length} bytes")
    if any(data[_HEADER.size : length]):
        raise LinuxError(E2BIG, "BTF: its header says what is not known")
    if version != _VERSION or flags:
        raise _wrong(f"version {version}, flags {flags:#x}")
    if length == len(data):
        raise _wrong("there is nothing behind its header")
    sections = sorted(((type_at, type_size), (string_at, string_size)))
    end = 0
    for at, size in sections:
        if at != end:
            raise _wrong("its sections overlap, or there is something between them")
        end = at + size
    if end != len(data) - length or type_at % 4:
        raise _wrong("its sections are not all that there is")
    strings = data[length + string_at : length + string_at + string_size]
    if not strings or strings[0] or strings[-1]:
        raise _wrong("its strings do not begin or end with a NUL")
    return data[length + type_at : length + type_at + type_size], strings
