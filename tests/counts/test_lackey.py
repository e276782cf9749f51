"""A third opinion: Valgrind's lackey counts every iteration of a REP instruction, and all else as we do."""

from __future__ import annotations

import re
import subprocess

import pytest

import require
from guests import guest

REP_ITERATIONS = {"instructions_rep": 1_000 * 16_384}
SAME = ("branches_testcode", "instructions_fldcw", "instructions_million", "recursion")


@pytest.mark.parametrize("name", [*SAME, *REP_ITERATIONS])
def test_lackey_counts_the_same_but_iterations(name: str) -> None:
    valgrind = require.command("valgrind", package="valgrind")
    program = guest(name, "x86_64")
    command = [valgrind, "--tool=lackey", "--basic-counts=yes", str(program.path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"guest instrs: +([\d,]+)$", run.stderr, re.MULTILINE)
    assert found is not None, run.stderr
    assert int(found[1].replace(",", "")) == program.counts["INST_RETIRED"] + REP_ITERATIONS.get(name, 0)
