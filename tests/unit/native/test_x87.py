"""x87 instructions leave what an x86-64 processor leaves: registers, tags, status, memory and flags."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import c_programs
import processor
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig

FOLDER = Path(__file__).parent
ROUNDS = os.environ.get("X87_ROUNDS", "1500")  # for each form


def lines_here(program: Path, *arguments: str) -> list[str]:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout.splitlines()


def lines_of_guest(program: Path, *arguments: str) -> list[str]:
    """What the program prints on our machine."""
    output = program.with_suffix(".output")
    with output.open("wb") as out, open(os.devnull, "rb") as null:
        machine = LinuxMachine(MachineConfig(isa="x86_64", memory_bytes=64 << 20))
        descriptors = null.fileno(), out.fileno(), out.fileno()
        machine.start(Program(str(program), ("program", *arguments), (), "/", *descriptors))
        assert machine.run() == 0, output.read_text()
    return output.read_text().splitlines()


def differing_forms(program: Path) -> dict[str, str]:
    """Form -> the first case that differs, by this processor and by ours. The forms of which all cases agree are not
    in it."""
    pairs = zip(lines_here(program, ROUNDS), lines_of_guest(program, ROUNDS), strict=True)
    differing = [here.split()[0] for here, ours in pairs if here != ours]
    cases = {}
    for form in differing:
        here, ours = lines_here(program, ROUNDS, form), lines_of_guest(program, ROUNDS, form)
        cases[form] = next(f"\n{a}\n{b}" for a, b in zip(here, ours, strict=True) if a != b)
    return cases


def test_every_instruction_leaves_what_the_host_leaves(tmp_path: Path) -> None:
    with processor.as_reference():
        program = c_programs.build(FOLDER / "x87_forms.c", "x86_64", tmp_path / "forms")
        assert differing_forms(program) == {}


def same_line(ours: str, here: str) -> bool:
    """Of a function: the last bit of the result may differ, as transcendental instructions do between processors."""
    if ours == here:
        return True
    *call, bits, flags, raised = ours.split()
    *other_call, other_bits, other_flags, other_raised = here.split()
    same = (call, flags, raised) == (other_call, other_flags, other_raised) and flags == "flags"
    return same and abs(int(bits, 16) - int(other_bits, 16)) <= 1


def test_library_functions_and_signal_frames_are_those_of_the_host(tmp_path: Path) -> None:
    with processor.as_reference():
        program = c_programs.build(FOLDER / "long_doubles.c", "x86_64", tmp_path / "long_doubles")
        lines = list(zip(lines_of_guest(program), lines_here(program), strict=True))
        assert [pair for pair in lines if not same_line(*pair)] == []
