"""in_time_order: records as they happened, though each CPU's buffer was copied into the file at its own pace."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from perfcore.perfdata.reader import PerfDataFile
from perfcore.perfdata.record_stream import RawRecord
from perfcore.perfdata.records import UserRecord

_FINISHED_ROUND = int(UserRecord.FINISHED_ROUND)


def in_time_order(file: PerfDataFile) -> Iterator[RawRecord]:
    """Records sorted by time, those of equal time as they lie. A record without a time comes where it is read.

    FINISHED_ROUND says: nothing that follows is older than the newest record before the FINISHED_ROUND before this one.
    Only the records of two rounds are kept in memory.
    """
    times: list[int] = []
    records: list[RawRecord] = []
    last = newest = limit = 0
    is_sorted = True
    for record in file.records():
        if record.type == _FINISHED_ROUND:
            if not is_sorted:
                times, records = _sorted(times, records)
                is_sorted = True
            kept_from = bisect_right(times, limit)
            yield from records[:kept_from]
            del times[:kept_from], records[:kept_from]
            last = times[-1] if times else 0
            limit = newest
            continue
        time = file.record_time(record)
        if time is None:
            yield record
            continue
        if time < last:
            is_sorted = False
        elif time > newest:
            newest = time
        last = time
        times.append(time)
        records.append(record)
    yield from records if is_sorted else _sorted(times, records)[1]


def _sorted(times: list[int], records: list[RawRecord]) -> tuple[list[int], list[RawRecord]]:
    order = sorted(range(len(times)), key=times.__getitem__)
    return [times[index] for index in order], [records[index] for index in order]
