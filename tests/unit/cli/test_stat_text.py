"""What perf's stored files cannot show: repeated runs, grouping of thousands, what is not supported."""

import pytest

from perfemu.events.parser import parse_events
from perfemu.run_times import RunTimes
from perfemu.statistics.counts import Absence, Count, Counts, Reading, Spread
from perfemu.statistics.json_lines import json_report
from perfemu.statistics.metrics import metrics_of
from perfemu.statistics.separated import separated_report
from perfemu.statistics.text import text_report
from pmu.model import model


def counts(readings: dict[str, list[int]], elapsed_ns: list[int]) -> Counts:
    """`readings`: the count in each run; none for what is not supported."""
    specs = parse_events(readings, model("armv8_pmuv3"))
    rows = tuple(
        Count(spec, tuple(Reading(value, elapsed, elapsed) for value, elapsed in zip(values, elapsed_ns, strict=False)))
        for spec, values in zip(specs, readings.values(), strict=True)
    )
    return Counts("prog", "ideal", rows, tuple(RunTimes(elapsed, elapsed) for elapsed in elapsed_ns))


def test_deviation_of_the_mean() -> None:
    # mean 20; squares 100 + 0 + 100 = 200, over n-1 = 2: 100, over n = 3: 33.3, root 5.7735; of 20: 28.87 %
    spread = Spread.of([10, 20, 30])
    assert spread.mean == 20
    assert spread.deviation == pytest.approx(5.7735, abs=1e-4)
    assert spread.percent == pytest.approx(28.87, abs=1e-2)


def test_thousands_are_grouped_and_a_missing_event_says_so() -> None:
    report = text_report(counts({"instructions": [1_234_567], "branch-misses": []}, [2_000_000]))
    assert report.splitlines() == [
        "",
        " Performance counter stats for 'prog' (core ideal):",
        "",
        "         1,234,567      instructions:u                                                     ",
        "   <not supported>      branch-misses:u                                             ",
        "",
        "       0.002000000 seconds time elapsed",
        "",
        "       0.002000000 seconds user",
        "       0.000000000 seconds sys",
        "",
        "",
    ]


def test_identical_runs_show_a_deviation_of_zero() -> None:
    report = text_report(counts({"instructions": [1000, 1000]}, [1000, 1000])).splitlines()
    assert report[1] == " Performance counter stats for 'prog' (core ideal, 2 runs):"
    assert report[3].endswith("  ( +-  0.00% )")
    assert report[5] == "       0.000001000 +- 0.000000000 seconds time elapsed  ( +-  0.00% )"
    assert report[6:] == [""]


def test_different_runs_show_two_digits_more_than_they_deviate() -> None:
    # 10 s and 30 s: mean 20, deviation 10: more than a second, so two digits
    report = text_report(counts({"instructions": [100, 300]}, [10**10, 3 * 10**10])).splitlines()
    assert report[3].startswith("               200      instructions:u")
    assert report[3].endswith("  ( +- 50.00% )")
    assert report[5] == "             20.00 +- 10.00 seconds time elapsed  ( +- 50.00% )"


def test_separated_and_json_of_runs_have_the_deviation() -> None:
    rows = counts({"instructions": [100, 300], "branch-misses": []}, [1000, 1000])
    assert separated_report(rows, ";") == (
        "200;;instructions:u;50.00%;1000;100.00;;\n<not supported>;;branch-misses:u;0;100.00;;\n"
    )
    assert json_report(rows).splitlines()[0] == (
        '{"counter-value" : "200.000000", "unit" : "", "event" : "instructions:u", "variance" : 50.00, '
        '"event-runtime" : 1000, "pcnt-running" : 100.00, "metric-value" : 0.000000, "metric-unit" : ""}'
    )


def test_a_reading_is_scaled_by_the_time_it_had_a_counter() -> None:
    assert Reading(100, enabled_ns=30, running_ns=20).scaled == 150
    assert Reading(101, enabled_ns=30, running_ns=20).scaled == 152  # 151.5, to the nearest
    (spec,) = parse_events(["cycles"], model("armv8_pmuv3"))
    assert Count(spec, (Reading(0, 10, 0),)).absence is Absence.NOT_COUNTED
    assert Count(spec, ()).absence is Absence.NOT_SUPPORTED
    assert Count(spec, (Reading(0, 10, 10),)).absence is None


def itlb(pmu: str, loads: int, misses: int) -> list[str]:
    """The metrics of both events on a PMU, in a task-clock of 1 ms."""
    model_ = model(pmu)
    specs = parse_events(["task-clock", "iTLB-loads", "iTLB-load-misses"], model_)
    rows = tuple(
        Count(spec, (Reading(value, 1, 1),)) for spec, value in zip(specs, (10**6, loads, misses), strict=True)
    )
    counts_ = Counts("p", "c", rows, (RunTimes(1, 1),), counted_by_hits=model_.caches_counted_by_hits)
    return [metrics_of(counts_, row)[0].text.strip() for row in rows[1:]]


def test_a_share_is_never_above_all() -> None:
    """Intel's iTLB-loads are hits in the second level alone: 1 of them and 90 walks are no 9000 %."""
    assert itlb("skylake", 1, 90) == ["1000.000 /sec", "98.90% of all iTLB cache accesses"]  # 90 / 91
    assert itlb("skylake", 0, 1) == ["0.000 /sec", "100.00% of all iTLB cache accesses"]
    assert itlb("neoverse_n1", 100, 90) == ["100.000 K/sec", "90.00% of all iTLB cache accesses"]
    assert itlb("neoverse_n1", 1, 90) == ["1000.000 /sec", "90.000 K/sec"]  # scaled, maybe: a rate, and no share
