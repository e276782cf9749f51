"""Simulated time jumps, however far, and what runs afterwards takes as long as ever."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from c_programs import build
from end_to_end.assembled import program
from end_to_end.command import PERFEMU, perfemu
from guests import ISAS

SOURCE = Path(__file__).with_name("far_times.c")
LONG_S = 500_000_000
ETIMEDOUT = 110
PRINTED = f"""\
nanosleep 0 {LONG_S}
condition {ETIMEDOUT}
joined {2 * LONG_S}
edge 1, read 8: 1 {3 * LONG_S}
4999950000
"""
MODELLED = {"x86_64": "zen5", "aarch64": "cortex-a72"}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("cpus", ["1", "2"])
@pytest.mark.parametrize("modelled", [False, True])
def test_sleeps_of_decades_end(isa: str, cpus: str, modelled: bool, tmp_path: Path) -> None:
    path = build(SOURCE, isa, tmp_path / "far")
    core = MODELLED[isa] if modelled else "ideal"
    argv = [PERFEMU, "stat", "-x,", "-e", "task-clock:u", "--core", core, "--cpus", cpus, path]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == PRINTED, done.stderr
    assert done.returncode == 0
    milliseconds = float(done.stderr.split(",")[0])
    assert 0 < milliseconds < 20  # some 700,000 instructions; all the sleeping is none of them


def test_limits_hold_amid_a_long_sleep(tmp_path: Path) -> None:
    path = build(SOURCE, "x86_64", tmp_path / "far")
    done = perfemu("run", "--timeout", "1000000", path)
    assert done.returncode == 124
    assert done.stderr.decode() == f"{path}: stopped: 1e+06 s of simulated time are over (--timeout)\n"


def test_who_sleeps_beyond_the_end_of_time_is_told(tmp_path: Path) -> None:
    """2**63 ns, with one cycle a ns: nanosleep({2**34, 0}), with the time on the stack."""
    path = program(tmp_path / "sleeps", "x86_64", "6a0048b80000000004000000504889e731f6b8230000000f05ebfe")
    done = perfemu("run", path)
    assert done.returncode == 128 + signal.SIGKILL
    assert b"killed: it sleeps beyond the end of the machine's time\n" in done.stderr
