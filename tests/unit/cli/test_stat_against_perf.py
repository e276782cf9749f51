"""What stat prints is what the real perf prints when `perf stat report` is shown the same numbers in a file."""

import re
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

import require
from perfcore.perfdata.features import EventDescription, Features
from perfcore.perfdata.header import Feature
from perfcore.perfdata.records import UserRecord, pack_record
from perfcore.perfdata.writer import PerfDataWriter
from perfemu.events.attributes import stat_attr
from perfemu.events.parser import parse_events
from perfemu.run_times import RunTimes
from perfemu.statistics.counts import Count, Counts, Reading
from perfemu.statistics.interval import IntervalPrinter
from perfemu.statistics.json_lines import json_report
from perfemu.statistics.separated import separated_report
from perfemu.statistics.text import text_report
from pmu.model import model

_GLOBAL = 1  # AGGR_GLOBAL
_ELAPSED_NS = 13_000_000
_ENABLED_NS = 12_345_678

# event -> (count, running ns)
FULL = {
    "task-clock": (12_345_678, _ENABLED_NS),
    "context-switches": (0, _ENABLED_NS),
    "page-faults": (53, _ENABLED_NS),
    "cycles": (12_345_678, _ENABLED_NS),
    "instructions": (10_345_678, _ENABLED_NS),
    "branches": (2_345_678, _ENABLED_NS),
    "branch-misses": (45_678, _ENABLED_NS),
    "cache-references": (95_678, _ENABLED_NS),
    "cache-misses": (5_678, _ENABLED_NS),
    "L1-dcache-loads": (95_678, _ENABLED_NS),
    "L1-dcache-load-misses": (5_678, _ENABLED_NS),
    "LLC-loads": (95_678, _ENABLED_NS),
    "LLC-load-misses": (5_678, _ENABLED_NS),
    "dTLB-loads": (95_678, _ENABLED_NS),
    "dTLB-load-misses": (5_678, _ENABLED_NS),
    "iTLB-loads": (95_678, _ENABLED_NS),
    "iTLB-load-misses": (5_678, _ENABLED_NS),
    "L1-icache-loads": (95_678, _ENABLED_NS),
    "L1-icache-load-misses": (5_678, _ENABLED_NS),
    "r8": (12_345_678, _ENABLED_NS // 2),  # had a counter half of the time
    "r21": (0, 0),  # never had one
    "armv8_pmuv3_0/event=0x8,name=a_name_longer_than_its_column/": (7, _ENABLED_NS),
}
NO_CLOCK = {name: FULL[name] for name in ("instructions", "cycles", "branches", "branch-misses", "r8")}
STALLED = {
    "cycles": (12_345_678, _ENABLED_NS),
    "instructions": (10_345_678, _ENABLED_NS),
    "stalled-cycles-frontend": (345_678, _ENABLED_NS),
    "stalled-cycles-backend": (1_345_678, _ENABLED_NS),
}
NO_CYCLES = {"cpu-clock": (_ENABLED_NS, _ENABLED_NS), "instructions": (1, _ENABLED_NS), "dummy": (0, _ENABLED_NS)}


def counts_of(table: dict[str, tuple[int, int]]) -> Counts:
    specs = parse_events(table, model("armv8_pmuv3"))
    rows = (
        Count(spec, (Reading(value, _ENABLED_NS, running),))
        for spec, (value, running) in zip(specs, table.values(), strict=True)
    )
    return Counts("prog", "ideal", tuple(rows), (RunTimes(_ELAPSED_NS, _ENABLED_NS),))


def write_stat_file(path: Path, counts: Counts, interval_ms: int = 0, rounds: Mapping[int, int] | None = None) -> None:
    """A file as `perf stat record` leaves it (tools/lib/perf/include/perf/event.h: perf_record_stat and others).

    `rounds`: ns at which something is printed -> how often all counts have been counted by then.
    """
    events = [
        EventDescription(stat_attr(count.spec), (number,), count.name) for number, count in enumerate(counts, start=1)
    ]
    features = Features(command_line=("prog",), architecture="aarch64")
    features.other[Feature.STAT] = b""
    with PerfDataWriter(path, events, features) as writer:
        for number, count in enumerate(counts, start=1):
            if count.spec.unit:
                unit = struct.pack("<QQ", 0, number) + count.spec.unit.encode() + b"\0"
                writer.write(pack_record(UserRecord.EVENT_UPDATE, unit))
                writer.write(pack_record(UserRecord.EVENT_UPDATE, struct.pack("<QQd", 1, number, count.spec.scale)))
        writer.write(pack_record(UserRecord.THREAD_MAP, struct.pack("<QQ16s", 1, 1000, b"prog")))
        writer.write(pack_record(UserRecord.CPU_MAP, struct.pack("<HHh", 0, 1, -1)))
        writer.write(pack_record(UserRecord.STAT_CONFIG, struct.pack("<7Q", 3, 0, _GLOBAL, 1, interval_ms, 2, 1)))
        for ns, times in (rounds or {_ELAPSED_NS: 1}).items():
            for number, count in enumerate(counts, start=1):
                (reading,) = count.readings
                values = (times * value for value in (reading.value, reading.enabled_ns, reading.running_ns))
                writer.write(pack_record(UserRecord.STAT, struct.pack("<QII3Q", number, 0xFFFFFFFF, 0, *values)))
            writer.write(pack_record(UserRecord.STAT_ROUND, struct.pack("<QQ", not interval_ms, ns)))


def perf_prints(path: Path, *options: str) -> list[str]:
    perf = require.command("perf", package="linux-perf")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(path.parent), "LC_ALL": "C"}
    command = [perf, "stat", *options, "report", "-i", str(path)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=True
    )
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    "table", [FULL, NO_CLOCK, NO_CYCLES, STALLED], ids=["full", "no clock", "no cycles", "stalled"]
)
def test_text_is_perfs(tmp_path: Path, table: dict[str, tuple[int, int]]) -> None:
    counts = counts_of(table)
    write_stat_file(tmp_path / "stat.data", counts)
    theirs = perf_prints(tmp_path / "stat.data")
    ours = text_report(counts, grouping=False).splitlines()
    assert theirs[1] == " Performance counter stats for 'prog':"
    assert ours[1] == " Performance counter stats for 'prog' (core ideal):"
    assert ours[2 : len(theirs) - 1] == theirs[2:-1]
    # a recorded file has no times of the process, a live run has
    assert ours[len(theirs) - 1 :] == [
        "",
        "       0.012345678 seconds user",
        "       0.000000000 seconds sys",
        "",
        "",
    ]


