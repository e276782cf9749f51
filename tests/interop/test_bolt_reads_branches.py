"""Debian's BOLT reads `record -j any,u` by the unmodified perf, and makes a program that is faster on the same core.

The program is made for it: functions whose code that never runs stands between what does, so that each takes five lines
of the instruction cache instead of two.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from pathlib import Path

import pytest

import require
from end_to_end.command import ENVIRONMENT, perfemu

pytestmark = pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="make kernels")

FUNCTIONS = 400
RARELY = "".join(f"x ^= sink[{word}] * {2 * word + 3}; sink[{63 - word}] += x >> {word + 1};" for word in range(12))
FUNCTION = """__attribute__((noinline)) static uint64_t f{n}(uint64_t x) {{
    if (x == rare) {{ {rarely} }}
    x += {n};
    if (x == rare + 1) {{ {rarely} }}
    x ^= x << 3;
    if (x == rare + 2) {{ {rarely} }}
    return x + 1;
}}
"""
HEAD = """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
volatile uint64_t rare = ~0ull - 5;
uint64_t sink[64];
"""
FLAGS = ("-O1", "-fno-reorder-blocks", "-fno-pie", "-no-pie", "-Wl,-q")
HOW = ("-reorder-blocks=ext-tsp", "-reorder-functions=hfsort", "-split-functions", "-split-all-cold")


def source() -> str:
    order = random.Random(1).sample(range(FUNCTIONS), FUNCTIONS)
    calls = "".join(f"        x = f{n}(x);\n" for n in order)
    functions = "".join(FUNCTION.format(n=n, rarely=RARELY) for n in range(FUNCTIONS))
    main = "int main(int c, char **v) {\n    uint64_t x = c;\n    for (int i = 0, n = atoi(v[1]); i < n; i++) {\n"
    return f'{HEAD}{functions}{main}{calls}    }}\n    printf("%llx\\n", (unsigned long long)x);\n}}\n'


def cycles(folder: Path, core: str, program: str) -> tuple[bytes, int]:
    result = perfemu("stat", "-x,", "--core", core, "-e", "cycles:u", f"./{program}", "1000", cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout, int(result.stderr.split(b",")[0])


@pytest.mark.parametrize("core", ["skylake", "zen5"])
def test_what_bolt_makes_of_branch_records_is_faster(core: str, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(source())
    subprocess.run(["gcc", *FLAGS, "program.c", "-o", "program"], cwd=tmp_path, check=True)
    arguments = ("record", "-q", "--core", core, "-e", "cycles", "-c", "10007", "-j", "any,u", "./program", "1000")
    assert perfemu(*arguments, cwd=tmp_path).returncode == 0

    require.command("perf", package="linux-perf")  # which perf2bolt calls
    tree = require.debian_tree("amd64", "bolt-16")
    environment = {**ENVIRONMENT, "HOME": str(tmp_path), "PERF_PAGER": "cat"}

    def bolt(tool: str, *words: str) -> str:
        command = [*require.of_tree(tree, f"usr/lib/llvm-16/bin/{tool}"), *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    read = bolt("perf2bolt", "-p", "perf.data", "-o", "profile", "program")
    found = re.search(r"traces mismatching disassembled function contents: (\d+)", read)
    assert found is not None, read
    assert int(found[1]) == 0
    assert re.search(r"read [1-9]\d* samples and [1-9]\d* LBR entries", read), read
    bolt("llvm-bolt", "program", "-o", "optimised", "-data=profile", *HOW)
    before, after = cycles(tmp_path, core, "program"), cycles(tmp_path, core, "optimised")
    assert before[0] == after[0]
    assert after[1] < before[1] / 2
