"""Intel's branch trace store, recorded: perf 6.1 and 6.12 print the branches that were taken, and no others."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from branch_truth import taken_branches
from c_programs import build
from guests import guest
from real_perf import RealPerf, trixies_perf

LOOP_TO_10 = """
int main(void) {
    volatile int sum = 0;
    for (int i = 0; i < 10; i++) sum += i;
    return sum != 45;
}
"""
PROGRAMS = {"embedded_mix": ("1",), "string_instructions": (), "self_modifying": (), "recursion": ()}


@pytest.fixture(params=["6.1", "6.12"])
def perf(request: pytest.FixtureRequest, tmp_path: Path) -> RealPerf:
    return RealPerf(tmp_path, trixies_perf("x86_64") if request.param == "6.12" else ())


def record(path: Path, *words: str | Path, options: tuple[str, ...] = ()) -> Path:
    command = [sys.executable, "-m", "perfemu", "record", "-q", "--core", "skylake", "-e", "intel_bts//u", *options]
    words = (*command, "-o", str(path), "--", *map(str, words))
    done = subprocess.run(words, check=False, capture_output=True, stdin=subprocess.DEVNULL)
    assert done.stderr == b""
    return path


def branches(perf: RealPerf, path: Path) -> list[tuple[int, int]]:
    lines = perf.run("script", "-i", path, "--itrace=b", "-F", "ip,addr").splitlines()
    return [(int(line.split("=>")[0], 16), int(line.split("=>")[1], 16)) for line in lines]


def test_a_loop_to_10_jumps_back_nine_times(perf: RealPerf, tmp_path: Path) -> None:
    source = tmp_path / "loop.c"
    source.write_text(LOOP_TO_10)
    program = build(source, "x86_64", tmp_path / "loop")
    recorded = record(tmp_path / "data", program)
    lines = perf.run("script", "-i", recorded, "--itrace=b", "-F", "comm,ip,sym,addr").splitlines()
    within = [words for line in lines if (words := line.split())[2] == words[5] == "main"]
    assert len(within) == 9
    assert {words[0] for words in within} == {"loop"}
    assert len({tuple(words) for words in within}) == 1
    assert branches(perf, recorded) == taken_branches(program, "skylake")


@pytest.mark.parametrize("program", PROGRAMS)
def test_all_taken_branches_and_no_others(program: str, perf: RealPerf, tmp_path: Path) -> None:
    path = guest(program, "x86_64").path
    truth = taken_branches(path, "skylake", PROGRAMS[program])
    assert branches(perf, record(tmp_path / "data", path, *PROGRAMS[program])) == truth


def test_a_guest_finds_the_unit() -> None:
    devices = "/sys/bus/event_source/devices"
    command = [sys.executable, "-m", "perfemu", "run", "--core", "skylake", "--untimed", "--"]
    shown = subprocess.run([*command, "/bin/ls", f"{devices}/intel_bts"], check=True, capture_output=True, text=True)
    assert shown.stdout.split() == ["perf_event_mux_interval_ms", "type", "uevent"]


def test_a_small_area_is_read_in_time(perf: RealPerf, tmp_path: Path) -> None:
    """Round and round 64 KiB: an interrupt for each half of it, and the pieces at its end that hold no record."""
    path = guest("embedded_mix", "x86_64").path
    truth = taken_branches(path, "skylake", ("20",))
    assert len(truth) * 24 > 4 * (64 << 10)
    recorded = record(tmp_path / "data", path, "20", options=("-m", "128,64K"))
    assert branches(perf, recorded) == truth
    told = perf.run("report", "-D", "-i", recorded)
    assert told.count("PERF_RECORD_AUXTRACE ") >= len(truth) * 24 // (64 << 10)
    assert "truncated" not in told.lower()


def test_snapshots_have_the_latest(perf: RealPerf, tmp_path: Path) -> None:
    """Of an area of 64 KiB, which 2,730 records fill but for 16 bytes; of 100 records; of one that is not full."""
    path = guest("embedded_mix", "x86_64").path
    truth = taken_branches(path, "skylake", ("20",))
    for options, records in (("-Se", 2730), ("--snapshot=e2400", 100)):
        recorded = record(tmp_path / "data", path, "20", options=(options, "-m", "128,64K"))
        assert branches(perf, recorded) == truth[-records:]
    recorded = record(tmp_path / "data", path, "1", options=("-Se", "-m", "128,4M"))
    assert branches(perf, recorded) == taken_branches(path, "skylake", ("1",))


def test_what_two_snapshots_have_in_common_is_there_once(perf: RealPerf, tmp_path: Path) -> None:
    """Between the two signals the shell takes fewer branches than the area has room for."""
    script = f"{guest('embedded_mix', 'x86_64').path} 1 >&2; kill -USR2 $PPID; kill -USR2 $PPID; :"
    words = [sys.executable, "-m", "perfemu", "record", "-q", "--core", "skylake", "-e", "intel_bts//u", "-S"]
    words += ["-m", "128,64K", "-o", str(tmp_path / "data"), "--", "sh", "-c", script]
    subprocess.run(words, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    found = branches(perf, tmp_path / "data")
    assert 2730 < len(found) < 2 * 2730
    # From where a branch leads execution goes straight on to the next one, but where another task has its turn.
    jumps = [n for n, (last, here) in enumerate(pairwise(found), 1) if not 0 <= here[0] - last[1] < 4096]
    assert 2730 not in jumps
    assert len(jumps) < 5
