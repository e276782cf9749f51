"""in_time_order: by time, those of equal time as they lie, and no more kept than two rounds."""

from __future__ import annotations

from pathlib import Path

from perfcore.perfdata.ordering import in_time_order
from perfcore.perfdata.reader import open_perf_data
from perfcore.perfdata.records import FINISHED_ROUND
from synthetic_perf_data import Recording, event


def ordered(path: Path, *times: int | None) -> list[int]:
    """The addresses of samples in this order: the n-th in the file has address n. None is a FINISHED_ROUND."""
    made = Recording([event()])
    number = 0
    for time in times:
        if time is None:
            made.records.append(FINISHED_ROUND)
            continue
        made.time_ns = time - 1000  # which each record advances
        made.sample(number)
        number += 1
    with open_perf_data(str(made.write(path))) as file:
        return [file.decode_sample(record, 0).ip for record in in_time_order(file)]


def test_without_rounds(tmp_path: Path) -> None:
    assert ordered(tmp_path / "data", 5000, 3000, 5000, 4000, 3000) == [1, 4, 3, 0, 2]


def test_a_round_may_go_before_what_the_last_one_kept(tmp_path: Path) -> None:
    """Of the second round 3500 is older than 5000 of the first, which is not given out until the second has ended."""
    assert ordered(tmp_path / "data", 3000, 5000, None, 3500, 6000, 5000, None, 5500, 7000, None) == [
        0,
        2,
        1,
        4,
        5,
        3,
        6,
    ]


def test_what_comes_before_the_limit_comes_late(tmp_path: Path) -> None:
    """3000 is older than what the round before the last had: perf warns of such files. It comes once it is known."""
    assert ordered(tmp_path / "data", 5000, None, 6000, None, 3000, None, 7000) == [0, 2, 1, 3]
