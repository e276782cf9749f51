"""What read(2) of an event returns, and PERF_SAMPLE_READ carries: the layout that attr.read_format chooses."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from perfcore.abi.constants import ReadFormat


class ReadValues(NamedTuple):
    """One event's reading. Times in ns."""

    value: int
    enabled: int
    running: int
    id: int
    lost: int


# Each field of a reading, in ABI order, with the index of its value in ReadValues.
_TIMES = ((ReadFormat.TOTAL_TIME_ENABLED, 1), (ReadFormat.TOTAL_TIME_RUNNING, 2))
_IDS = ((ReadFormat.ID, 3), (ReadFormat.LOST, 4))
_MASK_64 = (1 << 64) - 1


def read_size(read_format: int, events: int = 1) -> int:
    """Bytes of a reading of a group of `events`."""
    times = sum(1 for bit, _ in _TIMES if read_format & bit)
    per_event = 1 + sum(1 for bit, _ in _IDS if read_format & bit)
    if read_format & ReadFormat.GROUP:
        return 8 * (1 + times + per_event * events)
    return 8 * (times + per_event)


def encode_read(read_format: int, values: Sequence[ReadValues]) -> bytes:
    """`values` are the leader's (whose times count) and its siblings' with GROUP, else the one event's."""
    times = [values[0][index] for bit, index in _TIMES if read_format & bit]
    ids = [index for bit, index in _IDS if read_format & bit]
    if read_format & ReadFormat.GROUP:
        words = [len(values), *times]
        for value in values:
            words.append(value.value)
            words += [value[index] for index in ids]
    else:
        words = [values[0].value, *times, *(values[0][index] for index in ids)]
    return struct.pack(f"<{len(words)}Q", *(word & _MASK_64 for word in words))


def decode_read(read_format: int, data: bytes | memoryview, offset: int = 0) -> tuple[list[ReadValues], int]:
    """The readings at `offset` (absent fields 0), and the offset after them."""
    group = bool(read_format & ReadFormat.GROUP)
    count = struct.unpack_from("<Q", data, offset)[0] if group else 1
    size = read_size(read_format, count)
    words = list(struct.unpack_from(f"<{size // 8}Q", data, offset))
    times = {1: 0, 2: 0}
    indexes = [index for bit, index in _IDS if read_format & bit]
    time_indexes = [index for bit, index in _TIMES if read_format & bit]
    first_time = 1
    for position, index in enumerate(time_indexes):
        times[index] = words[first_time + position]
    values = []
    for event in range(count):
        if group:
            start = 1 + len(time_indexes) + event * (1 + len(indexes))
            value, rest = words[start], words[start + 1 : start + 1 + len(indexes)]
        else:
            value, rest = words[0], words[1 + len(time_indexes) :]
        known = dict(zip(indexes, rest, strict=True))
        values.append(ReadValues(value, times[1], times[2], known.get(3, 0), known.get(4, 0)))
    return values, offset + size
