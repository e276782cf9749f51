"""HWCAP and CPUID offer what is executed, and as real machines execute it; the rest is refused."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import require
from c_programs import build
from emulator.arch import architecture
from emulator.arch.processor import Processor
from end_to_end.command import perfemu
from guests import ISAS

SOURCE = Path(__file__).with_name("features.c")
# Of /proc/cpuinfo: what only kernels use or see, what every x86-64 program uses, and what is no instruction.
NOT_TESTED = frozenset((
    "fpu", "de", "pse", "msr", "pae", "cx8", "apic", "sep", "pge", "pat", "pse36", "syscall", "nx", "pdpe1gb", "lm",
    "constant_tsc", "nonstop_tsc",
))  # fmt: skip
NAMES = {"crc32": "sse4_2"}  # what the program calls by the instruction


@pytest.fixture(scope="module", params=ISAS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    isa: str = request.param
    return isa, build(SOURCE, isa, tmp_path_factory.mktemp(isa) / "features")


def printed(program: Path, *arguments: str) -> list[str]:
    done = perfemu("run", "--", program, *arguments)
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


def test_what_is_not_offered_is_refused(built: tuple[str, Path]) -> None:
    _, program = built
    lines = printed(program, "absent")[len(printed(program)) :]
    assert len(lines) >= 7
    assert [line for line in lines if not line.endswith(" is refused")] == []
