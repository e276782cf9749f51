"""Samples of a file, with equal ones counted together where they lie in runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfcore.perfdata.ordering import in_time_order
from perfcore.perfdata.reader import PerfDataFile
from perfcore.perfdata.record_stream import RawRecord
from perfcore.perfdata.sample_runs import SampleBatch, batches_in_time_order

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
    for item in batches_in_time_order(file) if at_once else in_time_order(file):
        if isinstance(item, SampleBatch):
            yield from _kinds(file, item)
        else:
            yield CountedRecord(item)


def kinds_of(file: PerfDataFile, batch: SampleBatch) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first row of each kind of samples, alike but for times and periods; and of each row, which kind it is.

    Kinds are numbered as they first come.
    """
    own = {file.sample_time_column, file.sample_period_column} - {None}
    kinds = batch.words[:, [column for column in range(batch.words.shape[1]) if column not in own]]
    _, first, kind_of = np.unique(_hashes(kinds), return_index=True, return_inverse=True)
    if not np.array_equal(kinds, kinds[first][kind_of]):  # two kinds of one hash
        each = np.arange(len(batch))
        return each, each
    order = np.argsort(first)
    return first[order], np.argsort(order)[kind_of]


def _kinds(file: PerfDataFile, batch: SampleBatch) -> Iterator[CountedRecord]:
    period_column = file.sample_period_column
    periods = None if period_column is None else batch.words[:, period_column]
    if periods is not None and int(periods.max()) > _LARGEST_SUM // len(batch):
        yield from (CountedRecord(batch.record(row)) for row in range(len(batch)))
        return
    first, kind_of = kinds_of(file, batch)
    counts = np.bincount(kind_of, minlength=len(first))
    sums = None
    if periods is not None:
        sums = np.zeros(len(first), np.uint64)
        np.add.at(sums, kind_of, periods)
    for kind, row in enumerate(first.tolist()):
        yield CountedRecord(batch.record(row), int(counts[kind]), None if sums is None else int(sums[kind]))


def _hashes(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One of each row; rows of equal words have equal ones."""
    mixed = np.zeros(len(rows), np.uint64)
    for column in range(rows.shape[1]):
        mixed = (mixed ^ rows[:, column]) * _ODD
        mixed ^= mixed >> _SHIFT
    return mixed
