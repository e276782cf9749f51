"""What a file holds of AUX areas: traces, and what their decoders must know. As tools/perf/util/auxtrace.c."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from perfcore.abi.sample import HEADER
from perfcore.perfdata.records import UserRecord, pack_record

_AUXTRACE = struct.Struct("<QQQIIII")  # struct perf_record_auxtrace without its header
AUXTRACE_SIZE = HEADER.size + _AUXTRACE.size  # bytes of the record; what it is of stands behind it
ALIGNMENT = 8  # bytes of that: PERF_AUXTRACE_RECORD_ALIGNMENT
_ANYBODY = 0xFFFF_FFFF  # tid -1, cpu -1


class AuxTraceType(IntEnum):
    """Whose decoder: enum auxtrace_type."""

    INTEL_PT = 1
    INTEL_BTS = 2
    ARM_SPE = 4


@dataclass(frozen=True, slots=True)
class AuxTrace:
    """A stretch of one buffer's AUX area."""

    data: bytes
    offset: int  # of its first byte in all that has been written there
    reference: int  # the time at which it was read, on the records' clock: readers order several by it
    index: int  # of the buffer
    cpu: int | None  # whose buffer it is; None: a task's
    tid: int | None = None

    def pack(self) -> bytes:
        """PERF_RECORD_AUXTRACE, and the data behind it, padded."""
        data = self.data.ljust(-(-len(self.data) // ALIGNMENT) * ALIGNMENT, b"\0")
        tid = _ANYBODY if self.tid is None else self.tid
        cpu = _ANYBODY if self.cpu is None else self.cpu
        body = _AUXTRACE.pack(len(data), self.offset, self.reference, self.index, tid, cpu, 0)
        return HEADER.pack(UserRecord.AUXTRACE, 0, AUXTRACE_SIZE) + body + data


def pack_auxtrace_info(kind: AuxTraceType, words: Sequence[int]) -> bytes:
    """PERF_RECORD_AUXTRACE_INFO: `words` are the decoder's own (64 bits each)."""
    return pack_record(UserRecord.AUXTRACE_INFO, struct.pack(f"<II{len(words)}Q", kind, 0, *words))


def pack_time_conv(*, shift: int, multiplier: int, zero: int) -> bytes:
    """PERF_RECORD_TIME_CONV: how readers turn a trace's time into the records': (time * multiplier >> shift) + zero."""
    return pack_record(UserRecord.TIME_CONV, struct.pack("<QQQQQBB6x", shift, multiplier, zero, 0, 0, 1, 0))


def pack_auxtrace_index(offsets: Sequence[int]) -> bytes:
    """The feature AUXTRACE: where in the file each PERF_RECORD_AUXTRACE begins."""
    return struct.pack("<Q", len(offsets)) + b"".join(struct.pack("<QQ", at, AUXTRACE_SIZE) for at in offsets)
