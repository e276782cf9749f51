"""RecordStream: the bytes of a perf.data file's data, or of a pipe, cut into records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfcore.abi.constants import RecordType
from perfcore.abi.sample import HEADER
from perfcore.perfdata.errors import PerfDataError
from perfcore.perfdata.records import RECORD_HEADER_SIZE, UserRecord

FIRST_USER_RECORD = int(UserRecord.HEADER_ATTR)  # record types from here on are perf's own
_BLOCK_BYTES = 1 << 18  # read at once
_SHORTEST_RUN = 8  # samples
_KIND_AND_SIZE = 0xFFFF_0000_FFFF_FFFF  # of a record's first word, without misc
_TRACING_DATA = int(UserRecord.HEADER_TRACING_DATA)
_MOST_TRACING_DATA = 1 << 26  # bytes
_BEFORE_PAYLOAD = {  # records whose payload stands behind them: where they say how long it is
    int(UserRecord.AUXTRACE): slice(8, 16),
    int(UserRecord.HEADER_TRACING_DATA): slice(8, 12),
}
_SAMPLE = int(RecordType.SAMPLE)


class RawRecord(NamedTuple):
    """One record as it lies in the file: `data` is all of it, header included."""

    offset: int
    type: int
    misc: int
    data: bytes


class SampleRun(NamedTuple):
    """Samples of one size that lie one behind the other, from `offset` on: a row of words each, header included."""

    offset: int
    words: NDArray[np.uint64]


class RecordStream:
    """The records of `file` from `offset` on: `size` bytes, or None for what a pipe brings.

    `interrupted`: they may end within one. Records of perf's own are given to `take_user_record` before anybody else
    has them, and the payload of TRACING_DATA to `take_tracing_data`.
    """

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        offset: int,
        size: int | None,
        *,
        interrupted: bool,
        take_user_record: Callable[[RawRecord], None],
        take_tracing_data: Callable[[bytes], None],
    ) -> None:
        self._file = file
        self._name = name
        self._offset = offset
        self._size = size
        self._interrupted = interrupted
        self._take_user_record = take_user_record
        self._take_tracing_data = take_tracing_data

    def walk(self, run_size: int) -> Iterator[RawRecord | SampleRun]:
        """All of them; samples of `run_size` bytes in runs, where many lie together."""
        left, offset = self._size, self._offset
        if left is None:
            left = 1 << 62
        else:
            self._file.seek(offset)
        unpack = HEADER.unpack_from
        block, position = b"", 0
        while left > 0:
            if len(block) - position < RECORD_HEADER_SIZE:
                block, position = block[position:] + self._read(min(_BLOCK_BYTES, left)), 0
                if not block and self._size is None:
                    return
                if len(block) < RECORD_HEADER_SIZE:
                    if self._interrupted:
                        return
                    raise self._error(f"{len(block)} bytes at {offset:#x} are too few for a record")
            kind, misc, size = unpack(block, position)
            if size < RECORD_HEADER_SIZE:
                raise self._error(f"record at {offset:#x}: type {kind}, size {size} is less than its header")
            if size > left:
                raise self._error(f"record at {offset:#x}: type {kind}, {size} bytes, only {left} are left of the data")
            if len(block) - position < size:
                block, position = block[position:] + self._read(min(_BLOCK_BYTES, left)), 0
                if len(block) < size:
                    if self._interrupted:
                        return
                    raise self._error(f"record at {offset:#x}: type {kind}, {size} bytes, the file ends before it does")
            if size == run_size and kind == _SAMPLE:
                run = _run(block, position, size, min(len(block) - position, left) // size)
                if run is not None:
                    yield SampleRun(offset, run)
                    position += run.nbytes
                    offset += run.nbytes
                    left -= run.nbytes
                    continue
            record = RawRecord(offset, kind, misc, block[position : position + size])
            position += size
            offset += size
            left -= size
            if kind >= FIRST_USER_RECORD:
                self._take_user_record(record)
                if kind in _BEFORE_PAYLOAD:
                    payload = int.from_bytes(record.data[_BEFORE_PAYLOAD[kind]], "little")
                    if payload > left:
                        name = UserRecord(kind).name
                        raise self._error(f"{name} at {record.offset:#x}: {payload} bytes, only {left} are left")
                    wanted = kind == _TRACING_DATA and payload <= _MOST_TRACING_DATA
                    block, position = self._skip(block, position, payload, wanted), 0
                    offset += payload
                    left -= payload
            yield record

    def _read(self, size: int) -> bytes:
        """At least 8 bytes if there are, for a pipe delivers what it has."""
        data = self._file.read(size)
        while data and len(data) < RECORD_HEADER_SIZE:
            more = self._file.read(size - len(data))
            if not more:
                break
            data += more
        return data

    def _skip(self, block: bytes, position: int, size: int, wanted: bool) -> bytes:
        """What is in the buffer after `size` bytes of payload, which are TRACING_DATA if they are `wanted`."""
        payload = []
        while len(block) - position < size:
            size -= len(block) - position
            if wanted:
                payload.append(block[position:])
            block, position = self._file.read(min(_BLOCK_BYTES, size)), 0
            if not block:
                raise self._error("the file ends in a record's payload")
        if wanted:
            self._take_tracing_data(b"".join((*payload, block[position : position + size])))
        return block[position + size :]

    def _error(self, text: str) -> PerfDataError:
        return PerfDataError(f"{self._name}: {text}")


def _run(block: bytes, position: int, size: int, most: int) -> NDArray[np.uint64] | None:
    """The records from `position` on, `most` or fewer, that are of the same type and size, if they are many."""
    last = position + (_SHORTEST_RUN - 1) * size
    if most < _SHORTEST_RUN or block[last : last + 4] != block[position : position + 4]:
        return None
    words = np.frombuffer(block, "<u8", most * size // 8, position).reshape(most, size // 8)
    headers = words[:, 0] & np.uint64(_KIND_AND_SIZE)
    others = np.flatnonzero(headers != headers[0])
    count = int(others[0]) if len(others) else most
    return words[:count] if count >= _SHORTEST_RUN else None
