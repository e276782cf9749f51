"""Do static, dynamic and position-independent programs run, with glibc and with musl? One program in every kind."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import require
from conformance.comparison import Processor, compare
from conformance.corpus import Case
from debian import ARCHITECTURES
from emulator.aarch64_features import LATER_NAMES
from emulator.core_file.core_file import load_core

SOURCE = Path(__file__).with_name("libc.c")
ATOMICS = Path(__file__).with_name("atomics.c")
COMPILERS = {
    "aarch64": ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
    "x86_64": ("x86_64-linux-gnu-gcc", "gcc"),
}
MUSL_LOADER = {"aarch64": "/lib/ld-musl-aarch64.so.1", "x86_64": "/lib/ld-musl-x86_64.so.1"}
OPTIONS = ["-O2", "-Wall", "-Werror"]


def glibc(*options: str, source: Path = SOURCE) -> Callable[[str, Path], Path]:
    """Built with Debian's compiler; its libraries come from the unpacked libc6."""

    def build(isa: str, output: Path) -> Path:
        require.package("libc6-dev-arm64-cross" if isa == "aarch64" else "libc6-dev")
        compiler = require.command(COMPILERS[isa][0], package=COMPILERS[isa][1])
        subprocess.run([compiler, *OPTIONS, *options, "-o", output, source, "-lm"], check=True)
        return require.debian_tree(ARCHITECTURES[isa], "libc6")

    return build


def musl(*options: str) -> Callable[[str, Path], Path]:
    """Built against the unpacked musl-dev, with its start files, by the same compiler."""

    def build(isa: str, output: Path) -> Path:
        compiler = require.command(COMPILERS[isa][0], package=COMPILERS[isa][1])
        tree = require.debian_tree(ARCHITECTURES[isa], "musl", "musl-dev")
        library = tree / f"usr/lib/{isa}-linux-musl"
        start = "Scrt1.o" if "-pie" in options else "crt1.o"
        command = [compiler, *OPTIONS, *options, "-nostdinc", "-isystem", tree / f"usr/include/{isa}-linux-musl"]
        command += ["-nostdlib", f"-Wl,-dynamic-linker,{MUSL_LOADER[isa]}", "-o", output]
        command += [library / start, library / "crti.o", SOURCE, f"-L{library}", "-lc", "-lgcc", library / "crtn.o"]
        subprocess.run(command, check=True)
        return tree

    return build


KINDS = {
    "glibc_pie": glibc("-fPIE", "-pie"),
    "glibc_fixed": glibc("-fno-pie", "-no-pie"),
    "glibc_static": glibc("-static"),
    "glibc_static_pie": glibc("-fPIE", "-static-pie"),
    "musl_pie": musl("-fPIE", "-pie"),
    "musl_static": musl("-static", "-fno-pie", "-no-pie"),
}


@pytest.mark.parametrize("isa", ARCHITECTURES)
@pytest.mark.parametrize("kind", KINDS)
def test_program_does_and_counts_as_under_qemu(
    kind: str, isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable = tmp_path / kind
    tree = KINDS[kind](isa, executable)
    case = Case(kind, isa, "libc", kind, ("one", "two"), None)
    outcome = compare(case, executable, tree, tmp_path, monkeypatch)
    assert outcome.exit_status == 23, outcome  # three arguments, and 20


# QEMU's is r4p1. Its features are those of our core neoverse-n1, whose count gear `ideal` is.
NEOVERSE_N1 = ("identity.midr_el1=0x414fd0c1", f"identity.features={','.join(LATER_NAMES)}")


@pytest.mark.parametrize("source", [SOURCE, ATOMICS], ids=["libc", "atomics"])
def test_cores_of_armv8_2_count_as_under_qemu(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = tmp_path / "program"
    tree = glibc("-fPIE", "-pie", "-moutline-atomics", source=source)("aarch64", executable)
    case = Case("armv8_2", "aarch64", "libc", "glibc_pie", ("one", "two"), None)
    processor = Processor("neoverse-n1", load_core("ideal", NEOVERSE_N1))
    outcome = compare(case, executable, tree, tmp_path, monkeypatch, processor)
    assert outcome.exit_status == (23 if source == SOURCE else 0), outcome
