"""Btf: types that a process has loaded. Documentation/bpf/btf.rst; what kernel/bpf/btf.c checks of its form.

Here is whether they are in order. What they say is asked of types.reader; the kernel's own are made by types.vmlinux.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from emulator.linux.errors import E2BIG, EINVAL, LinuxError
from perfcore.abi.btf import ALIASES, BEHIND, HEADER, MAGIC, TYPE, VERSION, Kind
from perfcore.bpf.objects import Shared

_MOST_BYTES = 16 << 20
_MOST_TYPES = 0xF_FFFF  # BTF_MAX_TYPE
_MOST_NAME = 0xFF_FFFF

# btf_type.type is another type's number
_OF_ANOTHER = ALIASES | {Kind.PTR, Kind.FUNC, Kind.FUNC_PROTO, Kind.VAR, Kind.DECL_TAG}
_WITHOUT_NAME = frozenset({Kind.PTR, Kind.ARRAY, Kind.VOLATILE, Kind.CONST, Kind.RESTRICT, Kind.FUNC_PROTO})
_NEED_NAME = frozenset(
    {Kind.INT, Kind.FWD, Kind.TYPEDEF, Kind.FUNC, Kind.VAR, Kind.DATASEC, Kind.DECL_TAG, Kind.TYPE_TAG}
)


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
            if len(types) - at < TYPE.size:
                raise _wrong(f"type {number} is not whole")
            name, info, other = TYPE.unpack_from(types, at)
            kind, members = info >> 24 & 0x1F, info & 0xFFFF
            if info & 0x60FF_0000 or kind not in BEHIND:
                raise _wrong(f"type {number} has info {info:#x}")
            self._check_name(number, kind, name)
            fixed, each = BEHIND[kind]
            size = TYPE.size + fixed + each * members
            if members and not each and kind != Kind.FUNC:
                raise _wrong(f"type {number} of kind {kind} has no members")
            if len(types) - at < size:
                raise _wrong(f"type {number} is not whole")
            if kind in _OF_ANOTHER:
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
    if len(data) < HEADER.size:
        raise _wrong(f"{len(data)} bytes have no header")
    magic, version, flags, length, type_at, type_size, string_at, string_size = HEADER.unpack_from(data)
    if magic != MAGIC or length < HEADER.size or length > len(data):
        raise _wrong(f"magic {magic:#x}, a header of {length} bytes")
    if any(data[HEADER.size : length]):
        raise LinuxError(E2BIG, "BTF: its header says what is not known")
    if version != VERSION or flags:
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
