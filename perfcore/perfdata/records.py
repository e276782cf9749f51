"""The records that only a file has: PERF_RECORD_* from 64 on (enum perf_user_event_type of tools/lib/perf/event.h).

The kernel's own records are perfcore.abi.records'; this file does not decode their bodies.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from perfcore.abi.sample import HEADER, LONGEST_RECORD
from perfcore.perfdata.errors import Malformed

RECORD_HEADER_SIZE = HEADER.size
_BUILD_ID_SIZE_IS_VALID = 1 << 15  # PERF_RECORD_MISC_BUILD_ID_SIZE
_BUILD_ID_BODY = struct.Struct("<i20sB3x")
_NAME_ALIGNMENT = 64  # bytes
EVENT_UPDATE_NAME = 2  # PERF_EVENT_UPDATE__NAME


class UserRecord(IntEnum):
    """Record types that perf, and not the kernel, puts into a file."""

    HEADER_ATTR = 64
    HEADER_EVENT_TYPE = 65
    HEADER_TRACING_DATA = 66
    HEADER_BUILD_ID = 67
    FINISHED_ROUND = 68
    ID_INDEX = 69
    AUXTRACE_INFO = 70
    AUXTRACE = 71
    AUXTRACE_ERROR = 72
    THREAD_MAP = 73
    CPU_MAP = 74
    STAT_CONFIG = 75
    STAT = 76
    STAT_ROUND = 77
    EVENT_UPDATE = 78
    TIME_CONV = 79
    HEADER_FEATURE = 80
    COMPRESSED = 81
    FINISHED_INIT = 82


@dataclass(frozen=True, slots=True)
class BuildId:
    """The build id of one mapped file. `misc` is the cpumode of its mappings (2: user); pid -1 is the host."""

    path: str
    build_id: bytes  # up to 20 bytes
    misc: int = 2
    pid: int = -1


def pack_record(record_type: int, body: bytes = b"", misc: int = 0) -> bytes:
    """A whole record; the body is padded to a multiple of 8 bytes."""
    size = RECORD_HEADER_SIZE + (len(body) + 7 & ~7)
    if size > LONGEST_RECORD:
        raise ValueError(f"record type {record_type}: {size} bytes, a record has at most {LONGEST_RECORD}")
    return HEADER.pack(record_type, misc, size) + body.ljust(size - RECORD_HEADER_SIZE, b"\0")


def pack_header_attr(attr: bytes, ids: tuple[int, ...]) -> bytes:
    """PERF_RECORD_HEADER_ATTR: one event of a pipe."""
    return pack_record(UserRecord.HEADER_ATTR, attr + struct.pack(f"<{len(ids)}Q", *ids))


def pack_header_feature(feature: int, blob: bytes) -> bytes:
    """PERF_RECORD_HEADER_FEATURE: one feature of a pipe."""
    return pack_record(UserRecord.HEADER_FEATURE, struct.pack("<Q", feature) + blob)


def pack_tracing_data(blob: bytes) -> bytes:
    """PERF_RECORD_HEADER_TRACING_DATA: the blob stands behind the record, and only the record says how long it is."""
    size = len(blob) + 7 & ~7
    record = HEADER.pack(UserRecord.HEADER_TRACING_DATA, 0, RECORD_HEADER_SIZE + 4) + struct.pack("<I", size)
    return record + blob.ljust(size, b"\0")


def pack_event_name(identifier: int, name: str) -> bytes:
    """PERF_RECORD_EVENT_UPDATE with the name of a pipe's event."""
    text = name.encode("utf-8", "surrogateescape") + b"\0"
    return pack_record(UserRecord.EVENT_UPDATE, struct.pack("<QQ", EVENT_UPDATE_NAME, identifier) + text)


FINISHED_ROUND = pack_record(UserRecord.FINISHED_ROUND)
FINISHED_INIT = pack_record(UserRecord.FINISHED_INIT)


def pack_build_id(build_id: BuildId) -> bytes:
    """PERF_RECORD_HEADER_BUILD_ID, which is also the shape of the BUILD_ID feature's entries."""
    name = build_id.path.encode("utf-8", "surrogateescape") + b"\0"
    name = name.ljust(-(-len(name) // _NAME_ALIGNMENT) * _NAME_ALIGNMENT, b"\0")
    if len(build_id.build_id) > 20:
        raise ValueError(f"build id of {build_id.path}: {len(build_id.build_id)} bytes, at most 20 fit")
    body = _BUILD_ID_BODY.pack(build_id.pid, build_id.build_id, len(build_id.build_id)) + name
    return pack_record(UserRecord.HEADER_BUILD_ID, body, build_id.misc | _BUILD_ID_SIZE_IS_VALID)


def unpack_build_id(record: bytes) -> BuildId:
    """From a whole record. Raises Malformed."""
    start = RECORD_HEADER_SIZE + _BUILD_ID_BODY.size
    if len(record) < start:
        raise Malformed(f"build-id record of {len(record)} bytes, it takes {start} and a name")
    _, misc, _ = HEADER.unpack_from(record)
    pid, build_id, length = _BUILD_ID_BODY.unpack_from(record, RECORD_HEADER_SIZE)
    if not misc & _BUILD_ID_SIZE_IS_VALID:
        length = 20
    name = record[start:].split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
    return BuildId(name, build_id[:length], misc & 7, pid)
