"""The guest's output, time and counts are the same whatever is counted or sampled."""

from pathlib import Path

import pytest

import perfemu
import require
from guests import DIRECTORY, ISAS

EVENT_SETS = (
    ["instructions"],
    ["cycles", "branches", "page-faults", "task-clock", "context-switches"],
    ["{cycles,instructions,branches}"],
)
SAMPLINGS: tuple[dict[str, int | bool], ...] = (
    {"period": 97},
    {"period": 10_007, "callchains": True},
    {"frequency_hz": 100_000},
)


@pytest.mark.parametrize("name", ["loop_1k", "self_monitoring", "fresh_pages"])
@pytest.mark.parametrize("isa", ISAS)
def test_guest_programs(name: str, isa: str, tmp_path: Path) -> None:
    program = DIRECTORY / name / f"{isa}.elf"
    alone = perfemu.run(perfemu.Guest([program], core="ideal"), capture=True)
    for events in EVENT_SETS:
        watched = perfemu.stat(perfemu.Guest([program], core="ideal"), events, capture=True)
        assert (watched.stdout, watched.exit_status) == (alone.stdout, alone.exit_status)
        assert watched.elapsed_ns == alone.elapsed_ns
    assert (
        perfemu.stat(perfemu.Guest([program], core="ideal"), ["instructions"], capture=True)["instructions"]
        == alone.instructions
    )
    period = max(alone.instructions // 50, 7)
    recorded = perfemu.record(
        perfemu.Guest([program], core="ideal"),
        ["instructions"],
        period=period,
        callchains=True,
        output=tmp_path / "data",
        capture=True,
    )
    assert (recorded.stdout, recorded.exit_status) == (alone.stdout, alone.exit_status)
    assert recorded.sample_count == alone.instructions // period


def test_a_program_that_looks_at_clocks_and_itself(tmp_path: Path) -> None:
    busybox = require.command("busybox", package="busybox-static")
    script = "read up < /proc/uptime; echo $$ $up; while read line; do echo $line; done < /proc/self/stat"
    commands = (
        ["sh", "-c", script],
        ["date", "+%s %N"],
        ["cat", "/proc/self/stat", "/proc/self/maps", "/proc/uptime"],
    )
    for line in ([busybox, *command] for command in commands):
        alone = perfemu.run(perfemu.Guest(line, core="ideal"), capture=True)
        assert alone.stdout
        for events in EVENT_SETS:
            assert perfemu.stat(perfemu.Guest(line, core="ideal"), events, capture=True).stdout == alone.stdout
        for sampling in SAMPLINGS:
            recorded = perfemu.record(
                perfemu.Guest(line, core="ideal"),
                ["instructions", "cpu-clock"],
                period=int(sampling["period"]) if "period" in sampling else None,
                frequency_hz=int(sampling.get("frequency_hz", 4000)),
                callchains=bool(sampling.get("callchains", False)),
                output=tmp_path / "data",
                capture=True,
            )
            assert recorded.stdout == alone.stdout
