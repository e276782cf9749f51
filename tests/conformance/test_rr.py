"""Debian's unmodified rr as a guest: it records a program and replays that, which prints the same again.

rr counts conditional branches (on AArch64 taken ones) with the guest's own counters, and stops the program by their
overflow where a signal came; one branch more or less, and the replay diverges, which it notices. So this holds counts,
overflows and their signals, ptrace, seccomp and the rest to what rr expects of a Linux.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import require
from c_programs import COMPILERS
from corpus.debian_machine import machine
from end_to_end.command import ENVIRONMENT, PERFEMU

SOURCE = Path(__file__).with_name("recorded.c")
CORES = {"x86_64": "skylake", "aarch64": "neoverse-n1"}  # of those that rr 5.6 knows
# AArch64: Debian's ld.so takes its locks by LDXR and STXR, before it has looked for LSE
FORCE = {"x86_64": (), "aarch64": ("-F",)}
# rr comes to the signal by breakpoints and steps, over more instructions where the counter may skid farther
SLOW = pytest.mark.skipif("KERNELS" not in os.environ, reason="takes a minute: make kernels")
SUM = 3 * 100 * 101 // 2  # of number * i: numbers 1 and 2, i from 1 to 100
TIMEOUT_S = 300
RECORD_AND_REPLAY = """
rr record {options} -n ./recorded {alarm_us} > recorded.out || exit 1
rr replay {options} -a > replayed.out 2> replayed.errors
"""


@pytest.mark.parametrize(
    ("isa", "alarm_us"), [("x86_64", 500), ("aarch64", 0), pytest.param("aarch64", 500, marks=SLOW)]
)
def test_rr_replays_what_it_has_recorded(isa: str, alarm_us: int, tmp_path: Path) -> None:
    subprocess.run(
        [require.command(*COMPILERS[isa]), "-O1", "-pthread", "-w", "-o", tmp_path / "recorded", SOURCE], check=True
    )
    (tmp_path / "script").write_text(RECORD_AND_REPLAY.format(options=" ".join(FORCE[isa]), alarm_us=alarm_us))
    done = subprocess.run(
        [
            PERFEMU, "run", "--core", CORES[isa], "--untimed", "--sysroot", machine(isa, ("rr",)), "--rw", tmp_path,
            "--env", f"_RR_TRACE_DIR={tmp_path}/traces", "--", "/bin/sh", "script",
        ],
        cwd=tmp_path, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S,
        check=False,
    )  # fmt: skip
    errors = tmp_path / "replayed.errors"
    assert done.returncode == 0, done.stdout + done.stderr + (errors.read_text() if errors.exists() else "")
    recorded = (tmp_path / "recorded.out").read_text()
    found = re.fullmatch(r"sum (\d+), signal at (\d+) of (\d+), child 3 of 1, at \d+\.\d{9}\n", recorded)
    assert found, recorded
    assert int(found[1]) == SUM
    if alarm_us:
        assert 0 < int(found[2]) <= int(found[3])
    assert (tmp_path / "replayed.out").read_text() == recorded
