"""--untimed: programs see the core, and nothing takes longer than on the ideal one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from c_programs import build
from end_to_end.command import ENVIRONMENT, PERFEMU
from guests import ISAS

# Asks for the processor, as C libraries do: its string functions differ by it.
SOURCE = """
#include <string.h>
int main(void) { char text[4096]; memset(text, 1, sizeof text - 1); text[4095] = 0; return strlen(text) != 4095; }
"""
CORES = {"x86_64": "zen5", "aarch64": "neoverse-n1"}


def counts(path: Path, core: str, *options: str) -> dict[str, str]:
    events = "instructions,cycles,cache-misses,cycles:k"
    argv = [PERFEMU, "stat", "-x,", "-e", events, "--core", core, *options, path]
    done = subprocess.run(argv, capture_output=True, text=True, env=ENVIRONMENT, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return {line.split(",")[2]: line.split(",")[0] for line in done.stderr.splitlines()}


@pytest.mark.parametrize("isa", ISAS)
def test_instructions_are_the_cores_and_cycles_are_theirs(isa: str, tmp_path: Path) -> None:
    (tmp_path / "asks.c").write_text(SOURCE)
    path = build(tmp_path / "asks.c", isa, tmp_path / "asks")
    timed, untimed = counts(path, CORES[isa]), counts(path, CORES[isa], "--untimed")
    ideal = counts(path, "ideal")
    assert untimed["instructions:u"] == timed["instructions:u"]
    assert untimed["instructions:u"] != ideal["instructions:u"]  # glibc chooses by CPUID, or by MIDR_EL1
    assert untimed["cycles:u"] == untimed["instructions:u"] != timed["cycles:u"]
    assert untimed["cache-misses:u"] == untimed["cycles:k"] == "<not supported>"
    assert timed["cache-misses:u"].isdecimal()
