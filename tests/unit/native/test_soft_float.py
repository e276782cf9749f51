"""Floating point in integers agrees with the x86-64 processor that the test runs on, bit for bit and flag for flag."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

import processor
import require

NATIVE = Path(__file__).parents[3] / "emulator/native"
DRIVER = Path(__file__).with_name("soft_float_and_host.cpp")
SOURCES = sorted((NATIVE / "instructions").glob("soft_float*.cpp"))
ROUNDS = int(os.environ.get("SOFT_FLOAT_ROUNDS", "30000"))  # each compares every operation once


@pytest.mark.skipif(platform.machine() != "x86_64", reason="compares with an x86-64 processor")
def test_soft_float_computes_what_the_host_computes(tmp_path: Path) -> None:
    program = tmp_path / "soft_float"
    compiler = require.command("g++", package="g++")
    flags = ("-std=c++20", "-O1", "-msse4.1", f"-I{NATIVE}", "-o", str(program))
    subprocess.run([compiler, *flags, str(DRIVER), *map(str, SOURCES)], check=True)
    run = subprocess.run([program, str(ROUNDS)], capture_output=True, text=True, check=False)
    with processor.as_reference():  # Rocket Lake's FPREM by an infinity raises no unmasked underflow, others' does
        assert run.returncode == 0, run.stdout
