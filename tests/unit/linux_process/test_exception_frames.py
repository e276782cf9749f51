"""exception_frames.c prints the same under Linux, natively or by qemu-user, and on this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import require
from c_programs import build
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from guests import ISAS

SOURCE = Path(__file__).with_name("exception_frames.c")


def under_linux(isa: str, program: Path) -> str:
    emulator = [] if os.uname().machine == isa else [require.command(f"qemu-{isa}", "qemu-user")]
    said = subprocess.run([*emulator, program], capture_output=True, text=True, check=True).stdout
    # arch/arm64/kernel/traps.c, do_el0_undef: ILL_ILLOPC; qemu-user says ILL_ILLOPN
    return said.replace("udf: signal 4 code 2", "udf: signal 4 code 1") if emulator else said


def under_us(isa: str, program: Path, directory: Path) -> str:
    machine = LinuxMachine(MachineConfig(isa))
    output = directory / "output"
    with output.open("wb") as stdout, open(os.devnull, "rb") as stdin:
        machine.start(
            Program(str(program), ("frames",), (), str(directory), stdin.fileno(), stdout.fileno(), stdout.fileno())
        )
        assert machine.run() == 0
    return output.read_text()


@pytest.mark.parametrize("isa", ISAS)
def test_handlers_are_told_what_linux_tells_them(isa: str, tmp_path: Path) -> None:
    if isa == "x86_64" and os.uname().machine != isa:
        pytest.skip("qemu-user says less of x86's exceptions than Linux")
    program = build(SOURCE, isa, tmp_path / "frames", "-O0", "-w")
    expected = under_linux(isa, program)
    assert expected.count("\n") >= 6
    assert under_us(isa, program, tmp_path) == expected
