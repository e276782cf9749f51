"""guest_programs/board_frequency: the frequency of the moment misleads, the ratio of the Activity Monitors does not.

Expected are the profile's own means, from its steps. What the program finds is off by when it looks: within two ticks
of the system counter, of 16 ns, behind a millisecond.
"""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from functools import cache
from pathlib import Path

from end_to_end.command import perfemu
from guests import DIRECTORY

EXAMPLE = DIRECTORY / "board_frequency"
PICTURE = DIRECTORY.parent / "docs" / "frequency.svg"
LINES = 20
BURST_HZ, REST_HZ = 3_000_000_000, 1_000_000_000
HIGH, LOW = Fraction(9 * BURST_HZ + REST_HZ, 10), Fraction(BURST_HZ + 9 * REST_HZ, 10)  # 2.8 and 1.2 GHz
TICKS, WINDOW = 62_500, 256  # of 16 ns: a millisecond, and 4 us
LATE_TICKS = 2


def mean_hz(millisecond: int) -> Fraction:
    """Five milliseconds of bursts, five of rests, and so on."""
    return HIGH if millisecond // 5 % 2 else LOW


def moment_hz(millisecond: int) -> int:
    """What its first tenth has."""
    return REST_HZ if millisecond // 5 % 2 else BURST_HZ


@cache
def output(core: str = "ideal") -> str:
    done = perfemu(
        "run", "--board", "virt", "--semihosting", "--core", core, "--memory", "64M",
        "--set", "activity_monitors.version=v1", "--dvfs", EXAMPLE / "bursts.toml", EXAMPLE / "virt.elf",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_the_ratio_is_the_mean_and_the_moment_is_not() -> None:
    lines = [[int(word, 16) for word in line.split()] for line in output().splitlines()]
    assert len(lines) == LINES
    for start, (cycles, ticks, moment_cycles, moment_ticks) in enumerate(lines, 1):
        assert abs(ticks - TICKS) <= LATE_TICKS
        assert abs(cycles - mean_hz(start) / 1000) <= Fraction(LATE_TICKS * 16 * BURST_HZ, 10**9)
        assert abs(moment_ticks - WINDOW) <= LATE_TICKS
        at = moment_hz(start + 1)
        assert abs(Fraction(moment_cycles, moment_ticks) * 62_500_000 / at - 1) <= Fraction(LATE_TICKS, WINDOW)
    assert {round(mean_hz(start) / 10**8) for start in range(1, LINES)} == {12, 28}


def test_the_documentation_shows_it(tmp_path: Path) -> None:
    """The scale is 1024 times the mean over the highest: 409.6 and 955.7."""
    drawn = tmp_path / "frequency.svg"
    done = subprocess.run(
        [sys.executable, EXAMPLE / "plot.py", EXAMPLE / "bursts.toml", drawn],
        input=output(), capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(DIRECTORY.parent)},
    )  # fmt: skip
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["until", "ms", "at", "that", "moment", "by", "the", "ratio", "scale"]
    for start, row in enumerate(rows, 1):
        scale = int(1024 * mean_hz(start) / BURST_HZ)
        moment, ratio = moment_hz(start + 1) / 10**9, float(mean_hz(start)) / 10**9
        assert row.split() == [str(start + 1), f"{moment:.3f}", "GHz", f"{ratio:.3f}", "GHz", str(scale)]
    assert len(rows) == LINES
    assert drawn.read_bytes() == PICTURE.read_bytes(), f"draw it again: {EXAMPLE / 'plot.py'}"
    page = (DIRECTORY.parent / "docs" / "frequency.md").read_text()
    assert all(row in page for row in rows[2:6])


def test_who_calls_it_wrongly_is_told(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, EXAMPLE / "plot.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage: perfemu run --board virt" in done.stderr
