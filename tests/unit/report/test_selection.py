"""Which samples a report is of, where the real perf is no judge: bad input, other formats, rows of chosen samples."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from exports import exported
from perfemu.cli.main import main
from perfemu.formats import format_names, output_format
from perfemu.profile.time_ranges import BadTime, is_within, time_ranges
from several_tasks import recording
from synthetic_perf_data import Recording, event

RECORDED = (1_000, 11_000)  # ns


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording(tmp_path_factory.mktemp("tasks"))


def rows(monkeypatch: pytest.MonkeyPatch, data: Path, *options: str) -> dict[tuple[str, str], int]:
    """(comm, symbol) or (file, symbol) -> period with callees."""
    lines = exported(monkeypatch, data, "csv", *options).decode().splitlines()
    return {
        (row.get("comm") or row.get("dso") or "", row["symbol"]): int(row["children_period"])
        for row in csv.DictReader(lines)
    }


def test_rows_are_of_chosen_samples_alone(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the sort keys are."""
    everything = rows(monkeypatch, data, "-s", "comm,sym")
    child = {symbol: period for (comm, symbol), period in everything.items() if comm == "child"}
    chosen = rows(monkeypatch, data, "-s", "sym", "-c", "child")
    assert {symbol: period for (_, symbol), period in chosen.items()} == child
    callers = rows(monkeypatch, data, "-s", "dso,sym", "-S", "leaf")
    assert callers["prog", "[.] main"] == callers["prog", "[.] leaf"]  # which it calls, always


@pytest.mark.parametrize("style", [name for name in format_names() if output_format(name).needs_samples])
def test_other_programs_are_given_the_chosen_samples(style: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = exported(monkeypatch, data, style)
    chosen = exported(monkeypatch, data, style, "-c", "child", "--time", "10%/2")
    assert len(chosen) < len(everything)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["-c", "nobody"], "no sample is of the command nobody; there are child, prog, worker"),
        (["-d", "libc.so"], "no sample is of the file libc.so; there are libx.so, prog"),
        (["--pid", "7"], "no sample is of the process 7; there are 1000, 1001"),
        (["--tid", "x"], "report: argument --tid: 'x' is not a list of numbers (see 'perfemu report --help')"),
        (["-c", "child", "--pid", "1000"], "no sample is of all that was chosen together"),
        (["-C", "1-"], "-C 1-: '1-' is neither a CPU nor a range of them, as in 0,2-3"),
        (["--time", "2,1"], "report --time 2,1: 2,1 ends before it begins"),
        (["--time", "x"], "report --time x: 'x' is not a time: START,STOP in seconds, or percentages: 10%/2, 0%-10%"),
        (["--hierarchy", "-F", "overhead,sym"], "report: --hierarchy and --fields exclude each other"),
        (["--hierarchy", "--format", "csv"], "report: --hierarchy is of --format stdio, not of csv"),
        (["--time", "10%/0"], "report --time 10%/0: '10%/0' is not within 0%-100%"),
    ],
)
def test_bad_input_is_one_line(options: list[str], text: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "-i", str(data), *options]) != 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"perfemu: {text}\n"


def test_of_several_values_the_missing_one_is_named(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "-i", str(data), "-c", "child,nobody"]) == 0
    said = capsys.readouterr()
    assert "child" in said.out
    assert said.err == "perfemu: no sample is of the command nobody; there are child, prog, worker\n"


def test_a_file_may_not_know_cpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Recording([event()])
    made.start("/none", 0x1000)
    made.sample(0x400000)
    data = made.write(tmp_path / "perf.data")
    assert main(["report", "-i", str(data), "-C", "0"]) != 0
    said = f"perfemu: {data} does not say on which CPU a sample was taken: record with --sample-cpu\n"
    assert capsys.readouterr().err == said


def test_a_time_without_samples_is_said(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", "-i", str(data), "--time", "5,6", "--format", "pprof"])
    assert capsys.readouterr().err == f"perfemu: {data} has no samples\n"


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("1,2", ((1_000_000_000, 2_000_000_000),)),
        ("1.5,", ((1_500_000_000, 0),)),
        (",0.000000001", ((0, 1),)),
        ("1,2 3,4.25", ((1_000_000_000, 2_000_000_000), (3_000_000_000, 4_250_000_000))),
        ("10%/1", ((1_000, 1_999),)),  # up to the next tenth, and not into it
        ("10%/10", ((10_000, 11_000),)),
        ("0%-100%", ((1_000, 11_000),)),
        ("50%", ((1_000, 5_999),)),
        ("0%-10%,20%-30%", ((1_000, 1_999), (3_000, 3_999))),
    ],
)
def test_times(text: str, ranges: tuple[tuple[int, int], ...]) -> None:
    assert time_ranges(text, RECORDED) == ranges
    assert is_within(ranges[0][0] or 1, ranges)
    assert not is_within(1 << 62, ranges) or not ranges[-1][1]


def test_percentages_need_the_time_of_the_recording() -> None:
    with pytest.raises(BadTime, match="does not tell the times"):
        time_ranges("10%/2", None)
