"""What programs that ask find out about the processor: Debian's own tools, on the modelled cores of both ISAs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import require
from debian import ARCHITECTURES
from end_to_end.command import perfemu

PACKAGES = ("hwloc-nox", "util-linux", "libc-bin", "coreutils", "python3-minimal")
CORES = [
    ("x86_64", "skylake"),
    ("x86_64", "zen5"),
    ("aarch64", "cortex-a55"),
    ("aarch64", "cortex-a72"),
    ("aarch64", "neoverse-n1"),
]


def ask(isa: str, core: str, cpus: int, program: str, *arguments: str) -> str:
    tree = require.debian_tree(ARCHITECTURES[isa], *PACKAGES)
    done = perfemu(
        "run", "--core", core, "--cpus", str(cpus), "--sysroot", str(tree), "--env", "PYTHONDONTWRITEBYTECODE=1", "--",
        str(tree / "usr/bin" / program), *arguments,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def fields(isa: str, core: str) -> dict[str, str]:
    """lscpu's lines."""
    lines = ask(isa, core, 4, "lscpu").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.mark.parametrize(
    ("isa", "core", "expected"),
    [
        ("x86_64", "skylake", ("GenuineIntel", "Intel Skylake client core, by perfemu", "94", "3")),
        ("x86_64", "zen5", ("AuthenticAMD", "AMD Zen 5 core, by perfemu", "2", "1")),
        # util-linux knows the parts by name
        ("aarch64", "cortex-a55", ("ARM", "Cortex-A55", "0", "r2p0")),
        ("aarch64", "cortex-a72", ("ARM", "Cortex-A72", "3", "r0p3")),
        ("aarch64", "neoverse-n1", ("ARM", "Neoverse-N1", "1", "r3p1")),
    ],
)
def test_lscpu(isa: str, core: str, expected: tuple[str, ...]) -> None:
    shown = fields(isa, core)
    assert tuple(shown[name] for name in ("Vendor ID", "Model name", "Model", "Stepping")) == expected
    assert (shown["CPU(s)"], shown["Thread(s) per core"]) == ("4", "1")


LSTOPO = {  # sizes as in the core file, in KiB or MiB as lstopo prefers; who shares what
    "skylake": ("L3 L#0 (8192KB)", "L2 L#{n} (256KB) + L1d L#{n} (32KB) + L1i L#{n} (32KB)"),
    "zen5": ("L3 L#0 (32MB)", "L2 L#{n} (1024KB) + L1d L#{n} (48KB) + L1i L#{n} (32KB)"),
    "cortex-a55": ("L3 L#0 (1024KB)", "L2 L#{n} (128KB) + L1d L#{n} (32KB) + L1i L#{n} (32KB)"),
    "cortex-a72": ("L2 L#0 (1024KB)", "L1d L#{n} (32KB) + L1i L#{n} (48KB)"),
    "neoverse-n1": ("L3 L#0 (32MB)", "L2 L#{n} (1024KB) + L1d L#{n} (64KB) + L1i L#{n} (64KB)"),
}


@pytest.mark.parametrize(("isa", "core"), CORES)
def test_lstopo_draws_the_caches_of_the_core_file(isa: str, core: str) -> None:
    shared, private = LSTOPO[core]
    assert ask(isa, core, 3, "lstopo-no-graphics", "--no-io").splitlines() == [
        "Machine (4096MB total) + Package L#0",
        "  NUMANode L#0 (P#0 4096MB)",
        f"  {shared}",
        *(f"    {private.format(n=n)} + Core L#{n} + PU L#{n} (P#{n})" for n in range(3)),
    ]


@pytest.mark.parametrize("isa", ARCHITECTURES)
def test_everybody_counts_the_same_cpus(isa: str) -> None:
    assert ask(isa, "ideal", 5, "nproc") == "5\n"
    assert ask(isa, "ideal", 5, "getconf", "_NPROCESSORS_ONLN") == "5\n"
    script = "import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))"
    assert ask(isa, "ideal", 5, "python3.11", "-c", script) == "5 5\n"


