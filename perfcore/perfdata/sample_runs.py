"""Samples in time order, many at once: how a file of millions of them is read without a look at each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfcore.abi.constants import RecordType
from perfcore.abi.sample import HEADER
from perfcore.perfdata.ordering import in_time_order
from perfcore.perfdata.reader import PerfDataFile
from perfcore.perfdata.record_stream import RawRecord, SampleRun
from perfcore.perfdata.records import UserRecord

_FINISHED_ROUND = int(UserRecord.FINISHED_ROUND)
_SAMPLE = int(RecordType.SAMPLE)
_WORD = 8  # bytes
_FEW = 32  # samples that are not worth a matrix
_MANY = 1 << 20  # samples that are enough for one


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """A row of `words` is a whole record, all of one size; `offsets` say where in the file they lie."""

    words: NDArray[np.uint64]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets)

    @classmethod
    def of_run(cls, run: SampleRun) -> SampleBatch:
        count, width = run.words.shape
        return cls(run.words, run.offset + _WORD * width * np.arange(count, dtype=np.int64))

    @classmethod
    def joined(cls, batches: list[SampleBatch]) -> SampleBatch:
        if len(batches) == 1:
            return batches[0]
        return cls(np.concatenate([each.words for each in batches]), np.concatenate([each.offsets for each in batches]))

    def record(self, row: int) -> RawRecord:
        data = self.words[row].tobytes()
        kind, misc, _ = HEADER.unpack_from(data)
        return RawRecord(int(self.offsets[row]), kind, misc, data)

    def rows(self, chosen: NDArray[np.intp] | slice) -> SampleBatch:
        return SampleBatch(self.words[chosen], self.offsets[chosen])


def batches_in_time_order(file: PerfDataFile) -> Iterator[RawRecord | SampleBatch]:
    """As in_time_order, but that samples may come together, where all of a file's are of one size."""
    if not file.has_equal_samples:
        yield from in_time_order(file)
        return
    batches, waiting = list[SampleBatch](), 0
    for item in _in_rounds(file):
        if isinstance(item, SampleBatch):
            batches.append(item)
            waiting += len(item)
            if waiting < _MANY:
                continue
        if batches:
            yield SampleBatch.joined(batches)
            batches, waiting = [], 0
        if isinstance(item, RawRecord):
            yield item
    if batches:
        yield SampleBatch.joined(batches)


def _in_rounds(file: PerfDataFile) -> Iterator[RawRecord | SampleBatch]:
    pending = _Pending(file.sample_time_column)
    newest = limit = 0
    for item in file.records_and_runs():
        if isinstance(item, SampleRun):
            newest = max(newest, pending.add_run(item))
        elif item.type == _FINISHED_ROUND:
            yield from pending.until(limit)
            limit = newest
        else:
            time = file.record_time(item)
            if time is None:
                yield item
            else:
                newest = max(newest, time)
                pending.add(time, item)
    yield from pending.until(None)


class _Pending:
    """What has been read, and may yet be younger than what will be."""

    def __init__(self, time_column: int) -> None:
        self._time_column = time_column
        self._samples: list[SampleBatch] = []  # as they lie in the file
        self._others: list[tuple[int, int, RawRecord]] = []  # by time and offset

    def add(self, time: int, record: RawRecord) -> None:
        if record.type == _SAMPLE and self._samples and len(record.data) == _WORD * self._samples[0].words.shape[1]:
            words = np.frombuffer(record.data, "<u8").reshape(1, -1)
            self._samples.append(SampleBatch.of_run(SampleRun(record.offset, words)))
        else:
            self._others.append((time, record.offset, record))

    def add_run(self, run: SampleRun) -> int:
        """The time of the newest in it."""
        self._samples.append(SampleBatch.of_run(run))
        return int(run.words[:, self._time_column].max())

    def until(self, limit: int | None) -> Iterator[RawRecord | SampleBatch]:
        """What is not younger than that, or all; those of equal time as they lie in the file."""
        self._others.sort(key=lambda other: other[:2])
        count = len(self._others)
        if limit is not None:
            count = next((index for index, (time, *_) in enumerate(self._others) if time > limit), count)
        others, self._others = self._others[:count], self._others[count:]
        if not self._samples:
            yield from (record for _, _, record in others)
            return
        samples = SampleBatch.joined(self._samples)
        times = samples.words[:, self._time_column]
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            samples, times = samples.rows(order), times[order]
        end = len(times) if limit is None else int(np.searchsorted(times, np.uint64(limit), "right"))
        self._samples = [samples.rows(slice(end, None))] if end < len(times) else []
        done = 0
        for time, offset, record in others:
            first, behind = (int(np.searchsorted(times, np.uint64(time), side)) for side in ("left", "right"))
            before = first + int(np.searchsorted(samples.offsets[first:behind], offset))
            yield from _whole(samples.rows(slice(done, before)))
            done = before
            yield record
        yield from _whole(samples.rows(slice(done, end)))


def _whole(samples: SampleBatch) -> Iterator[RawRecord | SampleBatch]:
    if len(samples) < _FEW:
        yield from map(samples.record, range(len(samples)))
    else:
        yield samples
