"""Samples of one size are counted in runs: as if each had been looked at, in the order in which they first appear."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from perfcore.abi.constants import SampleType
from perfcore.abi.records import Comm
from perfcore.perfdata.reader import PerfDataFile, open_perf_data
from perfcore.perfdata.records import FINISHED_ROUND
from perfemu.profile.profile import Profile, load_profile
from perfemu.sample_table import SampleTable, sample_table
from perfemu.symbols.finder import SymbolFinder
from synthetic_perf_data import PID, SAMPLE_TYPE, Recording, event

WITHOUT_PERIOD = SAMPLE_TYPE & ~SampleType.PERIOD
LARGEST = (1 << 64) - 1


def loaded(path: Path, **options: bool) -> Profile:
    with open_perf_data(str(path)) as file:
        return load_profile(file, SymbolFinder(), **options)


def table(path: Path) -> SampleTable:
    with open_perf_data(str(path)) as file:
        return sample_table(file, SymbolFinder())


def told(profile: Profile) -> list[list[tuple[str, int, int, int, int]]]:
    return [
        [(sample.comm, sample.thread.tid, sample.place.address, *weight) for sample, weight in event.samples.items()]
        for event in profile.events
    ]


def recorded(path: Path, seed: int, sample_type: int = SAMPLE_TYPE, largest_period: int = 5000) -> Path:
    """Two events, three threads, buffers copied one after the other, in rounds; names change in between."""
    chosen = random.Random(seed)
    made = Recording([event(sample_type=sample_type), event("branches:u", 2, sample_type)])
    written: list[bytes] = []
    for _ in range(6):
        buffers: list[list[bytes]] = [[], [], []]
        for _ in range(chosen.choice((3, 40, 400))):
            made.records.clear()
            if chosen.random() < 0.004:
                made.add(Comm(PID, PID, f"name{chosen.randrange(4)}"))
            else:
                made.sample(
                    0x400000 + 4 * chosen.randrange(40),
                    period=chosen.randrange(largest_period),
                    number=chosen.randrange(2),
                    tid=PID + chosen.randrange(3),
                )
            if chosen.random() < 0.1:
                made.time_ns -= 1000  # the next one has this one's time
            chosen.choice(buffers).extend(made.records)
        written += [record for buffer in buffers for record in buffer]
        written.append(FINISHED_ROUND)
    made.records = written
    return made.write(path)


@pytest.mark.parametrize("seed", range(12))
def test_runs_are_what_their_samples_are(seed: int, tmp_path: Path) -> None:
    data = recorded(tmp_path / "perf.data", seed, WITHOUT_PERIOD if seed % 4 == 3 else SAMPLE_TYPE)
    assert told(loaded(data)) == told(loaded(data, keeps_moments=True))


@pytest.mark.parametrize("seed", range(200, 206))
def test_a_table_has_the_same_rows(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = recorded(tmp_path / "perf.data", seed, WITHOUT_PERIOD if seed % 2 else SAMPLE_TYPE)
    in_runs = table(data)
    monkeypatch.setattr(PerfDataFile, "has_equal_samples", False)
    one_by_one = table(data)
    assert np.array_equal(in_runs.rows, one_by_one.rows)
    assert (in_runs.comms, in_runs.dsos, in_runs.symbols) == (one_by_one.comms, one_by_one.dsos, one_by_one.symbols)
    assert len(in_runs.comms) > 1


def test_kinds_of_one_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = recorded(tmp_path / "perf.data", 100)
    monkeypatch.setattr("perfemu.profile.sample_kinds._hashes", lambda rows: np.zeros(len(rows), np.uint64))
    assert told(loaded(data)) == told(loaded(data, keeps_moments=True))


def test_periods_add_up_beyond_64_bits(tmp_path: Path) -> None:
    data = recorded(tmp_path / "perf.data", 101, largest_period=LARGEST)
    profile = loaded(data)
    assert profile.events[0].period > LARGEST
    assert told(profile) == told(loaded(data, keeps_moments=True))


def test_few_samples_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []
    record_time = PerfDataFile.record_time
    monkeypatch.setattr(PerfDataFile, "record_time", lambda *of: looked_at.append(of) or record_time(*of))
    made = Recording([event()])
    made.add(Comm(PID, PID, "prog"))
    for number in range(10_000):
        made.sample(0x400000 + 4 * (number % 50))
    (counted,) = loaded(made.write(tmp_path / "perf.data")).events
    assert len(looked_at) < 50
    assert [tuple(weight) for weight in counted.samples.values()] == [(200, 200_000)] * 50
