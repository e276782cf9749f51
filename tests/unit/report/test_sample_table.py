"""Samples as numpy's arrays are the samples that are decoded one by one, whoever has written them."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import perfemu
from guests import guest
from perfcore.abi.constants import RecordType
from perfcore.perfdata.ordering import in_time_order
from perfemu.reporting import open_profile
from real_perf import RealPerf


def decoded(path: Path) -> list[tuple[object, ...]]:
    """What rows hold of each sample, by the decoder of single samples."""
    rows = []
    with open_profile(str(path)) as file:
        for record in in_time_order(file):
            if record.type == RecordType.SAMPLE:
                number = file.event_number(record)
                sample, attr = file.decode_sample(record, number), file.events[number].attr
                rows.append(
                    (number, sample.ip, sample.pid, sample.tid, sample.time, sample.addr,
                     sample.cpu if attr.sample_type & 1 << 7 else -1,
                     sample.period if attr.sample_type & 1 << 8 else attr.sample_period or 1, tuple(sample.callchain))
                )  # fmt: skip
    return rows


def told(table: perfemu.SampleTable) -> list[tuple[object, ...]]:
    names = ("event", "ip", "pid", "tid", "time", "addr", "cpu", "period")
    return [(*(int(row[name]) for name in names), tuple(map(int, table.callchain(row)))) for row in table.rows]


@pytest.mark.parametrize(
    "options",
    [
        {"period": 500, "callchains": True},
        {"period": 100},
        {"exact": True},
        {"frequency_hz": 1_000_000, "callchains": True, "all_cpus": True},
    ],
    ids=["callchains", "plain", "exact", "all CPUs"],
)
def test_of_ours(tmp_path: Path, options: dict[str, object]) -> None:
    path = tmp_path / "perf.data"
    program = perfemu.Guest([guest("recursion", "x86_64").path], core="ideal", cpus=2 if "all_cpus" in options else 1)
    recording = perfemu.record(program, ["instructions", "branches"], output=path, **options)  # type: ignore[arg-type]
    table = recording.table()
    assert told(table) == decoded(path)
    assert len(table) == recording.sample_count > 0
    assert told(perfemu.samples(path, symbols=False)) == told(table)
    assert {table.comms[row["comm"]] for row in table.of("instructions")} == {"x86_64.elf"}


def test_an_exact_recording_s_periods_are_the_counts_of_functions(tmp_path: Path) -> None:
    argv = [guest("recursion", "aarch64").path]
    table = perfemu.record(argv, ["instructions"], exact=True, output=tmp_path / "perf.data").table()
    counts: Counter[str] = Counter()
    for row in table.rows:
        counts[table.symbols[row["symbol"]]] += int(row["period"])
    functions = perfemu.stat(argv, ["instructions"], functions=True).functions("instructions")
    assert counts == {function.name: count for function, count in functions.items()}
    assert table.rows["period"].sum() == sum(counts.values())


@pytest.mark.parametrize("options", [[], ["-g"], ["-d", "-g"], ["-e", "{cpu-clock,task-clock}:S", "-g"]])
def test_of_real_perf_s(tmp_path: Path, options: list[str]) -> None:
    path = tmp_path / "perf.data"
    events = [] if "-e" in options else ["-e", "cpu-clock"]
    script = "for i in 1 2 3; do ls /usr/bin; done"
    RealPerf(tmp_path).run("record", "-q", "-F", "5000", *events, *options, "-o", path, "--", "sh", "-c", script)
    table = perfemu.samples(path)
    assert len(table) > 2
    assert told(table) == decoded(path)
    if "-e" not in options:  # there each sample weighs what its values have grown by
        assert table.rows["period"].sum() == perfemu.report(path)["cpu-clock"].period


def test_frames(tmp_path: Path) -> None:
    argv = [guest("recursion", "x86_64").path]
    table = perfemu.record(argv, ["instructions"], exact=True, output=tmp_path / "perf.data").table()
    leaf = int(table.rows["period"][table.rows["symbol"] == table.symbols.index("leaf")].sum())
    assert leaf == 4  # push, mov, pop, ret
    pandas, polars = table.frame("pandas"), table.frame("polars")
    assert pandas.groupby("symbol").period.sum()["leaf"] == leaf
    assert polars.filter(polars["symbol"] == "leaf")["period"].sum() == leaf
    assert list(pandas.columns) == polars.columns
    assert list(pandas.columns)[:4] == ["event", "ip", "pid", "tid"]
    assert type(table.frame()) is type(pandas)
    with pytest.raises(ValueError, match="one of pandas, polars"):
        table.frame("arrow")


def test_neither_library_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = [guest("loop_1k", "x86_64").path]
    table = perfemu.record(argv, ["instructions"], period=1000, output=tmp_path / "perf.data").table()
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"frames need pandas or polars: pip install 'perfemu\[pandas\]'"):
        table.frame()


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    perfemu.record([guest("loop_1k", "x86_64").path], ["instructions"], period=500, callchains=True, output=path)
    with open_profile(str(path)) as file:
        offsets = [record.offset for record in file.records() if record.type == RecordType.SAMPLE]
    contents = bytearray(path.read_bytes())
    table = perfemu.samples(path)
    at = offsets[0] + contents[offsets[0] : offsets[1]].index(
        np.array([table.rows["chain_length"][0]], "<u8").tobytes()
    )
    contents[at : at + 8] = b"\xff" * 7 + b"\0"
    path.write_bytes(contents)
    with pytest.raises(perfemu.PerfemuError, match="no room for a callchain"):
        perfemu.samples(path)
    with pytest.raises(KeyError, match="not among the events"):
        table.of("cycles")
