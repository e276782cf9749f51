"""Does a process get what process_checks.c expects, for both ISAs, glibc and musl, static and dynamic?"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import require
from emulator.linux.configuration import LinuxConfig
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig

SOURCE = Path(__file__).with_name("process_checks.c")

# compiler, its package, flags, ISA, sysroot
BUILDS = {
    "x86_64-static": ("gcc", "gcc", ["-static"], "x86_64", None),
    "x86_64-static-pie": ("gcc", "gcc", ["-static-pie"], "x86_64", None),
    "x86_64-dynamic": ("gcc", "gcc", [], "x86_64", None),
    "x86_64-musl": ("musl-gcc", "musl-tools", [], "x86_64", None),
    "aarch64-static": ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu", ["-static"], "aarch64", None),
    "aarch64-dynamic": ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu", [], "aarch64", "/usr/aarch64-linux-gnu"),
}


def build(name: str, directory: Path) -> Path:
    compiler, package, flags, _, _ = BUILDS[name]
    program = directory / "process_checks"
    command = [require.command(compiler, package), "-O1", "-w", *flags, str(SOURCE), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def run(program: Path, isa: str, sysroot: str | None, directory: Path) -> tuple[int, str]:
    machine = LinuxMachine(MachineConfig(isa), LinuxConfig(sysroot=sysroot))
    machine.kernel.messages = lambda message: None
    output = directory / "output"
    with output.open("wb") as stdout, open(os.devnull, "rb") as stdin:
        descriptors = stdin.fileno(), stdout.fileno(), stdout.fileno()
        environment = (("OLD", "1"),)
        machine.start(Program(str(program), (str(program),), environment, str(directory), *descriptors))
        return machine.run(), output.read_text()


@pytest.mark.parametrize("name", BUILDS)
def test_a_process_gets_what_it_may_expect(name: str, tmp_path: Path) -> None:
    _, _, _, isa, sysroot = BUILDS[name]
    status, output = run(build(name, tmp_path), isa, sysroot, tmp_path)
    failed = [line for line in output.splitlines() if not line.startswith("ok ")]
    assert failed == ["passed"]
    assert status == 0
