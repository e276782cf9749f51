"""BTF: how types lie in it, those of a kernel and those of a program. uapi/linux/btf.h, Documentation/bpf/btf.rst."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum

MAGIC, VERSION = 0xEB9F, 1
HEADER = struct.Struct("<HBBIIIII")  # magic, version, flags, hdr_len, type_off, type_len, str_off, str_len
TYPE = struct.Struct("<III")  # name_off, info, size or type
MEMBER = struct.Struct("<III")  # of a structure or union: name_off, type, offset in bits
ARRAY = struct.Struct("<III")  # of an array, alone: its elements' type, its index's, how many
PARAMETER = struct.Struct("<II")  # of a prototype: name_off, type
ENUMERATOR = struct.Struct("<Ii")  # of an enum: name_off, value


class Kind(IntEnum):
    """BTF_KIND_*; 0 is void, which lies nowhere."""

    INT = 1
    PTR = 2
    ARRAY = 3
    STRUCT = 4
    UNION = 5
    ENUM = 6
    FWD = 7
    TYPEDEF = 8
    VOLATILE = 9
    CONST = 10
    RESTRICT = 11
    FUNC = 12
    FUNC_PROTO = 13
    VAR = 14
    DATASEC = 15
    FLOAT = 16
    DECL_TAG = 17
    TYPE_TAG = 18
    ENUM64 = 19


AGGREGATES = (Kind.STRUCT, Kind.UNION)
ALIASES = frozenset({Kind.TYPEDEF, Kind.VOLATILE, Kind.CONST, Kind.RESTRICT, Kind.TYPE_TAG})  # of another type
_BEHIND = {
    Kind.INT: (4, 0),
    Kind.ARRAY: (ARRAY.size, 0),
    Kind.STRUCT: (0, MEMBER.size),
    Kind.UNION: (0, MEMBER.size),
    Kind.ENUM: (0, ENUMERATOR.size),
    Kind.FUNC_PROTO: (0, PARAMETER.size),
    Kind.VAR: (4, 0),
    Kind.DATASEC: (0, 12),
    Kind.DECL_TAG: (4, 0),
    Kind.ENUM64: (0, 12),
}
# By kind: bytes behind a type's TYPE, and for each of its `vlen` parts. A FUNC's vlen is its linkage.
BEHIND: Mapping[int, tuple[int, int]] = {kind: _BEHIND.get(kind, (0, 0)) for kind in Kind}
