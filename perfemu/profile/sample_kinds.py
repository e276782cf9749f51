"""Samples of a file, with equal ones counted together where they lie in runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfcore.perfdata.ordering import in_time_order
from perfcore.perfdata.reader import PerfDataFile, RawRecord
from perfcore.perfdata.sample_runs import SampleBatch, batches_in_time_order

_MOST_AT_ONCE = 1 << 20  # samples
_ODD = np.uint64(0x9E37_79B9_7F4A_7C15)  # 2**64 divided by the golden ratio
_SHIFT = np.uint64(29)
_LARGEST_SUM = (1 << 63) - 1


class CountedRecord(NamedTuple):
    """A record; of a sample that many are like, but for their times and periods, the first of them."""

    record: RawRecord
    times: int = 1
    period: int | None = None  # of all of them; None if there is one, or none of them tells


def counted_records(file: PerfDataFile, *, at_once: bool) -> Iterator[CountedRecord]:
    """Records in time order. `at_once`: samples between two other records may come together, as they first appear."""
    batches: list[SampleBatch] = []
    waiting = 0
    for item in batches_in_time_order(file) if at_once else in_time_order(file):
        if isinstance(item, SampleBatch):
            batches.append(item)
            waiting += len(item)
            if waiting < _MOST_AT_ONCE:
                continue
        if batches:
            yield from _kinds(file, SampleBatch.joined(batches))
            batches, waiting = [], 0
        if isinstance(item, RawRecord):
            yield CountedRecord(item)
    if batches:
        yield from _kinds(file, SampleBatch.joined(batches))


def _kinds(file: PerfDataFile, batch: SampleBatch) -> Iterator[CountedRecord]:
    period_column = file.sample_period_column
    own = [file.sample_time_column, *([] if period_column is None else [period_column])]
    kinds = np.delete(batch.words, own, axis=1)
    hashes = _hashes(kinds)
    _, first, kind_of = np.unique(hashes, return_index=True, return_inverse=True)
    periods = None if period_column is None else batch.words[:, period_column]
    too_large = periods is not None and int(periods.max()) > _LARGEST_SUM // len(batch)
    if too_large or not np.array_equal(kinds, kinds[first][kind_of]):  # two kinds of one hash
        yield from (CountedRecord(batch.record(row)) for row in range(len(batch)))
        return
    counts = np.bincount(kind_of, minlength=len(first))
    sums = None
    if periods is not None:
        sums = np.zeros(len(first), np.uint64)
        np.add.at(sums, kind_of, periods)
    for kind in np.argsort(first).tolist():
        period = None if sums is None else int(sums[kind])
        yield CountedRecord(batch.record(int(first[kind])), int(counts[kind]), period)


def _hashes(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One of each row; rows of equal words have equal ones."""
    mixed = np.zeros(len(rows), np.uint64)
    for column in range(rows.shape[1]):
        mixed = (mixed ^ rows[:, column]) * _ODD
        mixed ^= mixed >> _SHIFT
    return mixed
