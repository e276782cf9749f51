"""Real x86-64 programs access what their slices say, event by event: glibc, its printf and libm, a shell, x87 code."""

from __future__ import annotations

import itertools
import platform
import subprocess
from pathlib import Path

import pytest

import access_hook
import require
from native.static_linux import Process, Reference, Tracer

BUSYBOX = {
    "sh": (["sh", "-c", "i=0; s=0; while [ $i -lt 8 ]; do s=$((s + i * i)); i=$((i + 1)); done; echo $s"], b"140\n"),
    "dc": (["dc", "-e", "2 100 ^ p"], b"1267650600228229401496703205376\n"),
    "factor": (["factor", "123456789012345"], b"123456789012345: 3 5 283 3851 7552031\n"),
    "awk": (["awk", "BEGIN { for (i = 0; i < 30; i++) a[i % 7] = a[i % 7] i; print a[3] }"], b"3101724\n"),
}
C_SOURCE = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
int main(void) {
    static double v[60];
    long double sum = 0;
    char text[200];
    for (int i = 0; i < 60; i++) {
        v[i] = sin(i * 1.7) * exp(i * 0.01) + pow(i, 0.3);
        sum += v[i];
        if (i % 7 == 0) sum = fmodl(sum, 13.5L);
    }
    qsort(v, 60, sizeof *v, compare);
    for (int i = 0; i < 8; i++) {
        snprintf(text, sizeof text, "%d %s %x %.3Lf", i, "abc", i * 77, sum);
        v[i] += strtod(text, 0) + strlen(text) + atoi(text) + (strchr(text, 'x') != 0);
        memmove(text + 3, text, 60);
    }
    unsigned __int128 product = 1;
    for (unsigned i = 1; i < 40; i++) product = product * i + (product >> 3) / (i + 2);
    char *block = calloc(3, 5000);
    memset(block, 7, 15000);
    block = realloc(block, 40000);
    memcpy(block + 20000, block, 15000);
    printf("%.9g %Lg %a %llx %d\\n", v[50], sum, v[3], (long long)product, memcmp(block, block + 20000, 999));
}
"""


def run_both(path: Path, arguments: list[str]) -> tuple[bytes, int]:
    """What it writes, and how many accesses it makes, which are the same on both machines."""
    machine = Tracer("slices")
    tracer, reference = Process(machine, path, arguments), Process(Reference(), path, arguments)
    accesses = 0
    for number, (mine, expected) in enumerate(zip(tracer.steps(), reference.steps(), strict=True)):
        mine, expected = access_hook.merged(mine), access_hook.merged(expected)
        accesses += len(mine)
        if mine != expected:
            pair = next(pair for pair in itertools.zip_longest(mine, expected) if pair[0] != pair[1])
            pytest.fail(f"before system call {number}: {pair}")
    assert tracer.output == reference.output
    if platform.machine() == "x86_64":  # host code is made for no other
        assert machine.tracer.blocks_by_code > accesses / 4
    return tracer.output, accesses


@pytest.mark.parametrize("run", BUSYBOX)
def test_busybox(run: str) -> None:
    arguments, output = BUSYBOX[run]
    path = require.debian_tree("amd64", "busybox-static") / "bin/busybox"
    written, accesses = run_both(path, ["busybox", *arguments])
    assert written.startswith(output)
    assert accesses > 3000


@pytest.mark.parametrize("options", [("-O2",), ("-O0", "-mfpmath=387")], ids=["O2", "x87"])
def test_a_c_program(options: tuple[str, ...], tmp_path: Path) -> None:
    source, path = tmp_path / "program.c", tmp_path / "program"
    source.write_text(C_SOURCE)
    compiler = require.command("x86_64-linux-gnu-gcc", package="gcc-x86-64-linux-gnu")
    subprocess.run([compiler, *options, "-static", source, "-o", path, "-lm"], check=True)
    written, accesses = run_both(path, ["program"])
    assert written.endswith(b" 0\n")
    assert accesses > 20_000