@pytest.mark.parametrize(
    "table", [FULL, NO_CLOCK, NO_CYCLES, STALLED], ids=["full", "no clock", "no cycles", "stalled"]
)
def test_separated_is_perfs(tmp_path: Path, table: dict[str, tuple[int, int]]) -> None:
    counts = counts_of(table)
    write_stat_file(tmp_path / "stat.data", counts)
    assert separated_report(counts, ",").splitlines() == perf_prints(tmp_path / "stat.data", "-x,")


def test_json_is_perfs(tmp_path: Path) -> None:
    counts = counts_of(FULL)
    write_stat_file(tmp_path / "stat.data", counts)
    assert json_report(counts).splitlines() == perf_prints(tmp_path / "stat.data", "-j")


# -I: ns at which two intervals end, and what each event had counted by then in all. The second is like the first, for
# perf 6.1 divides by the mean of the intervals until then.
_INTERVALS = {10_000_000: 1, 20_000_000: 2}


def write_interval_file(path: Path, counts: Counts) -> None:
    """... as `perf stat record -I 10` leaves it: sums, from which perf takes the differences."""
    write_stat_file(path, counts, interval_ms=10, rounds=_INTERVALS)


@pytest.mark.parametrize(
    ("table", "options"), [(FULL, []), (FULL, ["-x,"]), (FULL, ["-j"]), (NO_CLOCK, []), (STALLED, [])]
)
def test_intervals_are_perfs(tmp_path: Path, table: dict[str, tuple[int, int]], options: list[str]) -> None:
    counts = counts_of(table)
    write_interval_file(tmp_path / "stat.data", counts)
    printed: list[str] = []
    printer = IntervalPrinter(
        printed.append,
        grouping=False,
        separator="," if "-x," in options else None,
        as_json="-j" in options,
    )
    for end_ns in _INTERVALS:
        printer.show(end_ns, counts)
    ours = [without_wall_time(line) for line in "".join(printed).splitlines()]
    assert ours == perf_prints(tmp_path / "stat.data", *options)


def without_wall_time(line: str) -> str:
    """perf stat report knows no time that passed in an interval; what perf stat -I itself divides by it is as here."""
    line = re.sub(r"# +[\d.]+ CPUs utilized", lambda match: " " * len(match[0]), line)
    line = re.sub(r"[\d.]+,CPUs utilized", ",", line)
    return re.sub(r'"metric-value" : [\d.]+, "metric-unit" : "CPUs utilized"', _NO_METRIC, line)


_NO_METRIC = '"metric-value" : 0.000000, "metric-unit" : "CPUs utilized"'
