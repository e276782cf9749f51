"""perfemu report with perf's options, byte for byte what the real perf prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from exports import exported, sampled
from guests import ISAS
from real_perf import RealPerf
from several_tasks import CHILD, PID, THREAD, recording

FILTERS = (
    "-c child",
    "-c child,worker --no-children",
    "-d libx.so --no-children",
    "-d libx.so,prog -s dso,sym --no-children",
    "-S leaf --no-children",
    "-S leaf,search --no-children -g caller",
    "-c child -d prog --no-children",
    "-c child -d prog -s comm,dso --no-children",  # no column would be left
    f"--pid {PID}",
    f"--tid {THREAD},{CHILD} -s pid,sym",
    "-C 1",
    "-C 0-1 -s cpu,comm",
    "-c worker -C 1 -S leaf --no-children",
    "-q -c child",
    "-n --show-total-period -c child -g none",
    "--percentage relative -c child",
    "--percentage relative -c child,worker -n -g none --no-children",
    "--percentage absolute -d libx.so --no-children",
    "--percentage relative -C 1 -g none",
    "--time 10%/2",
    "--time 10%/2,10%/10 -g none",
    "--time 0%-10%,50%-60% -c prog",
    "--time 30% -g none",
    "--time 100.0001,100.0002",
    "--time ,100.00015 -g none",
    "--time 100.000151000, -g none",
    "-s +cpu -g none",
    "--sort +cpu,pid --no-children",
)


HIERARCHIES = (
    "--hierarchy",
    "--hierarchy --no-children",
    "--hierarchy -c child -g none",
    "--hierarchy -s dso,sym,cpu,comm -g none -n",
    "--hierarchy -n --percent-limit 10",
    "--hierarchy -s sym",
    "--hierarchy -s pid,sym -g none --show-total-period",
    "--hierarchy -g folded",
    "--hierarchy --percentage relative -c worker,child -g none",
    "-q --hierarchy -s +cpu -g none",
    "--hierarchy --stdio-color always -g folded",
)
CALL_GRAPHS = (
    "-g folded",
    "-g folded --no-children",
    "-g folded,2,caller,count --no-children",
    "-g folded,0,callee,period -s sym",
    "-g folded --percent-limit 3",
    "-g graph,0.5,count",
    "-g period --no-children",
    "-g fractal,0,period",
    "--stdio-color always -g graph,1",
    "-g fractal,2,count",  # what is left out is counted, too
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="module")
def two_events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording(tmp_path_factory.mktemp("events"), events=2)


@pytest.fixture(scope="module")
def recursive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sampled(tmp_path_factory.mktemp("recursive"), "x86_64", ["instructions"])


@pytest.fixture
def perf(tmp_path: Path) -> RealPerf:
    return RealPerf(tmp_path)


def ours(monkeypatch: pytest.MonkeyPatch, path: Path, options: str) -> list[str]:
    return exported(monkeypatch, path, "stdio", *options.split()).decode().rstrip("\n").splitlines()


@pytest.mark.parametrize("options", FILTERS + HIERARCHIES)
def test_filters_and_hierarchies(options: str, data: Path, perf: RealPerf, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = perf.report(data, *options.split())
    assert ours(monkeypatch, data, options) == theirs
    assert any("%" in line for line in theirs)


@pytest.mark.parametrize(
    "options", ["-c child", "--percentage relative -d libx.so --no-children", "--time 10%/3 -s +cpu"]
)
def test_of_several_events(options: str, two_events: Path, perf: RealPerf, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ours(monkeypatch, two_events, options) == perf.report(two_events, *options.split())


@pytest.mark.parametrize("options", CALL_GRAPHS)
def test_call_graphs(options: str, recursive: Path, perf: RealPerf, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = perf.report(recursive, *options.split())
    assert ours(monkeypatch, recursive, options) == theirs
    assert any("quicksort" in line for line in theirs)


@pytest.mark.parametrize("isa", ISAS)
def test_source_lines_besides_the_usual_keys(
    isa: str, tmp_path: Path, perf: RealPerf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one event alone: perf measures the column of a second one otherwise."""
    data = sampled(tmp_path, isa, ["instructions"])
    options = "--no-children -g none -s +srcline"
    lines = ours(monkeypatch, data, options)
    assert lines == perf.report(data, *options.split())
    assert any("main.c:" in line for line in lines)


def test_numbers_of_records(two_events: Path, recursive: Path, perf: RealPerf, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (two_events, recursive):
        lines = ours(monkeypatch, path, "--stats")
        assert lines == perf.report(path, "--stats")
        assert any("SAMPLE events:" in line for line in lines)
