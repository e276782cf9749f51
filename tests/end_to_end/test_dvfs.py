"""--dvfs: the same cycles take another time, for whoever asks for it; and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest

import perfemu
import require
from end_to_end.command import perfemu as command
from guests import guest

LOOP = str(guest("loop_1k", "aarch64").path)  # 2,004 instructions, and on `ideal`, at 1 GHz, as many cycles


def profile(tmp_path: Path, *steps: tuple[int, int | None], repeat: bool = False) -> str:
    """Steps: MHz, and for how many microseconds."""
    path = tmp_path / "profile.toml"
    text = [f"repeat = {str(repeat).lower()}"]
    for megahertz, for_us in steps:
        text.append(f"[[step]]\nfrequency_hz = {megahertz * 10**6}")
        if for_us is not None:
            text.append(f"for_us = {for_us}")
    path.write_text("\n".join(text))
    return str(path)


def test_cycles_take_the_time_of_their_steps(tmp_path: Path) -> None:
    """2,000 cycles of a microsecond at 2 GHz, and 4 at 500 MHz: 1,008 ns."""
    steps = profile(tmp_path, (2000, 1), (500, None))
    events = ["instructions", "cycles", "task-clock"]
    plain, slow = (perfemu.stat([LOOP], events, core="ideal", dvfs=dvfs) for dvfs in (None, steps))
    assert [plain[event] for event in events] == [2004, 2004, 2004]
    assert [slow[event] for event in events] == [2004, 2004, 1008]


def test_stat_shows_other_seconds_and_another_frequency(tmp_path: Path) -> None:
    """Laps of 2,000 cycles in 1 us and of 1,500 in 3 us: 2,004 cycles take 1 us and 4 of those at 500 MHz: 1,008 ns."""
    steps = profile(tmp_path, (2000, 1), (500, 3), repeat=True)
    done = command("stat", "--core", "ideal", "--dvfs", steps, "-e", "cycles,task-clock", LOOP)
    lines = done.stderr.decode()
    assert done.returncode == 0
    assert f"stats for '{LOOP}' (core ideal, dvfs profile.toml):" in lines
    assert "2,004      cycles:u                         #    1.988 GHz" in lines  # 2,004 / 1,008 ns
    assert "0.000001008 seconds time elapsed" in lines


def test_programs_see_it(tmp_path: Path) -> None:
    """A profile of one step: the frequency does not depend on when they ask."""
    busybox = require.debian_tree("amd64", "busybox-static") / "bin/busybox"
    steps = profile(tmp_path, (500, None))
    files = [f"/sys/devices/system/cpu/cpu1/cpufreq/{name}" for name in ("scaling_cur_freq", "cpuinfo_max_freq")]
    options = ("run", "--cpus", "2", "--core", "skylake", "--dvfs", steps, busybox)
    assert command(*options, "cat", *files, files[0].replace("scaling_cur_freq", "affected_cpus")).stdout == (
        b"500000\n500000\n0 1\n"
    )
    assert command(*options, "grep", "-c", "^cpu MHz.*: 500.000$", "/proc/cpuinfo").stdout == b"2\n"
    without = command("run", busybox, "ls", "/sys/devices/system/cpu/cpu0")
    assert b"cpufreq" not in without.stdout


def test_what_a_program_does_is_the_same_each_time(tmp_path: Path) -> None:
    busybox = require.debian_tree("amd64", "busybox-static") / "bin/busybox"
    steps = profile(tmp_path, (3000, 5), (100, 9), repeat=True)
    script = "sleep 0.01 & (sleep 0.02; echo b) & echo a; wait; cat /proc/uptime; date +%s%N"
    runs = [command("run", "--cpus", "2", "--dvfs", steps, busybox, "sh", "-c", script) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout.startswith(b"a\nb\n100.02 ")


@pytest.mark.parametrize(
    ("steps", "core", "problem"),
    [
        (((0, 1), (1, None)), "ideal", "step 1: frequency_hz = 0: want 1000000..100000000000"),
        (((1000, 1), (1, None)), "odd.toml", "step 1: 1 microseconds at 1234567890 Hz, the core's own frequency, are "),
    ],
)
def test_what_is_wrong_is_one_line(
    tmp_path: Path, steps: tuple[tuple[int, int | None], ...], core: str, problem: str
) -> None:
    (tmp_path / "odd.toml").write_text(
        'base = "ideal"\nname = "odd"\nsummary = "odd"\nvalidated = "no"\nfrequency_hz = 1_234_567_890\n'
    )
    path = profile(tmp_path, *steps)
    chosen = str(tmp_path / core) if core.endswith(".toml") else core
    done = command("stat", "--core", chosen, "--dvfs", path, LOOP)
    (line,) = done.stderr.decode().splitlines()
    assert done.returncode == 129
    assert problem in line
    assert "--dvfs" in line
