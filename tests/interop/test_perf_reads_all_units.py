"""record --all-units: the unmodified perf reads each file, and finds in the trace what another run has executed."""

from __future__ import annotations

from pathlib import Path

from end_to_end.command import perfemu
from guests import guest
from real_perf import RealPerf

SORT = guest("sort", "x86_64").path


def test_the_path_of_pt_is_the_same_beside_all_others(tmp_path: Path) -> None:
    """Of sort 300: the interrupts of the samples beside it are in the trace, and change no instruction of the path."""
    perf = RealPerf(tmp_path)
    common = ("--core", "skylake", "-c", "1009")
    for arguments in (("--all-units", "-o", "all"), ("-e", "intel_pt//u", "-o", "alone.pt")):
        assert perfemu("record", *common, *arguments, SORT, "300", cwd=tmp_path).returncode == 0
    instructions = [
        [line for line in perf.run("script", "-i", tmp_path / name, "--itrace=i1i", "-F", "ip").split() if line != "0"]
        for name in ("all.pt", "alone.pt")
    ]
    assert instructions[0] == instructions[1]
    counted = perfemu("stat", "-x,", "--core", "skylake", "-e", "instructions:u", SORT, "300")
    assert len(instructions[0]) == int(counted.stderr.split(b",")[0])


def test_perf_reports_each(tmp_path: Path) -> None:
    perf = RealPerf(tmp_path)
    for core, suffixes in (("zen5", ("", ".ibs", ".amd_lbr", ".exact")), ("skylake", ("", ".lbr", ".exact"))):
        assert perfemu("record", "--core", core, "-c", "1009", "--all-units", SORT, "300", cwd=tmp_path).returncode == 0
        for suffix in suffixes:
            assert any("partition" in line for line in perf.report(tmp_path / f"perf.data{suffix}")), (core, suffix)