@pytest.mark.parametrize(
    ("core", "expected"), [("skylake", ("32768", "262144", "8388608")), ("zen5", ("49152", "1048576", "33554432"))]
)
def test_the_c_library_sees_the_caches(core: str, expected: tuple[str, str, str]) -> None:
    """glibc has them from CPUID: leaf 4 on Intel's processors, others on AMD's."""
    names = ("LEVEL1_DCACHE_SIZE", "LEVEL2_CACHE_SIZE", "LEVEL3_CACHE_SIZE")
    assert tuple(ask("x86_64", core, 1, "getconf", name).strip() for name in names) == expected


def test_cpuid_knows_the_processor() -> None:
    """Todd Allen's cpuid, with its own tables of models; each CPU by itself, moved there by its affinity."""
    tree = require.debian_tree("amd64", "cpuid")

    def cpuid(core: str, cpus: int) -> list[str]:
        options = ("--core", core, "--cpus", str(cpus), "--sysroot", str(tree))
        done = perfemu("run", *options, "--", str(tree / "usr/bin/cpuid"))
        assert done.returncode == 0
        return [" ".join(line.split()) for line in done.stdout.decode().splitlines()]

    lines = cpuid("skylake", 2)
    assert "(simple synth) = Intel Core (unknown type) (Skylake-H R0) {Skylake}, 14nm" in lines
    ids = [line for line in lines if line.startswith("process local APIC physical ID")]
    assert ids == [f"process local APIC physical ID = {number:#x} ({number})" for number in range(2)]
    assert "version ID = 0x4 (4)" in lines, "architectural perfmon, leaf 0AH"
    zen = cpuid("zen4", 1)
    assert 'vendor_id = "AuthenticAMD"' in zen
    assert any("Zen 4" in line for line in zen if line.startswith(("(simple synth)", "(uarch synth)")))
    has = {"core performance counter extensions = true", "AMD performance monitoring V2 = true"}
    has |= {"instruction based sampling = true"}
    assert has | {"number of core perf ctrs = 0x6 (6)", "AMD LBR V2 = true"} <= set(zen), "leaves 80000001H, 80000022H"
    assert "version ID = 0x0 (0)" in zen, "no leaf 0AH"


PROGRAM = """
#include <stdio.h>
int main(void) {
    double sum = 0;
    unsigned bits = 0;
    for (int i = 1; i <= 1000; i++) { sum += 1.0 / i; bits += __builtin_popcount(i); }
    printf("%.6f %u\\n", sum, bits);
}
"""


@pytest.mark.parametrize("core", ["ideal", "redwood-cove", "skylake", "zen4", "zen5"])
def test_what_gcc_compiles_for_the_native_processor_runs(core: str, tmp_path: Path) -> None:
    """-march=native asks CPUID: what it takes from there must be executed right."""
    compiler = require.command("gcc", "gcc")
    asked = perfemu("run", "--core", core, "--", compiler, "-march=native", "-E", "-v", "-", cwd=tmp_path)
    flags = next(line for line in asked.stderr.decode().splitlines() if " -march=" in line and "cc1" in line).split()
    native = [flag for flag in flags if flag.startswith("-m")]
    assert "-mno-avx" in native
    assert "-msse4.2" in native
    (tmp_path / "sum.c").write_text(PROGRAM)
    for name, options in (("native", native), ("plain", [])):
        subprocess.run([compiler, "-O3", *options, "sum.c", "-o", name], cwd=tmp_path, check=True)
    there = perfemu("run", "--core", core, "--", str(tmp_path / "native"))
    plain = subprocess.run([str(tmp_path / "plain")], capture_output=True, check=True)
    assert (there.returncode, there.stdout) == (0, plain.stdout)
