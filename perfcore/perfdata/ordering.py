"""in_time_order: records as they happened, though each CPU's buffer was copied into the file at its own pace."""

from __future__ import annotations

from collections.abc import Iterator

from perfcore.perfdata.reader import PerfDataFile, RawRecord
from perfcore.perfdata.records import UserRecord

_Pending = tuple[int, int, RawRecord]  # time, order in the file


def in_time_order(file: PerfDataFile) -> Iterator[RawRecord]:
    """Records sorted by time, those of equal time as they lie. A record without a time comes where it is read.

    FINISHED_ROUND says: nothing that follows is older than the newest record before the FINISHED_ROUND before this one.
    Only the records of two rounds are kept in memory.
    """
    pending: list[_Pending] = []
    newest = limit = 0
    for order, record in enumerate(file.records()):
        if record.type == UserRecord.FINISHED_ROUND:
            pending.sort()
            keep = 0
            while keep < len(pending) and pending[keep][0] <= limit:
                yield pending[keep][2]
                keep += 1
            del pending[:keep]
            limit = newest
            continue
        time = file.record_time(record)
        if time is None:
            yield record
            continue
        newest = max(newest, time)
        pending.append((time, order, record))
    pending.sort()
    for _, _, record in pending:
        yield record
