"""Samples that come again are counted by their bytes: with what they mean at that time, and their own periods."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfcore.abi.constants import SampleType
from perfcore.abi.records import Comm
from perfcore.perfdata.reader import PerfDataFile, open_perf_data
from perfemu.profile.profile import Profile, load_profile
from perfemu.symbols.finder import SymbolFinder
from synthetic_perf_data import PID, SAMPLE_TYPE, Recording, event

WITHOUT_PERIOD = SAMPLE_TYPE & ~SampleType.PERIOD


def loaded(path: Path, **options: bool) -> Profile:
    with open_perf_data(str(path)) as file:
        return load_profile(file, SymbolFinder(), **options)


def told(profile: Profile) -> list[list[tuple[str, int, int, int]]]:
    return [
        [(sample.comm, sample.place.address, *weight) for sample, weight in event.samples.items()]
        for event in profile.events
    ]


def test_only_what_is_new_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    decode = PerfDataFile.decode_sample
    monkeypatch.setattr(PerfDataFile, "decode_sample", lambda *of: decoded.append(of) or decode(*of))
    made = Recording([event()])
    made.add(Comm(PID, PID, "prog"))
    for period in (1000, 1001, 0, 7):
        made.sample(0x400000, period=period)
    made.sample(0x400004)
    data = made.write(tmp_path / "perf.data")
    assert told(loaded(data)) == [[("prog", 0x400000, 4, 2008), ("prog", 0x400004, 1, 1000)]]
    assert len(decoded) == 2


def test_a_new_name_counts_apart(tmp_path: Path) -> None:
    made = Recording([event()])
    for name in ("one", "two", "two"):
        made.add(Comm(PID, PID, name))
        made.sample(0x400000)
    assert told(loaded(made.write(tmp_path / "perf.data"))) == [
        [("one", 0x400000, 1, 1000), ("two", 0x400000, 2, 2000)]
    ]


@pytest.mark.parametrize("second", [SAMPLE_TYPE, WITHOUT_PERIOD, SAMPLE_TYPE | SampleType.ADDR | SampleType.CPU])
def test_events_count_apart_wherever_their_fields_lie(tmp_path: Path, second: int) -> None:
    """A sample without a period weighs the event's 1000."""
    made = Recording([event(), event("cycles:u", 2, second)])
    made.add(Comm(PID, PID, "prog"))
    for _ in range(3):
        made.sample(0x400000, period=10)
        made.sample(0x400000, period=20, number=1)
    weight = 20 if second & SampleType.PERIOD else 1000
    assert told(loaded(made.write(tmp_path / "perf.data"))) == [
        [("prog", 0x400000, 3, 30)],
        [("prog", 0x400000, 3, 3 * weight)],
    ]


def test_moments_are_all_kept(tmp_path: Path) -> None:
    made = Recording([event()])
    for _ in range(3):
        made.sample(0x400000)
    (counted,) = loaded(made.write(tmp_path / "perf.data"), keeps_moments=True).events
    assert [moment.time_ns - counted.moments[0].time_ns for moment in counted.moments] == [0, 1000, 2000]


def test_many_kinds_are_counted_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are remembered: then what comes again is decoded again."""
    monkeypatch.setattr("perfemu.profile.profile._MOST_KINDS", 4)
    made = Recording([event()])
    for address in [*range(10), *range(10), 3, 3]:
        made.sample(0x400000 + address)
    (rows,) = told(loaded(made.write(tmp_path / "perf.data")))
    assert {address - 0x400000: samples for _, address, samples, _ in rows} == dict.fromkeys(range(10), 2) | {3: 4}
