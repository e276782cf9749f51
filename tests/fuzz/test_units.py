"""Guests that use the PMUs of units at random: each ends as it would have, and nothing here is an internal error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from c_programs import build

CORES = {
    "skylake": "x86_64",
    "redwood-cove": "x86_64",
    "zen4": "x86_64",
    "zen5": "x86_64",
    "neoverse-n1": "aarch64",
}
LENT = {"neoverse-n1": ("--unit", "brbe"), "zen4": ("--unit", "brs")}
SEEDS = range(1, 9)
INSTRUCTIONS = "3000000"


@pytest.mark.parametrize("core", CORES)
def test_random_uses_are_answered(core: str, tmp_path: Path) -> None:
    program = build(Path(__file__).with_name("units.c"), CORES[core], tmp_path / "units", "-Werror")
    for seed in SEEDS:
        options = ("--core", core, *LENT.get(core, ()), "--cpus", str(1 + seed % 2), "--max-instructions", INSTRUCTIONS)
        command = (sys.executable, "-m", "perfemu", "run", *options, *(() if seed % 2 else ("--untimed",)))
        done = subprocess.run(
            (*command, "--", str(program), str(seed)), check=False, capture_output=True, text=True, timeout=100
        )
        assert "internal error" not in done.stderr, seed
        assert done.returncode == 0, (seed, done.stderr)
