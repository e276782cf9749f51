"""HWCAP and CPUID offer what is executed, and as real machines execute it; the rest is refused."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest

import debian
import require
from c_programs import build
from emulator.aarch64_features import LATER_NAMES, OF_ALL
from emulator.arch.processor import Processor
from emulator.core_file.core_file import load_core
from emulator.linux.arch import architecture
from end_to_end.command import perfemu
from guests import ISAS

SOURCE = Path(__file__).with_name("features.c")
# Of /proc/cpuinfo: what only kernels use or see, what every x86-64 program uses, and what is no instruction.
NOT_TESTED = frozenset((
    "fpu", "de", "pse", "msr", "pae", "cx8", "apic", "sep", "pge", "pat", "pse36", "syscall", "nx", "pdpe1gb", "lm",
    "constant_tsc", "nonstop_tsc",
))  # fmt: skip
BASE = [feature.name for feature in OF_ALL]
NAMES = {"crc32": "sse4_2"}  # what the program calls by the instruction


@pytest.fixture(scope="module", params=ISAS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    isa: str = request.param
    return isa, build(SOURCE, isa, tmp_path_factory.mktemp(isa) / "features")


def printed(program: Path, *arguments: str, core: str = "ideal") -> list[str]:
    done = perfemu("run", "--core", core, "--", program, *arguments)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def test_every_feature_that_is_offered_has_an_instruction_here(built: tuple[str, Path]) -> None:
    isa, program = built
    shown = {line.split()[0] for line in printed(program)}
    if isa == "x86_64":
        shown = {NAMES.get(name, name) for name in shown}
    assert set(architecture(isa).cpu_features(Processor())) - NOT_TESTED == shown


def test_results_are_those_of_the_host_or_of_qemu(built: tuple[str, Path]) -> None:
    isa, program = built
    if isa == "x86_64":
        flags = set(re.search(r"^flags\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split())
        if missing := set(architecture(isa).cpu_features(Processor())) - flags - NOT_TESTED:
            pytest.skip(f"the host has no {', '.join(sorted(missing))}")
        native = [str(program)]
    else:
        native = [require.command("qemu-aarch64", "qemu-user"), "-cpu", "cortex-a72", str(program)]
    done = subprocess.run(native, capture_output=True, text=True, check=True)
    assert printed(program) == done.stdout.splitlines()


@pytest.mark.parametrize("core", ["cortex-a55", "neoverse-n1"])
def test_cores_of_armv8_2_have_what_qemu_s_have(core: str, tmp_path: Path) -> None:
    program = build(SOURCE, "aarch64", tmp_path / "features")
    found = printed(program, "later", core=core)
    offered = architecture("aarch64").cpu_features(Processor(features=load_core(core).features))
    assert [line.split()[0] for line in found] == sorted(offered, key=[*BASE, *LATER_NAMES].index)
    tree = require.debian_tree(debian.ARCHITECTURES[platform.machine()], "qemu-user", release=debian.TRIXIE)
    native = [str(tree / "usr/bin/qemu-aarch64"), "-cpu", "neoverse-n1", str(program), "later"]  # 7.2 has no DC CVAP
    assert found == subprocess.run(native, capture_output=True, text=True, check=True).stdout.splitlines()


def test_what_is_not_offered_is_refused(built: tuple[str, Path]) -> None:
    _, program = built
    lines = printed(program, "absent")[len(printed(program)) :]
    assert len(lines) >= 7
    assert [line for line in lines if not line.endswith(" is refused")] == []
