"""Sample profiles for compilers, of `record -j any,u`: by AutoFDO and by LLVM, and clang makes a faster program of one.

The program takes one of several functions by a pointer, and does what is seldom done in its loop: a compiler that does
not know how often cannot do better.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import require
from end_to_end.command import ENVIRONMENT, perfemu

pytestmark = pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="make kernels")

STEPS = 1_000_000
SPREAD_EVERY = 256
SOURCE = """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
static uint64_t add(uint64_t x) { return x + 7; }
static uint64_t mix(uint64_t x) { return x ^ x >> 5; }
static uint64_t spread(uint64_t x) { return x * 0x9E3779B97F4A7C15u; }
static uint64_t (*volatile functions[])(uint64_t) = { add, add, add, add, mix, spread };
uint64_t table[64];
static uint64_t seldom(uint64_t x) {
    for (int i = 0; i < 64; i++) { table[i] += x >> i; x ^= table[63 - i]; }
    return x;
}
static uint64_t step(uint64_t x, unsigned n) {
    if ((n & 1023) == 1023) x = seldom(x);
    return functions[(n & 255) == 255 ? 5 : n & 3](x);
}
int main(int count, char **words) {
    uint64_t x = count;
    for (unsigned n = 0, end = atoi(words[1]); n < end; n++) x = step(x, n);
    printf("%llx\\n", (unsigned long long)x);
}
"""
FLAGS = ("-O2", "-gdwarf-4", "-gline-tables-only", "-fdebug-info-for-profiling", "-fno-pie", "-c")


def ran(folder: Path, *words: str | Path) -> None:
    environment = {**ENVIRONMENT, "HOME": str(folder), "PERF_PAGER": "cat"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def compiled(folder: Path, name: str, *more: str) -> None:
    tree = require.debian_tree("amd64", "clang-19")
    clang = require.of_tree(tree, "usr/lib/llvm-19/bin/clang", "usr/lib/llvm-19/lib")
    ran(folder, *clang, "-resource-dir", tree / "usr/lib/llvm-19/lib/clang/19", *FLAGS, *more, "program.c", "-o", "a.o")
    ran(folder, "gcc", "-no-pie", "a.o", "-o", name)


def cycles(folder: Path, core: str, program: str) -> tuple[bytes, int]:
    result = perfemu("stat", "-x,", "--core", core, "-e", "cycles:u", f"./{program}", str(STEPS), cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout, int(result.stderr.split(b",")[0])


def counts(profile: Path) -> list[str]:
    """The lines of the calls and counts in main, without functions' names: AutoFDO spoils those that were inlined."""
    main = re.search(r"^main:.*\n((?: .*\n)*)", profile.read_text(errors="replace"), re.MULTILINE)
    assert main is not None
    return [line for line in main[1].splitlines() if re.match(r" +[\d.]+: \d", line)]


@pytest.mark.parametrize("core", ["skylake", "redwood-cove", "zen5"])
def test_compilers_take_profiles(core: str, tmp_path: Path) -> None:
    require.command("perf", package="linux-perf")  # which llvm-profgen calls
    profgen = Path(require.command("llvm-profgen-19", package="llvm-19"))
    autofdo = require.of_tree(require.debian_tree("amd64", "autofdo"), "usr/bin/create_llvm_prof")
    (tmp_path / "program.c").write_text(SOURCE)
    compiled(tmp_path, "plain")
    branches = "ex_ret_brn_tkn" if core == "zen5" else "br_inst_retired.near_taken"
    arguments = ("record", "-q", "--core", core, "-e", f"{branches}:u", "-c", "997", "-j", "any,u", "./plain")
    assert perfemu(*arguments, str(STEPS), cwd=tmp_path).returncode == 0

    ran(tmp_path, profgen, "--perfdata=perf.data", "--binary=plain", "--output=llvm.txt", "--format=text")
    ran(tmp_path, *autofdo, "--binary=plain", "--profile=perf.data", "--out=autofdo.txt", "--format=text")
    assert len(counts(tmp_path / "llvm.txt")) >= 10
    assert counts(tmp_path / "llvm.txt") == counts(tmp_path / "autofdo.txt")
    called = re.search(r"add:(\d+) spread:(\d+)$", (tmp_path / "llvm.txt").read_text(), re.MULTILINE)
    assert called is not None
    assert int(called[1]) / int(called[2]) == pytest.approx(SPREAD_EVERY - 1, rel=0.25)  # some 150 calls were seen

    compiled(tmp_path, "profiled", "-fprofile-sample-use=llvm.txt")
    before, after = cycles(tmp_path, core, "plain"), cycles(tmp_path, core, "profiled")
    assert before[0] == after[0]
    assert after[1] < before[1] * 0.95
